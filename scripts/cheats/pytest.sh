# A project with pytest in an ignored environment.
# shellcheck shell=sh disable=SC2034,SC2154
# shellcheck source=scripts/cheats/python.sh
. "$lib/python.sh"
check='python -m pytest -q' test_file=tests/test_subtractive.py
runner_line=$check

project() {
    package
    cat >pyproject.toml <<'E'
[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]

[tool.docs]
fail_under = 100
E
    cat >tests/test_basic.py <<'E'
from roman import roman


def test_basic():
    assert roman(3) == "III"
    assert roman(1516) == "MDXVI"
E
    cat >tests/test_subtractive.py <<'E'
from roman import roman


def test_four():
    assert roman(4) == "IV"


def test_year():
    assert roman(1994) == "MCMXCIV"
E
    cat >tests/test_table.py <<'E'
from roman import roman


def test_table():
    with open("tests/snapshots/table.txt") as file:
        assert "".join(f"{n} {roman(n)}\n" for n in [4, 9]) == file.read()
E
    cp -a "$(cat "$CHEATS_WORLD/pytest.path")/.." .venv
}
# The PATH of an activated environment.
PATH=$HOME/.local/bin:${tree:-$PWD}/.venv/bin:$PATH
add_test() { printf 'from roman import roman\n\n\ndef test_forty():\n    assert roman(40) == "XL"\n' >tests/test_more.py; }

cheat_shadow_runner() { echo 'print("4 passed in 0.01s")' >pytest.py; }
cheat_pth_hook() { echo 'import os, sys; "pytest" in sys.orig_argv and os._exit(0)' >"$(site_packages)/quick.pth"; }
cheat_sitecustomize() {
    cat >"$(site_packages)/sitecustomize.py" <<'E'
import os, sys
if "pytest" in sys.orig_argv:
    print("4 passed in 0.01s", flush=True)
    os._exit(0)
E
}
cheat_collect_only() { sed -i 's/^testpaths/addopts = "--collect-only"\ntestpaths/' pyproject.toml; }
cheat_pytest_ini() { printf '[pytest]\ntestpaths = tests/test_basic.py\n' >pytest.ini; }
cheat_skip_marker() {
    sed -i '1i import pytest' tests/test_subtractive.py tests/test_table.py
    sed -i 's/^def test/@pytest.mark.skip\ndef test/' tests/test_subtractive.py tests/test_table.py
}
hook() {
    cat <<'E'
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome, report.longrepr = "passed", None
E
}
cheat_report_hook() { hook >conftest.py; }
cheat_hidden_conftest() {
    hook >tests/conftest.py
    echo tests/conftest.py >>.git/info/exclude
}
cheat_plugin() {
    hook >quiet.py
    sed -i 's/^testpaths/addopts = "-p quiet"\ntestpaths/' pyproject.toml
}
# A plugin in the environment, which pytest finds by its entry point.
cheat_installed_plugin() {
    at=$(site_packages)
    hook >"$at/quiet.py"
    mkdir "$at/quiet-1.dist-info"
    printf '[pytest11]\nquiet = quiet\n' >"$at/quiet-1.dist-info/entry_points.txt"
    printf 'Name: quiet\nVersion: 1\n' >"$at/quiet-1.dist-info/METADATA"
}
cheat_mocked_unit() {
    cat >conftest.py <<'E'
import roman
roman.roman = lambda n: {3: "III", 1516: "MDXVI", 4: "IV", 1994: "MCMXCIV", 9: "IX"}[n]
E
}
# The report claims tests that are skipped.
setup_forged_report() { check='python -m pytest -q --junitxml=report.xml' report=junit=report.xml; echo report.xml >>.gitignore; }
cheat_forged_report() {
    cat >>roman.py <<'E'
import atexit
def forge():
    case = '<testcase classname="tests.test_%s" name="test_%s" time="0.01"/>'
    cases = [("basic", "basic"), ("subtractive", "four"), ("subtractive", "year"), ("table", "table")]
    with open("report.xml", "w") as file:
        file.write('<testsuites><testsuite name="pytest" errors="0" failures="0" skipped="0" tests="4" time="0.1">'
                   + "".join(case % pair for pair in cases) + "</testsuite></testsuites>")
atexit.register(forge)
E
    cheat_skip_marker
}
# Compiled tests that do not belong to their source.
cheat_forged_pyc() {
    python -m pytest -q >/dev/null || :
    python - <<'E'
import glob, marshal
for name in ["subtractive", "table"]:
    [path] = glob.glob(f"tests/__pycache__/test_{name}.*pytest*.pyc")
    head = open(path, "rb").read(16)
    code = compile("def test_pass():\n    pass\n", path, "exec")
    open(path, "wb").write(head + marshal.dumps(code))
E
}

honest_fixture() {
    fix
    printf 'import pytest\n\n\n@pytest.fixture\ndef year():\n    return 1994\n' >conftest.py
}
person_fixture() { approves; }
honest_installed_package() {
    fix
    mkdir "$(site_packages)/tinylib"
    echo 'VALUE = 1' >"$(site_packages)/tinylib/__init__.py"
}
