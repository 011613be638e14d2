use serde_json::{Value, json};
use swarm_state::model::Exit;
use swarm_state::notice::IterationExit;

use super::*;
use crate::client::testing::view;

fn worker(status: &str, metadata: Value) -> WorkerView {
    let mut all = json!({"ralph": true, "ralph_iteration": 1, "max_iterations": 9, "status": "running"});
    for (key, value) in metadata.as_object().unwrap() {
        all[key] = value.clone();
    }
    view("a", status, all)
}

fn machine() -> Machine {
    Machine::new(&worker("running", json!({})), 10)
}

fn notice(seq: u64, status: Status, entry: Entry) -> Notice {
    Notice { seq, worker: "a".into(), at: "2026-01-01T10:00:00+01:00".into(), status, entry }
}

fn ended(iteration: u32) -> Entry {
    Entry::IterationEnded { iteration, exit: IterationExit::Exit(Exit::Code(0)), seconds: 1 }
}

/// The end among the acts: its code and hint.
fn end(acts: &[FollowAction]) -> Option<(u8, Option<String>)> {
    acts.iter().find_map(|act| match act {
        FollowAction::End(end) => Some((end.code, end.hint.clone())),
        FollowAction::Print(_) | FollowAction::Note(_) | FollowAction::Pause => None,
    })
}

fn resume(code: u8) -> Option<(u8, Option<String>)> {
    Some((code, Some("to go on: swarm ralph resume a".into())))
}

/// The end of a loop that swarm has paused for this reason.
fn advised(by: PauseBy) -> Option<(u8, Option<String>)> {
    let end = machine().resumable(Status::Paused, Some(&Cause::Paused { by, detail: None }));
    Some((end.code, end.hint))
}

fn logs(code: u8) -> Option<(u8, Option<String>)> {
    Some((code, Some("what happened: swarm why a".into())))
}

fn snapshot(seq: u64, worker: WorkerView) -> Snapshot {
    Snapshot { seq, gap: false, workers: vec![worker], foreign: false, replayed: 0, missing: vec![] }
}

#[test]
fn lines_of_the_followed_loop_are_printed_once() {
    let mut m = machine();
    let start = notice(11, Status::Running, Entry::IterationStarted { iteration: 1, max: 9 });
    assert_eq!(m.notice(&start), [FollowAction::Print("[ralph] a: starting iteration 1/9".into())]);
    assert_eq!(m.notice(&start), [], "a repeated notice");
    let mut other = notice(12, Status::Running, Entry::Resumed);
    other.worker = "b".into();
    assert_eq!(m.notice(&other), []);
    assert_eq!(
        m.notice(&notice(13, Status::Running, Entry::Ready { run: 1 })),
        [],
        "not a line of the document"
    );
}

#[test]
fn follower_exits_with_the_code_of_the_loop() {
    let cases = [
        (Entry::LoopComplete { iterations: 2, reason: StopReason::Complete }, Some((0, None))),
        (Entry::LoopComplete { iterations: 9, reason: StopReason::MaxIterations }, Some((0, None))),
        (Entry::LoopComplete { iterations: 1, reason: StopReason::Verified }, Some((0, None))),
        (Entry::LoopComplete { iterations: 1, reason: StopReason::Promised }, Some((0, None))),
        (Entry::LoopFailed { iterations: 5, reason: StopReason::Failures(5) }, logs(1)),
        (Entry::LoopFailed { iterations: 9, reason: StopReason::Unverified }, logs(1)),
        (Entry::LoopFailed { iterations: 9, reason: StopReason::OutOfTime(9) }, logs(1)),
        (Entry::Paused { by: PauseBy::NoProgress }, advised(PauseBy::NoProgress)),
        (Entry::Paused { by: PauseBy::BudgetUnseen }, advised(PauseBy::BudgetUnseen)),
        (Entry::Paused { by: PauseBy::HeldOut }, advised(PauseBy::HeldOut)),
        (
            Entry::Paused { by: PauseBy::CannotCheck },
            Some((1, Some("to go on: fix that, then swarm ralph resume a".into()))),
        ),
        (Entry::Paused { by: PauseBy::StoryStuck }, advised(PauseBy::StoryStuck)),
        (Entry::LoopFailed { iterations: 1, reason: StopReason::Killed }, Some((1, None))),
        (Entry::Lost { reason: "the tmux server is gone".into() }, resume(1)),
        (Entry::Paused { by: PauseBy::Shutdown }, resume(1)),
        (Entry::Paused { by: PauseBy::User }, None),
        (Entry::Waiting { run: 1, reason: "trust dialog".into() }, None),
    ];
    for (entry, expected) in cases {
        assert_eq!(end(&machine().notice(&notice(11, Status::Paused, entry.clone()))), expected, "{entry:?}");
    }
}

