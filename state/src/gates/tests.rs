use proptest::prelude::*;

use super::*;

fn check(name: &str, passed: bool) -> CheckResult {
    CheckResult { name: name.into(), passed, output: String::new(), seconds: 0.0, cut: false, tests: None }
}

#[test]
fn verdict_without_gates_is_not_complete() {
    assert!(!Verdict::default().is_complete());
    assert!(!Verdict { excused: vec!["x".into()], ..Verdict::default() }.is_complete());
}

#[test]
fn all_requested_gates_must_hold() {
    let good = Verdict {
        done_pattern: Some(true),
        promise: Some(Claim::Valid),
        checks: vec![check("a", true), check("b", true)],
        ..Verdict::default()
    };
    assert!(good.is_complete());
    let spoiled = [
        Verdict { done_pattern: Some(false), ..good.clone() },
        Verdict { promise: Some(Claim::Missing), ..good.clone() },
        Verdict { promise: Some(Claim::Rejected), ..good.clone() },
        Verdict { checks: vec![check("a", true), check("b", false)], ..good.clone() },
        Verdict { changed: vec!["tests/a.rs".into()], ..good.clone() },
        Verdict { trouble: Some("the disk is full".into()), ..good.clone() },
    ];
    for verdict in spoiled {
        assert!(!verdict.is_complete(), "{verdict:?}");
        assert_eq!(verdict.remarks().len(), 1, "{verdict:?}");
    }
}

#[test]
fn check_that_failed_in_the_baseline_can_be_excused() {
    let verdict = Verdict {
        checks: vec![check("old", false), check("new", true)],
        excused: vec!["old".into()],
        ..Verdict::default()
    };
    assert!(verdict.is_complete());
    let worse = Verdict { checks: vec![check("old", false), check("new", false)], ..verdict };
    assert!(!worse.is_complete());
    assert_eq!(worse.remarks(), ["the check 'new' failed"]);
}

#[test]
fn loop_with_only_excused_checks_is_not_complete() {
    let verdict =
        Verdict { checks: vec![check("old", false)], excused: vec!["old".into()], ..Verdict::default() };
    assert!(!verdict.is_complete());
    assert!(!Verdict { checks: vec![check("old", true)], ..verdict.clone() }.is_complete());
    assert!(Verdict { promise: Some(Claim::Valid), ..verdict }.is_complete());
    let gates =
        Gates { checks: vec!["old".into(), "new".into()], allow_preexisting: true, ..Gates::default() };
    let spent = |gates: &Gates, failed: &[&str], pattern| {
        gates.is_spent(failed.iter().map(|name| (*name).to_owned()).collect(), pattern)
    };
    assert!(spent(&gates, &["old", "new"], false));
    assert!(!spent(&gates, &["old", "new"], true), "a done pattern is left");
    assert!(!spent(&gates, &["old"], false));
    let strict = Gates { allow_preexisting: false, ..gates.clone() };
    assert!(!spent(&strict, &["old", "new"], false));
    let promise = Promise::new("X").ok();
    assert!(!spent(&Gates { promise, ..gates }, &["old", "new"], false));
    assert!(!spent(&Gates::default(), &[], false), "a loop without gates asks for none");
}

#[test]
fn check_that_was_cut_short_neither_passes_nor_is_excused() {
    let cut = CheckResult::not_run("make test");
    assert_eq!(cut.output, "not run: the loop's time was over");
    let verdict = Verdict { checks: vec![cut.clone()], ..Verdict::default() };
    assert!(!verdict.is_complete());
    assert_eq!(verdict.remarks(), ["the check 'make test' did not end: the loop's time was over"]);
    // Nobody knows whether it failed before, so it is not excused.
    let base = crate::ledger::Base { checks: vec![cut, check("old", false)], ..Default::default() };
    assert_eq!(base.failed(), ["old"]);
    // The flag is only written where it says something: older readers see what they know.
    assert!(!serde_json::to_string(&check("a", true)).unwrap().contains("cut"));
}

fn verdict() -> impl Strategy<Value = Verdict> {
    let claim =
        prop_oneof![Just(Claim::Missing), Just(Claim::Rejected), Just(Claim::Doubtful), Just(Claim::Valid)];
    let checks = prop::collection::vec(("[ab]", any::<bool>()), 0..4);
    let named = || prop::collection::vec("[ab]", 0..2);
    (any::<Option<bool>>(), prop::option::of(claim), checks, named(), named(), prop::option::of("x"))
        .prop_map(|(done_pattern, promise, checks, excused, changed, trouble)| Verdict {
            done_pattern,
            promise,
            checks: checks.iter().map(|(name, passed)| check(name, *passed)).collect(),
            excused,
            changed,
            trouble,
            ..Verdict::default()
        })
}

