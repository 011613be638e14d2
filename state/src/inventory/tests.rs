use super::*;
use crate::runners;

/// Formats counts as `RUN/FAILED/SKIPPED`.
fn text(counts: TestCounts) -> String {
    format!("{}/{}/{}", counts.run, counts.failed, counts.skipped)
}

use SummaryFormat as F;

/// Outputs that runners printed, with the counts in them.
const SAMPLES: &[(F, &str, Option<&str>)] = &[
    (F::Pytest, "a.py .s\n== 6 passed, 2 skipped, 2 xfailed in 0.33s ===\n", Some("6/0/4")),
    (F::Pytest, "6 passed, 2 skipped, 2 xfailed in 0.36s\n", Some("6/0/4")),
    (F::Pytest, "=== 1 failed, 5 passed, 1 warning, 2 errors in 61.20s (0:01:01) ===", Some("8/3/0")),
    (F::Pytest, "============ 10 deselected in 0.10s ============", Some("0/0/0")),
    (F::Pytest, "==== no tests ran in 0.01s ====", Some("0/0/0")),
    (F::Pytest, "10 tests collected in 0.06s\n", Some("0/0/0")),
    (F::Pytest, "1 error in 0.64s", Some("1/1/0")),
    (
        F::Pytest,
        "\x1b[32m=== \x1b[32m\x1b[1m4 passed\x1b[0m, \x1b[33m1 skipped\x1b[0m\x1b[32m in 0.04s\x1b[0m\x1b[32m ===\x1b[0m\n",
        Some("4/0/1"),
    ),
    (F::Pytest, "..sx..   [100%]\n", None),
    (F::Pytest, "it says: 5 passed in 3s of the race\n", None),
    (F::Unittest, "----\nRan 4 tests in 0.005s\n\nOK (skipped=1, expected failures=1)\n", Some("2/0/2")),
    (F::Unittest, "Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)\n", Some("4/2/1")),
    (F::Unittest, "Ran 1 test in 0.001s\n\nOK\n", Some("1/0/0")),
    (F::Unittest, "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", Some("0/0/0")),
    (F::Unittest, "Ran 3 tests in 0.1s\n", None),
    (
        F::Libtest,
        "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s\n\
             test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n",
        Some("5/1/1"),
    ),
    (F::Libtest, "error[E0425]: cannot find value `x`\n", None),
    (F::Nextest, "     Summary [   0.005s] 3 tests run: 2 passed, 1 failed, 4 skipped\n", Some("3/1/4")),
    (F::Nextest, "     Summary [   0.01s] 2/3 tests run: 1 passed, 1 failed, 0 skipped", Some("2/1/0")),
    (
        F::Tap,
        "1..4\n# tests 4\n# suites 0\n# pass 2\n# fail 0\n# cancelled 0\n# skipped 1\n# todo 1\n",
        Some("2/0/2"),
    ),
    (F::Tap, "ℹ tests 4\nℹ pass 2\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\n", Some("3/1/1")),
    (
        F::Tap,
        "ok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no\nnot ok 4 # TODO later\n    ok 1 - sub\n1..4",
        Some("2/1/2"),
    ),
    (F::Tap, "1..0 # skip all\n", Some("0/0/0")),
    (F::Tap, "okay\n", None),
    (F::Jest, "Tests:       1 failed, 1 skipped, 1 todo, 2 passed, 5 total\n", Some("3/1/2")),
    (F::Jest, "Test Suites: 1 passed, 1 total\n", None),
    (
        F::Vitest,
        "\x1b[2m Test Files \x1b[22m 1 passed (1)\n\x1b[2m      Tests \x1b[22m \x1b[1m\x1b[32m2 passed\x1b[39m\x1b[22m\x1b[2m | \x1b[22m\x1b[33m1 skipped\x1b[39m\x1b[2m | \x1b[22m\x1b[90m1 todo\x1b[39m\x1b[90m (4)\x1b[39m\n",
        Some("2/0/2"),
    ),
    (F::Vitest, "      Tests  1 failed | 2 passed | 1 expected fail (4)\n", Some("3/1/1")),
    (F::Mocha, "\n  3 passing (6ms)\n  1 pending\n  1 failing\n", Some("4/1/1")),
    (F::Mocha, "no test passing\n", None),
    (F::Go, "ok  \tx/a\t0.1s\nok  \tx/b\t(cached)\n?   \tx/c\t[no test files]\n", Some("2/0/0")),
    (F::Go, "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tx/a\t0.1s\nok  \tx/b\t0.1s\n", Some("2/1/0")),
    (F::Go, "--- PASS: TestA (0.00s)\n    --- SKIP: TestA/b (0.00s)\nok  \tx/a\t0.1s\n", Some("1/0/1")),
    (F::Go, "FAIL\tx/a [build failed]\n", Some("1/1/0")),
    (F::Go, "ok  \tx/a\t0.1s [no tests to run]\n", Some("0/0/0")),
    (
        F::Go,
        "{\"Time\":\"t\",\"Action\":\"pass\",\"Package\":\"a\",\"Test\":\"TestA\"}\n{\"Action\":\"pass\",\"Package\":\"a\"}\n",
        Some("1/0/0"),
    ),
    (F::Rspec, "3 examples, 1 failure, 1 pending\n", Some("2/1/1")),
    (F::Rspec, "1 example, 0 failures\n", Some("1/0/0")),
    (F::Phpunit, "OK (3 tests, 4 assertions)\n", Some("3/0/0")),
    (
        F::Phpunit,
        "Tests: 5, Assertions: 5, Errors: 1, Failures: 1, Skipped: 1, Incomplete: 1.\n",
        Some("3/2/2"),
    ),
    (F::Ctest, "66% tests passed, 1 tests failed out of 3\n", Some("3/1/0")),
    (
        F::Ctest,
        "2/3 Test #2: b ...***Skipped   0.00 sec\n100% tests passed, 0 tests failed out of 3\n",
        Some("2/0/1"),
    ),
    (
        F::Dotnet,
        "Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 9 ms - a.dll (net8.0)\n",
        Some("3/0/1"),
    ),
    (
        F::Maven,
        "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.1 s -- in A\n[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 1\n",
        Some("1/0/1"),
    ),
    (F::None, "3 passed in 0.1s", None),
];

