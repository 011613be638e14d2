use super::*;
use crate::model::Exit;

fn check(entry: &Entry, follow: &str, log: &[&str]) {
    assert_eq!(entry.follow_line("agent").unwrap_or_default(), follow);
    assert_eq!(entry.log_lines(), log);
}

#[test]
fn notices_have_the_documented_texts() {
    check(
        &Entry::IterationStarted { iteration: 5, max: 100 },
        "[ralph] agent: starting iteration 5/100",
        &["[START] iteration 5/100"],
    );
    check(
        &Entry::IterationEnded { iteration: 5, exit: IterationExit::Exit(Exit::Code(0)), seconds: 222 },
        "[ralph] agent: iteration 5 completed (exit: 0, duration: 3m 42s)",
        &["[END] iteration 5 exit=0 duration=3m42s"],
    );
    check(
        &Entry::IterationFailed {
            iteration: 5,
            exit: IterationExit::Exit(Exit::Code(1)),
            seconds: 1,
            attempt: 3,
            limit: 5,
            backoff: Some(4),
            message: None,
        },
        "[ralph] agent: iteration 5 failed (exit: 1), retrying in 4s (attempt 3/5)",
        &["[END] iteration 5 exit=1 duration=1s", "[FAIL] iteration 5 exit=1 attempt=3/5 backoff=4s"],
    );
    check(
        &Entry::Inactivity { iteration: 6, timeout: 60, restarting: true },
        "[ralph] agent: inactivity timeout (60s), restarting",
        &["[TIMEOUT] iteration 6 inactivity=60s"],
    );
    check(
        &Entry::DonePatternMatched { iteration: 2 },
        "[ralph] agent: done pattern matched, stopping loop",
        &[],
    );
    check(
        &Entry::LoopComplete { iterations: 47, reason: StopReason::Complete },
        "[ralph] agent: loop complete after 47 iterations",
        &["[DONE] loop complete after 47 iterations reason=done_pattern"],
    );
    check(
        &Entry::LoopFailed { iterations: 5, reason: StopReason::Failures(5) },
        "[ralph] agent: 5 consecutive failures, stopping loop",
        &["[FAIL] loop failed after 5 iterations reason=consecutive_failures"],
    );
    check(&Entry::Paused { by: PauseBy::User }, "[ralph] agent: paused", &["[PAUSE]"]);
    check(&Entry::Resumed, "[ralph] agent: resumed", &["[RESUME]"]);
    check(
        &Entry::Held { by: HoldBy::Typing },
        "[ralph] agent: held while you type: swarm starts and ends no run until 30 s after you detach",
        &["[HOLD]"],
    );
    check(
        &Entry::Held { by: HoldBy::Command },
        "[ralph] agent: held by you: swarm starts and ends no run until you release it",
        &["[HOLD]"],
    );
    check(&Entry::Released, "[ralph] agent: released", &["[RELEASE]"]);
}

#[test]
fn durations_are_printed_in_whole_seconds() {
    assert_eq!(duration(0, " "), "0s");
    assert_eq!(duration(42, " "), "42s");
    assert_eq!(duration(222, " "), "3m 42s");
    assert_eq!(duration(222, ""), "3m42s");
    assert_eq!(duration(3822, " "), "1h 3m 42s");
}

#[test]
fn list_of_notice_kinds_is_complete() {
    let golden = include_str!("../../../tests/golden/notices.jsonl");
    let lines = golden.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let kinds: std::collections::BTreeSet<String> =
        lines.map(|line| serde_json::from_value::<Entry>(line["notice"].clone()).unwrap().kind()).collect();
    assert_eq!(kinds, Entry::KINDS.iter().map(|kind| (*kind).to_owned()).collect());
}
