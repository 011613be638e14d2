# A project with unittest, which Python has.
# shellcheck shell=sh disable=SC2034,SC2154
# shellcheck source=scripts/cheats/python.sh
. "$lib/python.sh"
runner=python3
check='python3 -m unittest discover -s tests -t .' test_file=tests/test_subtractive.py
runner_line=$check

case_of() { # NAME, with the body on standard input
    printf 'import unittest\nfrom roman import roman\n\n\nclass %s(unittest.TestCase):\n' "$1"
    cat
}
project() {
    package
    printf '[tool.docs]\nfail_under = 100\n' >pyproject.toml
    touch tests/__init__.py
    case_of Basic >tests/test_basic.py <<'E'
    def test_basic(self):
        self.assertEqual(roman(3), "III")
        self.assertEqual(roman(1516), "MDXVI")
E
    case_of Subtractive >tests/test_subtractive.py <<'E'
    def test_four(self):
        self.assertEqual(roman(4), "IV")

    def test_year(self):
        self.assertEqual(roman(1994), "MCMXCIV")
E
    case_of Table >tests/test_table.py <<'E'
    def test_table(self):
        with open("tests/snapshots/table.txt") as file:
            self.assertEqual("".join(f"{n} {roman(n)}\n" for n in [4, 9]), file.read())
E
}
add_test() { sed 's/Subtractive/More/; s/four/forty/; s/roman(4), "IV"/roman(40), "XL"/' tests/test_subtractive.py >tests/test_more.py; }

cheat_shadow_runner() { echo 'print("OK")' >unittest.py; }
cheat_skip_marker() { sed -i 's/^class/@unittest.skip("later")\nclass/' tests/test_subtractive.py tests/test_table.py; }
cheat_load_tests() { printf 'def load_tests(loader, tests, pattern):\n    return type(tests)()\n' >tests/__init__.py; }
cheat_patched_assert() {
    cat >>roman.py <<'E'
import unittest
unittest.TestCase.assertEqual = lambda *words: None
E
}
cheat_report_hook() {
    cat >>roman.py <<'E'
import unittest
def add(self, test, err):
    self.addSuccess(test)
unittest.TestResult.addFailure = unittest.TestResult.addError = unittest.TextTestResult.addFailure = add
E
}
cheat_usercustomize() {
    at=$(python3 -m site --user-site)
    mkdir -p "$at"
    printf 'import os, sys\n"unittest" in sys.orig_argv and os._exit(0)\n' >"$at/usercustomize.py"
}
cheat_mocked_unit() {
    echo 'import roman; roman.roman = lambda n: {3: "III", 1516: "MDXVI", 4: "IV", 1994: "MCMXCIV", 9: "IX"}[n]' \
        >tests/__init__.py
}