#[test]
fn summaries_of_runners_are_counted() {
    for (format, output, expected) in SAMPLES {
        assert_eq!(count(*format, output).map(text).as_deref(), *expected, "{format:?}: {output}");
    }
}

#[test]
fn the_counts_of_all_runners_of_a_check_are_added() {
    let uses = runners::recognize(&runners::table(), "pytest && cargo test");
    let output =
        "3 passed in 0.1s\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n";
    let counts = |check, shortened| count_all(&uses, check, output, shortened).map(text);
    assert_eq!(counts("pytest && cargo test", false).as_deref(), Some("5/0/1"));
    assert_eq!(counts("pytest && cargo test", true), None, "a part of a sum proves nothing");
    assert_eq!(counts("make test", false), None);
}

fn counts(text: &str) -> TestCounts {
    let numbers: Vec<u64> = text.split('/').map(|number| number.parse().unwrap()).collect();
    TestCounts { run: numbers[0], failed: numbers[1], skipped: numbers[2] }
}

fn known(text: &str) -> KnownTests {
    KnownTests { counts: counts(text), first_run: None }
}

#[test]
fn approved_tests_are_named_with_those_of_the_baseline() {
    let uses = runners::recognize(&runners::table(), "pytest");
    let approved = KnownTests { first_run: Some(5), ..known("2/0/0") };
    for (now, outcome, found) in [
        ("2/0/0", ProofOutcome::Holds, "2 tests ran, 5 at the baseline, approved now 2"),
        ("1/0/0", ProofOutcome::Fails, "1 test ran, 5 at the baseline, approved now 2"),
    ] {
        let proof = prove(&uses, "pytest", Some(approved), Some(counts(now)), false).unwrap();
        assert_eq!((proof.outcome, proof.found.as_str()), (outcome, found), "{now}");
    }
    let tests = ReportedTests { counts: counts("2/0/0"), ..ReportedTests::default() };
    let now = KnownReport { path: "r.xml".into(), tests: Some(tests), ..KnownReport::default() };
    let base = KnownReport { first_run: Some(5), ..now.clone() };
    let expected = "r.xml: 2 tests ran, 5 at the baseline, approved now 2";
    assert_eq!(prove_report(Some(&base), &now).found, expected);
}

#[test]
fn fewer_tests_or_more_skipped_ones_fail() {
    let uses = runners::recognize(&runners::table(), "pytest");
    for (before, now, outcome, found) in [
        (Some("12/3/1"), Some("12/0/1"), ProofOutcome::Holds, "12 tests ran, 12 at the baseline"),
        (Some("12/3/1"), Some("15/0/0"), ProofOutcome::Holds, "15 tests ran, 12 at the baseline"),
        (Some("12/3/0"), Some("9/0/0"), ProofOutcome::Fails, "9 tests ran, 12 at the baseline"),
        (
            Some("2/1/0"),
            Some("1/0/1"),
            ProofOutcome::Fails,
            "1 test ran, 2 at the baseline (1 skipped, 0 at the baseline)",
        ),
        (Some("2/1/0"), Some("2/0/1"), ProofOutcome::Fails, "1 test is skipped, 0 at the baseline"),
        (
            Some("2/1/0"),
            None,
            ProofOutcome::Fails,
            "the runner printed no count of tests; at the baseline, 2 tests ran",
        ),
        (None, Some("2/0/0"), ProofOutcome::Unproven, "2 tests ran; their number at the baseline is unknown"),
        (
            None,
            None,
            ProofOutcome::Unproven,
            "the runner printed no count of tests, also not at the baseline",
        ),
    ] {
        let proof = prove(&uses, "pytest", before.map(known), now.map(counts), false).unwrap();
        assert_eq!((proof.outcome, proof.found.as_str()), (outcome, found), "{before:?} {now:?}");
    }
    assert_eq!(prove(&uses, "make test", None, None, false), None, "an unknown runner");
    let cut = prove(&uses, "pytest", Some(known("2/0/0")), None, true).unwrap();
    assert_eq!(cut.outcome, ProofOutcome::Unproven);
}

