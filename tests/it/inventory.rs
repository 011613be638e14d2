//! The inventory: an iteration does not count if fewer tests ran than before it, until somebody approves.

use crate::canary::{FIX, UNITTEST, project, proofs};
use crate::cheats::error;
use crate::verified::{DONE, Desk};

#[test]
fn deleted_and_skipped_tests_do_not_count() {
    for (cheat, expected) in [
        // The test that fails is deleted, skipped, or expected to fail.
        ("sed -i '/def test_add/,/add(1/d' tests/test_calc.py", "1 test ran, 2 at the baseline"),
        (
            "sed -i 's/    def test_add/    @unittest.skip(1)\\n&/' tests/test_calc.py",
            "1 test ran, 2 at the baseline (1 skipped, 0 at the baseline)",
        ),
        (
            "sed -i 's/    def test_add/    @unittest.expectedFailure\\n&/' tests/test_calc.py",
            "1 test ran, 2 at the baseline (1 skipped, 0 at the baseline)",
        ),
        // A new test hides the skipped one.
        (
            "sed -i 's/    def test_add/    def test_new(self): pass\\n\\n    @unittest.skip(1)\\n&/' tests/test_calc.py",
            "1 test is skipped, 0 at the baseline",
        ),
        (
            "echo 'raise SystemExit(0)' >tests/__main__.py; mv tests/test_calc.py tests/calc_test.py",
            "0 tests ran, 2 at the baseline",
        ),
    ] {
        let d = project();
        let agent = d.agent(&[&format!("{cheat}; {DONE}")]);
        // Newer versions of Python fail if no test runs.
        let check = format!("{UNITTEST} || [ $? = 5 ]");
        let result = d.result(1, &["--check", &check, "-n", "1"], &agent);
        assert_eq!(error(&result, 1), format!("{check}: {expected}"), "{cheat}");
        assert!(d.w.swarm(&["why", "a"]).ok().out.contains(expected));
    }
}

#[test]
fn honest_changes_of_tests_count() {
    let new = "    def test_new(self):\\n        self.assertEqual(add(2, 2), 4)\\n";
    for work in [
        "true",
        // More tests, another order, another file, another directory.
        &format!("printf '\\n{new}' >>tests/test_calc.py"),
        "sed -i 's/test_add/test_zzz/; s/test_zero/test_aaa/' tests/test_calc.py",
        "git mv tests/test_calc.py tests/test_math.py",
        "mkdir tests/unit; touch tests/unit/__init__.py; git mv tests/test_calc.py tests/unit/",
    ] {
        let d = project();
        let agent = d.agent(&[&format!("{FIX}; {work}; {DONE}")]);
        let ran = d.run(&["--check", UNITTEST, "-n", "1"], &agent);
        assert_eq!(ran.code, Some(0), "{work}: {ran:?}");
        assert_eq!(proofs(&d, "inventory")[0].0, "holds", "{work}");
    }
}

#[test]
fn fewer_tests_count_after_approval() {
    let d = project();
    let go = d.path("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let agent = d.agent(&[
        &format!("{FIX}; sed -i '/def test_zero/,$d' tests/test_calc.py; {DONE}"),
        &format!("touch x \"$D/asked\"; read line <'{}'; {DONE}", go.display()),
    ]);
    let mut follower = d.w.follow(&d.words(&["--check", UNITTEST, "-n", "3"], &agent));
    d.w.until("the second iteration runs", || d.path("asked").exists().then_some(()));
    let lost = format!("{UNITTEST}: 1 test ran, 2 at the baseline");
    assert!(d.prompt(2).contains(&lost), "{}", d.prompt(2));
    let why = d.w.swarm(&["why", "a"]).ok().says(&format!("FAIL  {lost}"));
    assert!(why.out.contains("to accept their number: swarm ralph approve a"), "{}", why.out);
    d.w.swarm(&["ralph", "approve", "a"]).ok().says(&format!("approved the tests that ran: {lost}\n"));
    let why = d.w.swarm(&["why", "a"]).ok();
    assert!(!why.out.contains("approve a"), "{}", why.out);
    d.w.swarm(&["ralph", "approve", "a"]).ok().warns("has changed");
    std::fs::write(&go, "go\n").unwrap();
    assert_eq!(follower.wait(&d.w), 0, "{}", follower.output());
    assert_eq!(d.turns(), 2);
    let proof = format!("\n  inventory: {UNITTEST}: 1 test ran, 2 at the baseline, approved now 1\n");
    d.w.swarm(&["why", "a"]).ok().says(&proof);
}

