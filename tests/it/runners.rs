//! Known test runners, end to end: their configuration, their programs and their tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::cheats::error;
use crate::verified::{DONE, Desk};

/// The check of most tests, and a failing test for it.
const UNITTEST: &str = "python3 -m unittest discover -s tests";
const FAILING: &str = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        \
    self.assertEqual(open('code.txt').read().strip(), 'fixed')\n";

/// A repository with a failing test.
fn python() -> Desk {
    let d = Desk::new();
    d.commit("tests/test_a.py", FAILING);
    d.commit("code.txt", "broken\n");
    d
}

/// Writes an executable shell script.
fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Puts a directory in front of the PATH, with a program like pytest that only looks at the code and its configuration.
fn with_pytest(d: &mut Desk) {
    let bin = d.path("bin");
    program(&bin.join("pytest"), "grep -qs collect-only pyproject.toml || grep -q fixed code.txt");
    d.w.set("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
}

/// The error of an iteration that did `turn`, and the notes on it.
#[track_caller]
fn refused(d: &Desk, flags: &[&str], turn: &str) -> String {
    let agent = d.agent(&[&format!("{turn}; {DONE}")]);
    error(&d.result(1, &[flags, &["-n", "1"]].concat(), &agent), 1)
}

/// Insists that a loop whose agent did `turn` is complete.
#[track_caller]
fn accepted(d: &Desk, flags: &[&str], turn: &str) {
    let agent = d.agent(&[&format!("{turn}; {DONE}")]);
    let result = d.result(0, &[flags, &["-n", "1"]].concat(), &agent);
    assert_eq!(error(&result, 1), "", "{result}");
}

#[test]
fn file_that_hides_a_module_of_the_runner_needs_approval() {
    for (file, expected) in [
        ("unittest.py", "unittest.py (hides a module of the test runner)"),
        ("argparse/__init__.py", "argparse/__init__.py (hides a module of the test runner)"),
        ("sitecustomize.py", "sitecustomize.py"),
    ] {
        let d = python();
        let turn = format!("mkdir -p $(dirname {file}); echo 'import os; os._exit(0)' >{file}");
        let error = refused(&d, &["--check", UNITTEST], &turn);
        assert!(error.starts_with(&format!("protected files were changed: {expected}")), "{error}");
    }
}

#[test]
fn configuration_needs_approval_and_the_rest_of_its_file_may_change() {
    let option = "[tool.pytest.ini_options]\\naddopts = \"--collect-only\"";
    for (turn, expected) in [
        (format!("printf '{option}' >>pyproject.toml"), "pyproject.toml (tool.pytest)"),
        ("mkdir -p a/b; echo >a/b/conftest.py".into(), "a/b/conftest.py"),
        ("echo >pytest.ini".into(), "pytest.ini"),
    ] {
        let mut d = python();
        with_pytest(&mut d);
        d.commit("pyproject.toml", "[project]\nname = \"x\"\n");
        let error = refused(&d, &["--check", "pytest -q"], &turn);
        let last = error.lines().next().unwrap();
        assert_eq!(last, format!("protected files were changed: {expected}"), "{error}");
        assert!(d.prompt(1).contains("configuration of pytest and the programs"), "{}", d.prompt(1));
        assert!(!d.prompt(1).contains("pyproject.toml"), "{}", d.prompt(1));
    }
    let mut d = python();
    with_pytest(&mut d);
    d.commit("pyproject.toml", "[project]\nname = \"x\"\n");
    d.commit(".gitignore", "out/\n.venv/\n");
    let turn = "echo 'dependencies = [\"y\"]' >>pyproject.toml; mkdir -p out .venv/lib/python3/site-packages; \
                touch out/conftest.py .venv/lib/python3/site-packages/conftest.py; echo fixed >code.txt";
    accepted(&d, &["--check", "pytest -q"], turn);
}

#[test]
fn program_that_hides_another_in_path_needs_approval() {
    for (check, name, turn) in
        [("make test", "make", "make"), ("sh check.sh", "grep", "grep"), ("python3 check.py", "cat", "cat")]
    {
        let mut d = Desk::new();
        d.commit("Makefile", ".PHONY: test\ntest:\n\tfalse\n");
        d.commit("check.sh", "grep -q fixed code.txt\n");
        d.commit("check.py", "import subprocess, sys\nsys.exit(subprocess.call(['cat', 'fixed']))\n");
        let bin = d.path("bin");
        fs::create_dir(&bin).unwrap();
        d.w.set("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        let turn = format!("printf '#!/bin/sh\\nexit 0' >'{0}/{turn}'; chmod +x '{0}/{turn}'", bin.display());
        let agent = d.agent(&[&format!("{turn}; {DONE}"), &format!("touch x; {DONE}")]);
        let mut follower = d.w.follow(&d.words(&["--check", check, "-n", "2"], &agent));
        assert_eq!(follower.wait(&d.w), 1, "{}", follower.output());
        let file = bin.join(name).display().to_string();
        let report = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
        let changed = report["iterations"][0]["verdict"]["changed"].to_string();
        assert!(changed.contains(&format!("program {name}: {file}")), "{check}: {changed}");
        d.w.swarm(&["ralph", "approve", "a"]).ok().says(&format!("program {name}: {file}"));
    }
}

#[test]
fn programs_that_hide_no_other_can_be_installed() {
    let mut d = python();
    with_pytest(&mut d);
    let bin = d.path("bin").display().to_string();
    let turn =
        format!("printf '#!/bin/sh\\n' >'{bin}/new-tool'; chmod +x '{bin}/new-tool'; echo fixed >code.txt");
    accepted(&d, &["--check", "pytest"], &turn);
    let report = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    let proofs = report["iterations"][0]["verdict"]["proofs"].to_string();
    assert!(proofs.contains("2 programs of the checks unchanged since the baseline"), "{proofs}");
}

/// An ignored Python environment with a runner in it.
fn venv(d: &Desk) {
    d.commit(".gitignore", ".venv/\nnode_modules/\n__pycache__/\n");
    let packages = d.w.work().join(".venv/lib/python3.11/site-packages");
    fs::create_dir_all(packages.join("_pytest")).unwrap();
    fs::write(d.w.work().join(".venv/pyvenv.cfg"), "").unwrap();
    fs::write(packages.join("_pytest/main.py"), "pass\n").unwrap();
}

#[test]
fn startup_hooks_and_the_runner_in_a_dependency_folder_need_approval() {
    let packages = ".venv/lib/python3.11/site-packages";
    for (file, expected) in
        [("x.pth", "x.pth"), ("_pytest/main.py", "_pytest/"), ("sitecustomize.py", "sitecustomize.py")]
    {
        let mut d = python();
        with_pytest(&mut d);
        venv(&d);
        let turn = format!("echo 'import os' >{packages}/{file}; echo fixed >code.txt");
        let expected = format!("protected files were changed: {packages}/{expected}");
        assert_eq!(refused(&d, &["--check", "pytest"], &turn), expected);
    }
    let mut d = python();
    with_pytest(&mut d);
    venv(&d);
    let turn = format!(
        "mkdir -p {packages}/new {packages}/_pytest/__pycache__; echo >{packages}/new/__init__.py; \
         echo >{packages}/_pytest/__pycache__/main.pyc; cp {packages}/_pytest/main.py m; mv m {packages}/_pytest/main.py; \
         echo fixed >code.txt"
    );
    accepted(&d, &["--check", "pytest"], &turn);
    d.w.swarm(&["why", "a"]).ok().says("note: the installed dependencies changed: .venv\n");
}

#[test]
fn dependencies_of_a_package_may_change_and_its_scripts_may_not() {
    let package = |script: &str, more: &str| {
        format!(r#"{{"scripts": {{"test": "{script}"}}, "dependencies": {{{more}}}}}"#)
    };
    let test = "require('node:test')('a', () => { require('node:fs').accessSync('fixed'); });\n";
    let desk = || {
        let d = Desk::new();
        d.commit("package.json", &package("node --test", ""));
        d.commit("test/a.test.js", test);
        d.commit(".gitignore", "node_modules\n");
        fs::create_dir_all(d.w.work().join("node_modules/.bin")).unwrap();
        d
    };
    let d = desk();
    let turn = format!(
        "echo '{}' >package.json; mkdir -p node_modules/y; echo >node_modules/y/index.js; touch fixed",
        package("node --test", r#""y": "1""#).replace("{\"test\"", r#"{"start": "node x.js", "test""#)
    );
    accepted(&d, &["--check", "npm test --silent"], &turn);
    d.w.swarm(&["why", "a"]).ok().says("note: the installed dependencies changed: node_modules\n");
    for (turn, expected) in [
        (format!("echo '{}' >package.json", package("true", "")), "package.json (scripts.test)"),
        ("echo 'script-shell=/bin/true' >.npmrc".into(), ".npmrc"),
        ("echo 'script-shell=/bin/true' >~/.npmrc".into(), "/.npmrc"),
        (
            "printf '#!/bin/sh\\n' >node_modules/.bin/node; chmod +x node_modules/.bin/node".into(),
            "node_modules/.bin/node",
        ),
    ] {
        let error = refused(&desk(), &["--check", "npm test --silent"], &turn);
        let first = error.lines().next().unwrap();
        assert!(first.starts_with("protected files were changed: ") && first.contains(expected), "{error}");
    }
}

#[test]
fn files_that_make_reads_need_approval() {
    let d = Desk::new();
    d.commit("Makefile", "test:\n\tsh unit.sh\n");
    d.commit("unit.sh", "test -e fixed\n");
    accepted(&d, &["--check", "make test"], "printf 'run:\\n\\techo\\n' >>Makefile; touch fixed");
    let makefile = "-include local.mk\ntest: unit\n\t$(CHECK)\nunit:\n\tsh unit.sh\nCHECK ?= false\n";
    for (turn, expected) in [
        ("echo CHECK=true >local.mk", "local.mk"),
        ("printf 'test:\\n\\ttrue\\n' >GNUmakefile", "GNUmakefile (target test)"),
        ("touch test unit", "test"),
        ("mkdir test; touch unit", "test"),
        ("echo >unit.sh", "unit.sh"),
    ] {
        let d = Desk::new();
        d.commit("Makefile", makefile);
        d.commit("unit.sh", "test -e fixed\n");
        let error = refused(&d, &["--check", "make test"], turn);
        let first = error.lines().next().unwrap();
        assert_eq!(first, format!("protected files were changed: {expected}"), "{error}");
    }
}

#[test]
fn changed_tests_are_listed_and_new_tests_are_free() {
    let test = "tests/test_b.py";
    let turn =
        format!("sed 's/fixed/broken/' tests/test_a.py >t; mv t tests/test_a.py; cp tests/test_a.py {test}");
    let d = python();
    accepted(&d, &["--check", UNITTEST], "echo '# done' >>tests/test_a.py; echo fixed >code.txt");
    d.w.swarm(&["why", "a"]).ok().says("note: changed test files: tests/test_a.py\n");
    d.w.swarm(&["report", "a"]).ok().says("changed test files: tests/test_a.py");
    let report = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    assert_eq!(report["iterations"][0]["verdict"]["changed_tests"], serde_json::json!(["tests/test_a.py"]));

    let d = python();
    let flags = ["--check", UNITTEST, "--protect-tests"];
    assert_eq!(refused(&d, &flags, &turn), "protected files were changed: tests/test_a.py");
    assert!(
        d.prompt(1).contains("the test files that existed before the first iteration"),
        "{}",
        d.prompt(1)
    );
    let d = python();
    accepted(&d, &flags, &format!("cp tests/test_a.py {test}; echo fixed >code.txt"));
    let ran = d.run(&["--check", "true", "--protect-tests"], &d.agent(&[DONE])).code(2);
    ran.warns("--protect-tests requires a check with a known test runner").warns("--protect GLOB");
}

#[test]
fn bytecode_written_by_the_agent_is_not_executed() {
    let d = python();
    let forge = "import importlib.util as u, importlib._bootstrap_external as b, os\n\
                 s = os.stat('tests/test_a.py')\n\
                 code = compile('import unittest', 'tests/test_a.py', 'exec')\n\
                 f = u.cache_from_source('tests/test_a.py')\n\
                 os.makedirs(os.path.dirname(f), exist_ok=True)\n\
                 open(f, 'wb').write(b._code_to_timestamp_pyc(code, int(s.st_mtime), s.st_size))\n";
    fs::write(d.path("forge.py"), forge).unwrap();
    let turn = format!(
        "python3 '{}'; touch x; python3 -m unittest discover -s tests 2>\"$D/fooled\"",
        d.path("forge.py").display()
    );
    let agent = d.agent(&[&format!("{turn}; {DONE}")]);
    let result = d.result(1, &["--check", UNITTEST, "-n", "1"], &agent);
    assert!(!d.read("fooled").contains("FAILED"), "{}", d.read("fooled"));
    assert_eq!(result["iterations"][0]["check_results"][0]["passed"], false, "{result}");
}

#[test]
fn test_runner_from_the_settings_is_watched() {
    let d = Desk::new();
    program(&d.path("mytests"), "grep -qs skip my.ini || test -e fixed");
    let check = d.path("mytests").display().to_string();
    d.commit("t/a.my", "1\n");
    d.w.write("swarm.toml", "[runners.mytests]\nconfig = [\"my.ini#run\"]\ntests = [\"t/**\"]\n");
    d.w.swarm(&["config", "check"]).ok();
    d.w.swarm(&["config", "show"]).ok().says("runners.mytests.tests");
    assert_eq!(
        refused(&d, &["--check", &check], "printf '[run]\\nskip=1\\n' >my.ini"),
        "protected files were changed: my.ini (run)"
    );
    let turn = "echo 2 >t/a.my; touch fixed";
    assert_eq!(
        refused(&d, &["--check", &check, "--protect-tests"], turn),
        "protected files were changed: t/a.my"
    );
}