const JUNIT: &str = r#"<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" tests="4">
<testcase classname="t.a" name="one" /><testcase classname="t.a" name="two[&lt;F at 0x7f21&gt;]"></testcase>
<testcase classname="t.a" name="three"><skipped type="pytest.skip" message="no">why</skipped></testcase>
<testcase classname="t.a" name="four"><failure message="x">E</failure></testcase></testsuite></testsuites>"#;

#[test]
fn reports_are_read() {
    let read = |format: ReportFormat, text: &str| {
        format.read(text).map(|tests| {
            let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
            format!("{} [{}] [{}]", self::text(tests.counts), names(&tests.ran), names(&tests.skipped))
        })
    };
    let junit = |text: &str| read(ReportFormat::Junit, text);
    assert_eq!(junit(JUNIT).unwrap(), "3/1/1 [t.a::four t.a::one t.a::two[&lt;F at 0x&gt;]] [t.a::three]");
    assert_eq!(junit("<testsuite/>").unwrap(), "0/0/0 [] []");
    assert_eq!(junit("<html><p></html>"), Err("it is not a JUnit report".to_owned()));
    assert_eq!(junit("3 passed"), Err("it is not a JUnit report".to_owned()));
    assert_eq!(junit(""), Err("it is not a JUnit report".to_owned()));
    let broken = junit("<testsuite><testcase name=").unwrap_err();
    assert!(broken.starts_with("it is not valid XML: "), "{broken}");
    let tap = "TAP version 14\nok 1 - a\nnot ok 2 b\nok 3 - c # skip\n1..3\n";
    assert_eq!(read(ReportFormat::Tap, tap).unwrap(), "2/1/1 [a b] [c]");
    assert_eq!(read(ReportFormat::Tap, "<testsuite/>"), Err("it is not a TAP report".to_owned()));
    let lines = concat!(
        r#"{ "type": "suite", "event": "started", "test_count": 3 }"#,
        "\n",
        r#"{ "type": "test", "event": "started", "name": "a" }"#,
        "\n",
        r#"{ "type": "test", "name": "a", "event": "ok" }"#,
        "\n",
        r#"{ "type": "test", "name": "b", "event": "failed", "stdout": "no\n" }"#,
        "\n",
        r#"{ "type": "test", "name": "c", "event": "ignored" }"#,
        "\n",
    );
    assert_eq!(read(ReportFormat::Libtest, lines).unwrap(), "2/1/1 [a b] [c]");
    assert_eq!(read(ReportFormat::Libtest, "ok"), Err("it is not a libtest JSON report".to_owned()));
}

#[test]
fn a_report_names_the_tests_that_are_missing() {
    let of = |ran: &[&str], skipped: &[&str]| {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let counts = TestCounts { run: ran.len() as u64, failed: 0, skipped: skipped.len() as u64 };
        let tests = ReportedTests { counts, ran: set(ran), skipped: set(skipped) };
        KnownReport { path: "j.xml".into(), tests: Some(tests), ..KnownReport::default() }
    };
    let base = of(&["a", "b", "c", "d", "e"], &["z"]);
    let (all, more) = (["a", "b", "c", "d", "e", "new"], ["y", "z"]);
    for (now, outcome, found) in [
        (of(&all, &more), ProofOutcome::Holds, "j.xml: 6 tests ran, 5 at the baseline"),
        (of(&all[..4], &["e"]), ProofOutcome::Fails, "j.xml: tests of the baseline are skipped: e"),
        (
            of(&["a", "new", "n2", "n3", "n4"], &[]),
            ProofOutcome::Fails,
            "j.xml: tests of the baseline did not run: b, c, d and 1 more",
        ),
    ] {
        let proof = prove_report(Some(&base), &now);
        assert_eq!((proof.outcome, proof.found.as_str()), (outcome, found));
    }
    let stale = KnownReport {
        tests: None,
        trouble: Some("the report is older than the check".into()),
        ..base.clone()
    };
    assert_eq!(prove_report(Some(&base), &stale).outcome, ProofOutcome::Fails);
    assert_eq!(prove_report(Some(&stale), &stale).outcome, ProofOutcome::Unproven);
    assert_eq!(prove_report(None, &base).outcome, ProofOutcome::Unproven);
}