#[test]
fn message_of_a_loop_that_could_not_start_is_printed() {
    let message = "prompt file not found: ./P.md".to_owned();
    for reason in [StopReason::Prompt(message.clone()), StopReason::SpawnFailed(message.clone())] {
        let acts = machine().notice(&notice(11, Status::Failed, Entry::Stopped { reason }));
        let Some(FollowAction::End(end)) = acts.last() else { panic!("{acts:?}") };
        assert_eq!((end.code, end.error.as_ref()), (1, Some(&message)));
    }
}

#[test]
fn the_first_interrupt_pauses_and_waits_for_the_agent() {
    let mut m = machine();
    assert_eq!(m.interrupt().last(), Some(&FollowAction::Pause));
    // An iteration that ended before the pause took effect does not end the follower.
    assert_eq!(end(&m.notice(&notice(11, Status::Running, ended(1)))), None);
    assert_eq!(end(&m.notice(&notice(12, Status::Running, Entry::Paused { by: PauseBy::User }))), None);
    assert_eq!(end(&m.notice(&notice(13, Status::Running, Entry::Ready { run: 2 }))), None);
    assert_eq!(end(&m.notice(&notice(14, Status::Paused, ended(2)))), resume(1));
}

#[test]
fn loop_completed_by_its_checks_during_a_pause_exits_with_0() {
    let mut m = machine();
    m.interrupt();
    m.notice(&notice(11, Status::Running, Entry::Paused { by: PauseBy::User }));
    assert_eq!(end(&m.notice(&notice(12, Status::Done, ended(2)))), None);
    let complete = Entry::LoopComplete { iterations: 2, reason: StopReason::Verified };
    assert_eq!(end(&m.notice(&notice(13, Status::Done, complete))).map(|(code, _)| code), Some(0));
}

#[test]
fn a_pause_with_no_agent_ends_at_once() {
    let mut m = machine();
    m.interrupt();
    assert_eq!(end(&m.notice(&notice(11, Status::Paused, Entry::Paused { by: PauseBy::User }))), resume(1));
    // Paused before by somebody else: there is no notice, the answer says it.
    let mut m = machine();
    m.interrupt();
    m.view(&worker("running", json!({"status": "paused", "paused_by": "user"})));
    assert_eq!(m.pending(), None, "its agent is at work");
    m.view(&worker("paused", json!({"status": "paused", "paused_by": "user"})));
    assert_eq!(m.pending().map(|e| e.code), Some(1));
}

#[test]
fn interrupt_of_a_paused_loop_does_not_announce_an_agent() {
    let note = |m: &mut Machine| match m.interrupt().as_slice() {
        [FollowAction::Note(note), FollowAction::Pause] => note.clone(),
        acts => panic!("{acts:?}"),
    };
    let by_user = json!({"status": "paused", "paused_by": "user"});
    for (status, wanted) in [
        ("running", "pausing a: its current agent finishes first (Ctrl-C again: detach)"),
        ("paused", "a is already paused"),
    ] {
        let mut m = machine();
        m.snapshot(&snapshot(20, worker(status, by_user.clone())));
        assert_eq!(note(&mut m), wanted);
    }
    let mut m = machine();
    m.notice(&notice(11, Status::Running, Entry::Paused { by: PauseBy::User }));
    m.notice(&notice(12, Status::Paused, ended(1)));
    assert_eq!(note(&mut m), "a is already paused");
}

#[test]
fn second_interrupt_detaches_with_130() {
    let mut m = machine();
    m.interrupt();
    assert_eq!(end(&m.interrupt()).map(|(code, _)| code), Some(130));
}

#[test]
fn a_loop_that_was_resumed_is_followed_again() {
    let mut m = machine();
    m.interrupt();
    m.notice(&notice(11, Status::Running, Entry::Paused { by: PauseBy::User }));
    m.notice(&notice(12, Status::Running, Entry::Resumed));
    assert_eq!(end(&m.notice(&notice(13, Status::Running, ended(1)))), None);
    assert_eq!(m.interrupt().last(), Some(&FollowAction::Pause), "the next interrupt is a first one again");
}

#[test]
fn follower_stays_when_another_client_pauses() {
    let mut m = machine();
    m.notice(&notice(11, Status::Running, Entry::Paused { by: PauseBy::User }));
    assert_eq!(end(&m.notice(&notice(12, Status::Paused, ended(1)))), None);
    m.snapshot(&snapshot(12, worker("paused", json!({"status": "paused", "paused_by": "user"}))));
    assert_eq!(m.pending(), None);
    assert!(m.paused);
}

