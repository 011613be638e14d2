//! The proof of a loop's result as text: the active layers, their findings, and open questions.
//!
//! `swarm why`, `swarm report` and the JSON result show it, so that "done" never reads as more than it is. Deliberately
//! absent: testing anything; the verdict of an iteration has the results.

use crate::gates::{Gates, Verdict};
use crate::notice::counted;
use crate::proof::{Layer, Proof, ProofOutcome};

/// The proof of one iteration, in phrases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProofSummary {
    /// The conditions that the user requested.
    pub in_force: Vec<String>,
    /// The tested conditions that hold.
    pub holds: Vec<String>,
    /// The conditions that were not tested, each with what could therefore be wrong.
    pub unproven: Vec<String>,
}

/// The layers that the user can request: the layer, its name, the option, and what could be wrong without it.
const REQUESTABLE: [(Layer, &str, &str, &str); 4] = [
    (Layer::Canary, "canary", "--canary", "a check that cannot fail would pass"),
    (Layer::HeldOut, "held-out check", "--final-check", "hard-coded answers would pass"),
    (Layer::CleanRoom, "clean room", "--clean-check", "files that git ignores could make the checks pass"),
    (Layer::RedReplay, "red replay", "--fix", "a change outside the fix could make the checks pass"),
];

impl ProofSummary {
    /// The proof of an iteration. `watched` is the number of watched files; `None` if it is unknown.
    pub fn of(gates: &Gates, verdict: &Verdict, watched: Option<u64>) -> Self {
        let mut summary = Self::default();
        if gates.is_empty() {
            return summary;
        }
        summary.in_force = in_force(gates);
        summary.add_checks(verdict);
        if verdict.promise.is_some_and(crate::promise::Claim::holds) {
            let source =
                verdict.promise_seen.map(|source| format!(" ({})", source.word())).unwrap_or_default();
            summary.holds.push(format!("the agent printed its promise{source}"));
        }
        if !gates.checks.is_empty() {
            summary.add_watched(gates, verdict, watched);
            summary.add_layers(gates, verdict);
        }
        summary
    }

    fn add_checks(&mut self, verdict: &Verdict) {
        let passed = verdict.checks.iter().filter(|check| check.passed).count() as u64;
        if passed > 0 {
            self.holds.push(format!("{} passed", counted(passed, "check")));
        }
        let excused =
            verdict.checks.iter().filter(|check| !check.passed && verdict.excused.contains(&check.name));
        match excused.count() as u64 {
            0 => {}
            count => self.unproven.push(format!(
                "{} failed as before the loop: --allow-preexisting excuses that",
                counted(count, "check")
            )),
        }
    }

    fn add_watched(&mut self, gates: &Gates, verdict: &Verdict, watched: Option<u64>) {
        if gates.allow_changed_checks {
            self.unproven.push("no file is watched (--allow-changed-checks): edited tests would pass".into());
            return;
        }
        let is_unchanged = verdict.changed.is_empty() && verdict.changed_in_checks.is_empty();
        match watched {
            Some(count) if count > 0 && is_unchanged => {
                self.holds.push(format!("{} unchanged", counted(count, "watched file")));
            }
            _ => {}
        }
        if gates.protect.is_empty() && !gates.protect_tests {
            self.unproven
                .push("test files are not watched (--protect-tests): edited tests would pass".into());
        }
    }

    fn add_layers(&mut self, gates: &Gates, verdict: &Verdict) {
        let holding = verdict.proofs.iter().filter(|proof| proof.outcome == ProofOutcome::Holds);
        self.holds.extend(holding.map(named));
        self.unproven.extend(verdict.notes());
        // The later layers are tested only if everything before holds.
        if !verdict.is_complete() {
            return;
        }
        if gates.tests.no_canary {
            self.unproven.push("no canary (--no-canary): a check that cannot fail would pass".into());
        }
        for (layer, word, option, consequence) in REQUESTABLE {
            let is_off = layer == Layer::Canary && gates.tests.no_canary;
            if !is_off && verdict.proofs.iter().all(|proof| proof.layer != layer) {
                self.unproven.push(format!("no {word} ({option}): {consequence}"));
            }
        }
    }
}