proptest! {
    #[test]
    fn complete_verdict_has_no_missed_gates(verdict in verdict()) {
        let holds = verdict.done_pattern != Some(false)
            && verdict.promise.is_none_or(Claim::holds)
            && verdict.checks.iter().all(|check| check.passed || verdict.excused.contains(&check.name))
            && verdict.changed.is_empty()
            && verdict.trouble.is_none();
        let asks_for_checks = verdict.checks.iter().any(|check| !verdict.excused.contains(&check.name));
        let asked = verdict.done_pattern.is_some() || verdict.promise.is_some() || asks_for_checks;
        prop_assert_eq!(verdict.is_complete(), holds && asked);
        // Checks that are all excused are missing too, where nothing else was asked for.
        prop_assert_eq!(verdict.remarks().is_empty(), holds && (asked || verdict.checks.is_empty()));
    }

    #[test]
    fn removing_a_gate_keeps_a_verdict_complete_unless_it_was_the_last(verdict in verdict()) {
        if verdict.is_complete() {
            let less = Verdict { promise: None, ..verdict.clone() };
            let asked = less.done_pattern.is_some() || less.asks_for_checks();
            prop_assert_eq!(less.is_complete(), asked);
        }
    }

    /// Each gate has a veto: taking what holds away from one of them undoes the whole.
    #[test]
    fn each_failed_gate_makes_the_verdict_incomplete(verdict in verdict()) {
        if verdict.is_complete() {
            let spoiled = [
                Verdict { done_pattern: Some(false), ..verdict.clone() },
                Verdict { promise: Some(Claim::Missing), ..verdict.clone() },
                Verdict { promise: Some(Claim::Rejected), ..verdict.clone() },
                Verdict {
                    checks: verdict.checks.iter().cloned().chain([check("new", false)]).collect(),
                    ..verdict.clone()
                },
                Verdict { changed: vec!["a".into()], ..verdict.clone() },
                Verdict { trouble: Some("the disk is full".into()), ..verdict.clone() },
            ];
            for verdict in spoiled {
                prop_assert!(!verdict.is_complete(), "{:?}", verdict);
            }
        }
    }

    /// A check that passes where it failed never takes anything away.
    #[test]
    fn passing_check_never_makes_a_verdict_worse(verdict in verdict(), at in any::<prop::sample::Index>()) {
        let mut better = verdict.clone();
        if !better.checks.is_empty() {
            let at = at.index(better.checks.len());
            better.checks[at].passed = true;
            prop_assert!(better.remarks().len() <= verdict.remarks().len());
            prop_assert!(better.is_complete() || !verdict.is_complete());
        }
    }

    #[test]
    fn verdict_survives_serialization(verdict in verdict()) {
        let text = serde_json::to_string(&verdict).unwrap();
        prop_assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
    }
}

#[test]
fn invalid_gates_are_refused() {
    let valid = || Gates { checks: vec!["cargo test".into()], ..Gates::default() };
    let without_a_gate = || Gates { protect: vec!["tests/**".into()], ..Gates::default() };
    let promise = Promise::new("DONE").ok();
    for (gates, expected) in [
        (Gates::default(), None),
        (valid(), None),
        (Gates { protect: vec!["tests/**".into()], ..valid() }, None),
        (Gates { promise: promise.clone(), ..without_a_gate() }, None),
        (Gates { protect_tests: true, ..valid() }, None),
        (
            Gates { promise, protect_tests: true, ..Gates::default() },
            Some("--protect-tests has no effect without a --check that runs the tests"),
        ),
        (Gates { checks: vec!["true".into(), " ".into()], ..valid() }, Some("a check cannot be empty")),
        (Gates { checks: vec!["a\0b".into()], ..valid() }, Some("a check cannot contain a NUL byte")),
        (Gates { check_timeout: 0, ..valid() }, Some("--check-timeout and --check-jobs must be at least 1")),
        (Gates { check_jobs: 0, ..valid() }, Some("--check-timeout and --check-jobs must be at least 1")),
        (without_a_gate(), Some("--protect has no effect without a --check or a --promise")),
        (
            Gates { checks: vec!["a".into(), "b".into(), " a".into()], ..valid() },
            Some("the same --check is given twice"),
        ),
        (
            Gates { protect_tests: true, allow_changed_checks: true, ..valid() },
            Some("--protect-tests cannot be used with --allow-changed-checks"),
        ),
    ] {
        let fault = gates.clone().validated().err().map(|fault| fault.to_string());
        assert_eq!(fault.as_deref(), expected, "{gates:?}");
    }
}
