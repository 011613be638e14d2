use super::*;
use crate::runners;
use crate::test_gates::{OwnCanary, TestGates};

fn used(check: &str) -> RunnerUse {
    runners::recognize(&runners::table(), check).remove(0)
}

#[test]
fn a_canary_is_placed_where_the_check_looks_for_tests() {
    let dirs = ["tests/", "tests/unit/", "web/spec/", "src/"];
    let files = ["state/Cargo.toml", "crates/core/Cargo.toml"];
    for (check, tests, expected) in [
        ("pytest", &[][..], &[""][..]),
        ("pytest", &["tests/unit/test_a.py", "tests/test_b.py"], &["tests/", "tests/unit/"]),
        ("pytest", &["x/test_a.py", "y/test_b.py", "y/test_c.py"], &["y/", "x/"]),
        ("pytest -q tests/unit", &["tests/test_b.py"], &["tests/unit/", "tests/"]),
        ("pytest tests/unit/test_a.py::test_b .", &["tests/test_b.py"], &["tests/", ""]),
        ("pytest -k fast -n 2", &["tests/test_b.py"], &["tests/", ""]),
        ("python3 -m unittest discover -s tests", &[], &["tests/", ""]),
        ("node --test", &[], &["test/", ""]),
        ("node --test 'tests/**/*.test.js'", &[], &["tests/", "test/"]),
        ("cd web && node --test spec", &["web/a.test.js", "b.test.js"], &["web/spec/", "web/"]),
        ("cargo test", &[], &["tests/"]),
        ("cargo test", &["tests/it/main.rs", "a/tests/b.rs"], &["a/tests/", "tests/"]),
        ("cargo test -p core", &["tests/a.rs"], &["crates/core/tests/", "tests/"]),
        ("cargo test --manifest-path state/Cargo.toml", &[], &["state/tests/", "tests/"]),
        ("cargo test -p nothing src", &[], &["tests/"]),
    ] {
        let used = used(check);
        let template = used.runner.canary.clone().unwrap();
        let tests: Vec<String> = tests.iter().map(|file| (*file).to_owned()).collect();
        let is_dir = |dir: &str| dirs.contains(&dir);
        let found = placements(&used, &template, &tests, &is_dir, &|file| files.contains(&file));
        assert_eq!(found, expected, "{check}");
    }
}

fn result(passed: bool, tests: Option<(u64, u64)>) -> CheckResult {
    let tests = tests.map(|(run, failed)| TestCounts { run, failed, skipped: 0 });
    CheckResult { passed, cut: false, tests, ..CheckResult::not_run("pytest") }
}

#[test]
fn the_baseline_decides_whether_a_canary_applies() {
    let (applies, undecided) = (Some(CanaryEffect::Applies), Some(CanaryEffect::Undecided));
    let green = || result(true, Some((2, 0)));
    let red = || result(false, Some((2, 1)));
    for (check, base, now, has_token, expected) in [
        ("pytest", green(), result(false, None), true, &applies),
        ("pytest", green(), result(false, None), false, &applies),
        ("pytest", green(), green(), false, &None),
        ("pytest", red(), red(), true, &applies),
        ("pytest -q", red(), result(false, Some((3, 2))), false, &applies),
        // All tests were counted, and the canary was not one of them.
        ("pytest", red(), red(), false, &None),
        ("pytest -x", red(), red(), false, &undecided),
        ("pytest --maxfail=1", red(), red(), false, &undecided),
        ("cargo test", red(), red(), false, &undecided),
        ("cargo test --no-fail-fast", red(), red(), false, &None),
        // The check could not start.
        ("pytest", result(false, None), result(false, None), false, &undecided),
        ("pytest", red(), green(), false, &None),
    ] {
        let run = CanaryRun { result: now.clone(), has_token, tests: now.tests, timed_out: false };
        assert_eq!(
            at_base(Some(&used(check)), &base, &run),
            *expected,
            "{check} {base:?} {now:?} {has_token}"
        );
    }
    let (base, now) = (result(true, None), CheckResult::not_run("pytest"));
    let run = CanaryRun { result: now, has_token: false, tests: None, timed_out: false };
    assert_eq!(at_base(None, &base, &run), undecided, "a run that was cut proves nothing");
}

#[test]
fn check_that_passes_with_a_failing_test_fails_the_proof() {
    let canary = |effect| Canary {
        check: "pytest".into(),
        runner: "pytest".into(),
        files: vec!["test_{id}.py".into()],
        text: "{token}".into(),
        package: String::new(),
        effect,
    };
    let ignored = CanaryEffect::Ignored("pytest does not run a new test in tests".into());
    let cut = CheckResult::not_run("pytest");
    for (effect, result, timed_out, outcome) in [
        (CanaryEffect::Applies, result(true, None), false, ProofOutcome::Fails),
        (CanaryEffect::Applies, result(false, None), false, ProofOutcome::Holds),
        (CanaryEffect::Applies, result(false, None), true, ProofOutcome::Unproven),
        (CanaryEffect::Applies, cut, false, ProofOutcome::Unproven),
        (CanaryEffect::Undecided, result(false, None), false, ProofOutcome::Holds),
        (CanaryEffect::Undecided, result(true, None), false, ProofOutcome::Unproven),
        (ignored, result(true, None), false, ProofOutcome::Unproven),
    ] {
        let run = CanaryRun { result, has_token: false, tests: None, timed_out };
        let proof = prove(&canary(effect), &run);
        assert_eq!((proof.layer, proof.outcome), (Layer::Canary, outcome), "{proof:?}");
    }
}

#[test]
fn users_canary_comes_after_the_canary_of_a_known_runner() {
    let own = OwnCanary::parse("t/x.sh=echo {token}; exit 1").unwrap();
    let tests = TestGates { canaries: vec![own], ..TestGates::default() };
    let gates = Gates { checks: vec!["pytest".into(), "make test".into()], tests, ..Gates::default() };
    let uses = runners::recognize(&runners::table(), "pytest");
    let files = |gates: &Gates, check: &str| -> Vec<String> {
        candidates(gates, check, &uses).into_iter().map(|(_, canary)| canary.files.join(" ")).collect()
    };
    assert_eq!(files(&gates, "pytest"), ["test_swarm_canary_{id}.py", "t/x.sh"]);
    assert_eq!(files(&gates, "make test"), ["t/x.sh"]);
    let tests = TestGates { no_canary: true, ..TestGates::default() };
    assert_eq!(files(&Gates { tests, ..gates }, "pytest"), [""; 0]);
}

#[test]
fn tried_places_of_a_canary_are_named() {
    let files = ["tests/unit/a.py".to_owned(), "a.py".to_owned()];
    assert_eq!(ignored("pytest", &files), "pytest does not run a new test in tests/unit or ./");
    assert_eq!(ignored("", &files[..1]), "the check does not run tests/unit/a.py");
    assert_eq!(filled("{id} {token} {package}", "0f", "main"), "0f 0f main");
}

#[test]
fn package_of_a_neighboring_file_is_found() {
    let pattern = r"(?m)^package\s+(\w+)";
    assert_eq!(package_in("// A comment.\npackage main\n", pattern).as_deref(), Some("main"));
    assert_eq!(package_in("text", pattern), None);
    assert_eq!(package_in("package main", "("), None);
}