/// The conditions for a complete loop that the user requested, or did not turn off.
pub fn in_force(gates: &Gates) -> Vec<String> {
    let count = |count: usize, what| (count > 0).then(|| counted(count as u64, what));
    let flag = |is_set: bool, what: &str| is_set.then(|| what.to_owned());
    let (rooms, has_checks) = (&gates.rooms, !gates.checks.is_empty());
    let found = [
        count(gates.checks.len(), "check"),
        flag(gates.promise.is_some(), "a promise"),
        flag(has_checks && !gates.allow_changed_checks, "watched files"),
        flag(gates.protect_tests, "protected tests"),
        flag(has_checks && !gates.tests.no_canary, "canary"),
        count(gates.tests.reports.len(), "report of tests"),
        flag(rooms.clean_check, "clean room"),
        flag(!rooms.fix.is_empty(), "red replay"),
        count(rooms.final_checks.len(), "held-out check"),
    ];
    found.into_iter().flatten().collect()
}

/// The finding with the name of its layer, if the finding alone would not be understood.
fn named(proof: &Proof) -> String {
    let requested = REQUESTABLE.into_iter().find(|(layer, ..)| *layer == proof.layer).map(|row| row.1);
    let word = requested.or((proof.layer == Layer::Inventory).then_some("inventory"));
    word.map_or_else(|| proof.remark(), |word| format!("{word}: {}", proof.remark()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gates::CheckResult;

    fn check(name: &str, passed: bool) -> CheckResult {
        CheckResult { name: name.into(), passed, ..CheckResult::not_run(name) }
    }

    fn gates(checks: &[&str]) -> Gates {
        Gates { checks: checks.iter().map(|&check| check.to_owned()).collect(), ..Gates::default() }
    }

    #[test]
    fn untested_layers_are_named_with_their_options() {
        let verdict = Verdict { checks: vec![check("pytest", true)], ..Verdict::default() };
        let summary = ProofSummary::of(&gates(&["pytest"]), &verdict, Some(2));
        assert_eq!(summary.in_force, ["1 check", "watched files", "canary"]);
        assert_eq!(summary.holds, ["1 check passed", "2 watched files unchanged"]);
        assert_eq!(
            summary.unproven,
            [
                "test files are not watched (--protect-tests): edited tests would pass",
                "no canary (--canary): a check that cannot fail would pass",
                "no held-out check (--final-check): hard-coded answers would pass",
                "no clean room (--clean-check): files that git ignores could make the checks pass",
                "no red replay (--fix): a change outside the fix could make the checks pass",
            ]
        );
    }

    #[test]
    fn tested_layers_are_not_named_as_missing() {
        let proof = |layer, outcome| Proof::of_check(layer, "pytest", outcome, "found");
        let proofs = vec![
            proof(Layer::Canary, ProofOutcome::Holds),
            proof(Layer::CleanRoom, ProofOutcome::Unproven),
            proof(Layer::RedReplay, ProofOutcome::Holds),
            proof(Layer::HeldOut, ProofOutcome::Holds),
        ];
        let gates = Gates { protect: vec!["tests".into()], ..gates(&["pytest"]) };
        let verdict = Verdict { checks: vec![check("pytest", true)], proofs, ..Verdict::default() };
        let summary = ProofSummary::of(&gates, &verdict, None);
        assert_eq!(
            summary.holds,
            ["1 check passed", "canary: pytest: found", "red replay: pytest: found", "held-out check: found"]
        );
        assert_eq!(summary.unproven, ["pytest: found"]);
    }

    #[test]
    fn all_requested_layers_are_in_force() {
        let text = r#"{"checks": ["a", "b"], "promise": "DONE", "protect_tests": true, "reports": [{"format":
            "junit", "path": "a.xml"}], "clean_check": true, "fix": ["src/**"], "final_checks": ["c"]}"#;
        let found = in_force(&serde_json::from_str(text).unwrap()).join(", ");
        let expected = "2 checks, a promise, watched files, protected tests, canary, 1 report of tests, clean room, \
                        red replay, 1 held-out check";
        assert_eq!(found, expected);
        assert_eq!(in_force(&Gates::default()), [""; 0]);
    }

    #[test]
    fn a_loop_without_checks_has_no_layers() {
        assert_eq!(ProofSummary::of(&gates(&[]), &Verdict::default(), Some(1)), ProofSummary::default());
        let verdict = Verdict { checks: vec![check("a", false)], ..Verdict::default() };
        let summary = ProofSummary::of(&gates(&["a"]), &verdict, None);
        assert_eq!(summary.holds, [""; 0]);
        assert_eq!(summary.unproven.len(), 1, "later layers were not reached: {summary:?}");
    }
}