#[test]
fn follower_continues_after_the_daemons_clock_was_set_back() {
    let mut m = machine();
    m.notice(&notice(1_000_000, Status::Running, ended(1)));
    m.snapshot(&snapshot(500, worker("running", json!({}))));
    let again = m.notice(&notice(499, Status::Running, Entry::IterationStarted { iteration: 2, max: 3 }));
    assert!(matches!(again[..], [FollowAction::Print(_)]), "{again:?}");
    assert!(m.notice(&notice(499, Status::Running, Entry::Resumed)).is_empty(), "heard already");
    let acts = m.notice(&notice(
        501,
        Status::Paused,
        Entry::LoopComplete { reason: StopReason::MaxIterations, iterations: 2 },
    ));
    assert_eq!(end(&acts).map(|(code, _)| code), Some(0));
}

#[test]
fn snapshot_after_a_gap_gives_the_end_of_the_loop() {
    let cases = [
        (worker("running", json!({})), None),
        (worker("retrying", json!({})), None),
        (worker("unreachable", json!({})), None),
        (worker("done", json!({"status": "stopped", "reason": "done_pattern"})), Some(0)),
        (worker("done", json!({"status": "stopped", "reason": "max_iterations"})), Some(0)),
        (worker("killed", json!({"status": "stopped", "reason": "killed"})), Some(1)),
        (worker("failed", json!({"status": "failed", "reason": "consecutive_failures"})), Some(1)),
        (worker("failed", json!({"status": "failed", "reason": "prompt_file"})), Some(1)),
        (worker("lost", json!({})), Some(1)),
        (worker("paused", json!({"status": "paused", "paused_by": "shutdown"})), Some(1)),
        (view("other", "running", json!({})), Some(1)),
    ];
    for (worker, code) in cases {
        let mut m = machine();
        m.snapshot(&snapshot(20, worker.clone()));
        assert_eq!(m.pending().map(|e| e.code), code, "{worker:?}");
    }
    let mut replaced = worker("running", json!({}));
    replaced.started = "2027-01-01T10:00:00+01:00".into();
    let mut m = machine();
    m.snapshot(&snapshot(20, replaced));
    assert_eq!(m.pending().map(|e| e.code), Some(1));
}

#[test]
fn repeated_notices_do_not_end_a_running_loop() {
    let mut m = machine();
    m.snapshot(&snapshot(20, worker("running", json!({}))));
    assert_eq!(end(&m.notice(&notice(11, Status::Paused, Entry::Paused { by: PauseBy::Shutdown }))), None);
    assert_eq!(end(&m.notice(&notice(12, Status::Running, Entry::Resumed))), None);
    assert_eq!(end(&m.notice(&notice(13, Status::Lost, Entry::Lost { reason: "x".into() }))), None);
    // The end of a loop counts, even in a repeated notice.
    let over = Entry::LoopComplete { iterations: 1, reason: StopReason::Complete };
    assert_eq!(end(&m.notice(&notice(14, Status::Paused, over))), Some((0, None)));
}

/// A loop may pause before its follower has subscribed: what is then repeated from before takes no end away.
#[test]
fn repeated_notices_keep_the_end_from_the_snapshot() {
    for by in ["no_progress", "budget_unseen", "held_out", "cannot_check", "story_stuck", "shutdown"] {
        let mut m = machine();
        m.snapshot(&snapshot(13, worker("paused", json!({"status": "paused", "paused_by": by}))));
        for (seq, entry) in [
            (11, Entry::Resumed),
            (12, Entry::IterationStarted { iteration: 1, max: 9 }),
            (13, Entry::Paused { by: PauseBy::BudgetUnseen }),
        ] {
            m.notice(&notice(seq, Status::Running, entry));
        }
        assert!(m.pending().is_some(), "{by}");
        m.notice(&notice(14, Status::Running, Entry::IterationStarted { iteration: 2, max: 9 }));
        assert!(m.pending().is_none(), "news do");
    }
}

/// A follower that was away at the end learns from the snapshot what a notice would have told it.
#[test]
fn snapshot_and_notice_give_the_same_end() {
    for reason in [
        StopReason::Complete,
        StopReason::Verified,
        StopReason::Promised,
        StopReason::MaxIterations,
        StopReason::Unverified,
        StopReason::OutOfTime(1),
        StopReason::Cost { spent: 1, limit: 1 },
        StopReason::NoGate,
        StopReason::Outage("no".into()),
        StopReason::Failures(5),
        StopReason::Prompt("gone".into()),
        StopReason::Killed,
    ] {
        let status = reason.loop_status().as_str();
        let mut m = machine();
        m.snapshot(&snapshot(10, worker("done", json!({"status": status, "reason": reason.slug()}))));
        let entry = Entry::LoopFailed { iterations: 1, reason: reason.clone() };
        let told = end(&machine().notice(&notice(11, Status::Paused, entry))).unwrap();
        assert_eq!(m.pending().map(|end| end.code), Some(told.0), "{reason:?}");
    }
    let mut m = machine();
    let paused = json!({"status": "paused", "paused_by": "no_progress", "reason": "no_progress"});
    m.snapshot(&snapshot(10, worker("paused", paused)));
    assert_eq!(m.pending(), Some(&m.resumable(Status::Paused, None)));
}