#[test]
fn tests_of_rust_are_counted_and_its_canary_leaves_no_build_results() {
    for (work, code, expected) in [
        ("sed -i 's/a - b/a + b/' src/lib.rs", 0, ""),
        (
            "sed -i 's/#\\[test\\]/&\\n#[i''gnore]/' src/lib.rs",
            1,
            "cargo test --offline: 0 tests ran, 1 at the baseline (1 skipped, 0 at the baseline)",
        ),
    ] {
        let mut d = Desk::new();
        let bin = std::path::Path::new(env!("CARGO")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        d.w.set("PATH", format!("{}:{path}", bin.display()));
        d.commit(".gitignore", "target\nCargo.lock\n");
        d.commit("Cargo.toml", "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        d.commit(
            "src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n",
        );
        let agent = d.agent(&[&format!("{work}; {DONE}")]);
        let result = d.result(code, &["--check", "cargo test --offline", "-n", "1"], &agent);
        assert_eq!(error(&result, 1), expected);
        if code == 0 {
            assert_eq!(proofs(&d, "canary")[0].0, "holds");
        }
        let mut find = d.w.command("find");
        find.args([".", "-name", "*canary*"]);
        assert_eq!(d.w.run(find).ok().out, "");
        assert!(!d.w.work().join("tests").exists());
    }
}

/// A project for `node --test`, with a report.
fn node() -> Desk {
    let d = Desk::new();
    d.commit("calc.js", "exports.add = (a, b) => a - b;\n");
    d.commit(
        "test/calc.test.js",
        "const test = require('node:test');\nconst assert = require('node:assert');\nconst { add } = require('../calc.js');\n\
         test('adds', () => assert.equal(add(1, 2), 3));\ntest('zero', () => assert.equal(add(0, 0), 0));\n",
    );
    d
}

#[test]
fn the_tests_of_a_report_are_named() {
    let check = "node --test --test-reporter=junit --test-reporter-destination=report.xml";
    let flags = ["--check", check, "--report", "junit=report.xml", "-n", "1"];
    for (work, code, expected) in [
        ("sed -i s/-/+/ calc.js", 0, ""),
        (
            "sed -i \"s/^test('adds'/test.skip('adds'/\" test/calc.test.js",
            1,
            "report.xml: tests of the baseline are skipped: test::adds",
        ),
        (
            "sed -i \"s/^test('adds.*/test('new', () => {});/\" test/calc.test.js",
            1,
            "report.xml: tests of the baseline did not run: test::adds",
        ),
        ("rm test/calc.test.js", 1, "report.xml: tests of the baseline did not run: test::adds, test::zero"),
    ] {
        let d = node();
        let agent = d.agent(&[&format!("{work}; {DONE}")]);
        let result = d.result(code, &flags, &agent);
        assert_eq!(error(&result, 1), expected, "{work}");
        let report = std::fs::read_to_string(d.w.work().join("report.xml")).unwrap();
        assert!(!report.contains("canary"), "{report}");
    }
}

#[test]
fn stale_or_invalid_test_report_does_not_count() {
    let d = node();
    let report = "<testsuite><testcase name='a'/></testsuite>";
    let check = format!("[ -e forged ] || echo \"{report}\" >r.xml; grep -q + calc.js");
    let flags = ["--check", &check, "--report", "junit=r.xml", "-n", "1"];
    let forge =
        format!("sed -i s/-/+/ calc.js; echo \"{report}\" >r.xml; touch -d '1 hour' r.xml; touch forged");
    let result = d.result(1, &flags, &d.agent(&[&format!("{forge}; {DONE}")]));
    assert_eq!(error(&result, 1), "r.xml: the report is older than the check");

    let d = node();
    let agent = d.agent(&["true"]);
    let ran = d.run(&["--check", "echo hello >r.xml", "--report", "junit=r.xml", "-n", "1"], &agent).code(1);
    d.w.swarm(&["why", "a"]).ok().says("--report junit=r.xml: it is not a JUnit report");
    assert_eq!(d.turns(), 0, "{ran:?}");
}
