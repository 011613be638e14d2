//! The replay of changed tests: the old files with the agent's test files must still fail.
//!
//! A check that failed because of tests can pass because the tests were changed, without any work. Once all other gates
//! hold, the daemon runs such a check in a room (see [`crate::rooms`]) that has the old files and the changed tests.
//! Deliberately absent: files and running checks.

use crate::gates::CheckResult;
use crate::notice::named;
use crate::proof::{Layer, Proof, ProofOutcome};

/// Directories whose files belong to tests, by name. The globs of known runners do not match their data and snapshots.
const TEST_DIRS: [&str; 5] = ["test", "tests", "testdata", "__tests__", "__snapshots__"];

/// Programs whose first argument is a script.
const TEST_PROGRAMS: [&str; 8] = ["sh", "bash", "python", "python3", "node", "perl", "ruby", "php"];

/// How many changed test files a finding names.
const MAX_FINDING_FILES: usize = 3;

/// Whether a file belongs to tests by its path, relative to the worker's directory.
pub fn is_test_file(path: &str) -> bool {
    path.ends_with(".snap") || path.split('/').any(|part| TEST_DIRS.contains(&part))
}

/// Of the `required` checks, those that failed in the baseline because of tests.
pub fn red_checks(baseline: &[CheckResult], required: &[String]) -> Vec<String> {
    let fails_tests = |check: &&CheckResult| {
        let has_red_test = || check.tests.map_or_else(|| runs_tests(&check.name), |tests| tests.failed > 0);
        !check.passed && !check.cut && required.contains(&check.name) && has_red_test()
    };
    baseline.iter().filter(fails_tests).map(|check| check.name.clone()).collect()
}

/// Whether a command without counted tests does nothing but run tests, by its words: `make test`, `npm run test:unit`,
/// `sh tests/run.sh`. A linter that reads the tests does not.
fn runs_tests(check: &str) -> bool {
    let parts = check.split(['&', ';', '|', '\n']).map(str::trim).filter(|part| !part.is_empty());
    parts.filter(|part| !part.starts_with("cd ")).all(|part| {
        let words = part.split_whitespace().filter(|word| !word.starts_with('-') && !word.contains('='));
        let mut words = words.skip_while(|word| *word == "env").peekable();
        let program = words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let argument = words.find(|word| *word != "run").unwrap_or_default();
        let is_target = argument.split([':', '-', '_']).next() == Some("test");
        program.contains("test") || is_target || TEST_PROGRAMS.contains(&program) && argument.contains("test")
    })
}

/// Evaluates a replay. `control` is the same run with the old versions of all files, made only if the replay
/// passed; `None` if it did not run.
pub fn prove(replay: &CheckResult, control: Option<&CheckResult>, changed: &[String]) -> Proof {
    let proof = |outcome, found: &str| Proof::of_check(Layer::RedReplay, &replay.name, outcome, found);
    let has_failed = |result: &CheckResult| !result.passed && !result.cut;
    if has_failed(replay) {
        proof(ProofOutcome::Holds, "the changed tests fail with the old files")
    } else if control.is_some_and(has_failed) {
        let files = named(changed, MAX_FINDING_FILES);
        proof(
            ProofOutcome::Fails,
            &format!(
                "it passes only because tests were changed: with all other files as before, it passes too ({files})"
            ),
        )
    } else if replay.cut || control.is_some_and(|control| control.cut) {
        proof(ProofOutcome::Unproven, "with the old files, the changed tests did not end in time")
    } else {
        proof(
            ProofOutcome::Unproven,
            "a fresh checkout of the old files passes too, so the changed tests prove nothing",
        )
    }
}

/// Whether a proof refuses changed tests, so that a person can approve them. The replay of `--fix` names no check.
pub fn refuses_tests(proof: &Proof) -> bool {
    proof.fails() && proof.layer == Layer::RedReplay && proof.check.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::TestCounts;

    fn result(name: &str, passed: bool) -> CheckResult {
        CheckResult { name: name.into(), passed, cut: false, ..CheckResult::not_run(name) }
    }

    #[test]
    fn tests_and_their_data_are_test_files() {
        for (path, expected) in [
            ("tests/a.sh", true),
            ("a/tests/snapshots/table.txt", true),
            ("src/__snapshots__/a", true),
            ("ui/a.snap", true),
            ("tests", true),
            ("src/testing/a.rs", false),
            ("latest/a", false),
            ("spec/openapi.yaml", false),
        ] {
            assert_eq!(is_test_file(path), expected, "{path}");
        }
    }

    #[test]
    fn commands_that_run_tests_are_recognized() {
        for (check, expected) in [
            ("make test", true),
            ("make -C app test", false),
            ("cd app && make test", true),
            ("npm run test:unit", true),
            ("CI=1 pytest -q", true),
            ("./run-tests.sh", true),
            ("sh tests/run.sh", true),
            ("cargo test -q", true),
            ("make lint test", false),
            ("make lint && make test", false),
            ("ruff check tests", false),
            ("mypy tests", false),
            ("sh check.sh", false),
            ("make latest", false),
        ] {
            assert_eq!(runs_tests(check), expected, "{check}");
        }
    }

    #[test]
    fn only_checks_with_failing_tests_are_replayed() {
        let counted = |name: &str, failed| CheckResult {
            tests: Some(TestCounts { run: 3, failed, skipped: 0 }),
            ..result(name, false)
        };
        let baseline = [
            counted("pytest", 1),
            // For example too little coverage.
            counted("pytest --cov", 0),
            result("make test", false),
            result("make lint", false),
            result("go test", true),
            CheckResult::not_run("npm test"),
        ];
        let all: Vec<String> = baseline.iter().map(|check| check.name.clone()).collect();
        assert_eq!(red_checks(&baseline, &all), ["pytest", "make test"]);
        assert_eq!(red_checks(&baseline, &all[1..2]), [""; 0]);
    }

    #[test]
    fn check_that_passes_only_by_changed_tests_is_refused() {
        let (red, green, cut) = (result("t", false), result("t", true), CheckResult::not_run("t"));
        let changed = ["tests/a".to_owned()];
        for (replay, control, expected) in [
            (&red, None, ProofOutcome::Holds),
            (&green, Some(&red), ProofOutcome::Fails),
            // The old files pass in a fresh checkout, for example because an installed package refers to the tree.
            (&green, Some(&green), ProofOutcome::Unproven),
            (&green, Some(&cut), ProofOutcome::Unproven),
            (&green, None, ProofOutcome::Unproven),
            (&cut, None, ProofOutcome::Unproven),
        ] {
            assert_eq!(prove(replay, control, &changed).outcome, expected, "{replay:?} {control:?}");
        }
        let found = prove(&green, Some(&red), &changed).found;
        assert_eq!(
            found,
            "it passes only because tests were changed: with all other files as before, it passes too (tests/a)"
        );
    }
}
