//! States and times in, messages out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::DateTime;
use proptest::prelude::*;

use super::*;
use crate::engine::Now;
use crate::notice::{HoldBy, PauseBy};
use crate::outage::OutageKind;

fn worker(name: &str, status: Status, cause: Option<Cause>) -> WorkerState {
    WorkerState { name: name.to_owned(), status, cause, run: 1, is_seen: false, has_parent: false }
}

fn asks(name: &str) -> WorkerState {
    worker(
        name,
        Status::Waiting,
        Some(Cause::NeedsPerson { text: "permission dialog".into(), answerable: false }),
    )
}

fn stopped(name: &str, reason: StopReason) -> WorkerState {
    worker(name, reason.status(), Some(Cause::stopped(reason)))
}

fn runs(name: &str) -> WorkerState {
    worker(name, Status::Running, None)
}

fn outage(kind: OutageKind) -> Cause {
    Cause::Outage { outage: kind, message: "secret text".into(), until: None, retry_seconds: 5 }
}

/// Seconds on both clocks; the wall clock starts at noon.
fn at(seconds: u64) -> Now {
    let noon = DateTime::parse_from_rfc3339("2026-01-15T12:00:00+01:00").unwrap();
    let mono = Duration::from_secs(1000 + seconds);
    Now { mono, wall: noon + Duration::from_secs(seconds) }
}

fn rules() -> NotifyRules {
    NotifyRules { classes: NotifyClass::ALL.to_vec(), delay: Duration::from_secs(20), quiet: None }
}

fn planner() -> NotifyPlanner {
    NotifyPlanner::new(rules(), Some(BTreeMap::new()))
}

/// Observes and returns the titles of the messages that are due.
fn tell(planner: &mut NotifyPlanner, workers: &[WorkerState], now: Now) -> Vec<String> {
    planner.observe(workers.to_vec(), now);
    planner.take_due(&BTreeSet::new(), now).iter().map(Notification::title).collect()
}

#[test]
fn each_state_has_its_class_and_texts() {
    let needs = |text: &str| Some(Cause::NeedsPerson { text: text.into(), answerable: false });
    let paused = |by| Some(Cause::Paused { by, detail: Some("secret".into()) });
    let held = |by| Some(Cause::Held { by, since: at(0).wall });
    let disk = || Some(Cause::DiskFull { error: "secret path".into() });
    let unsaved = || Some(Cause::Unsaved { error: "secret path".into() });
    let of = |status, cause| worker("a", status, cause);
    let child = WorkerState { has_parent: true, ..stopped("a", StopReason::Verified) };
    let seen = WorkerState { is_seen: true, ..stopped("a", StopReason::Verified) };
    let check = Cause::Checking { check: "secret".into(), more: 0 };
    for (state, line) in [
        (of(Status::Waiting, needs("permission: rm -rf secret")), "a needs you: asks for permission"),
        (of(Status::Waiting, needs("Which secret?")), "a needs you: shows a dialog or asks a question"),
        (of(Status::Waiting, needs("trust dialog")), "a needs you: asks whether it may trust the directory"),
        (of(Status::Waiting, Some(outage(OutageKind::Login))), "a needs you: not logged in"),
        (of(Status::Paused, paused(PauseBy::NoProgress)), "a needs you: no progress"),
        (stopped("a", StopReason::Verified), "a is done: every gate holds"),
        (stopped("a", StopReason::Prompt("secret".into())), "a failed: its prompt file cannot be read"),
        (stopped("a", StopReason::SpawnFailed("secret".into())), "a failed: could not be started"),
        (of(Status::Lost, Some(Cause::Lost { host: None })), "a is lost: the tmux server went away"),
        (of(Status::Unreachable, None), "a is unreachable: tmux does not answer"),
        (of(Status::Waiting, Some(outage(OutageKind::Limit))), "a is parked: limit, next try within 5s"),
        (of(Status::Waiting, disk()), "a has a disk problem: disk full"),
        (of(Status::Running, unsaved()), "a has a disk problem: its state cannot be saved"),
        (of(Status::Running, None), ""),
        (of(Status::Running, Some(check)), ""),
        (of(Status::Running, held(HoldBy::Typing)), ""),
        (of(Status::Waiting, held(HoldBy::Command)), ""),
        (of(Status::Paused, paused(PauseBy::User)), ""),
        (of(Status::Paused, paused(PauseBy::Shutdown)), ""),
        (stopped("a", StopReason::Killed), ""),
        (child, ""),
        (seen, ""),
    ] {
        let class = NotifyClass::of(&state);
        let message = class.map(|class| Notification::of(&state, class, at(0).wall));
        assert_eq!(message.as_ref().map(Notification::line).unwrap_or_default(), line, "{state:?}");
        let json = serde_json::to_string(&message).unwrap();
        assert!(!json.contains("secret"), "{json}");
    }
}

#[test]
fn a_digest_counts_and_lists_its_events() {
    let many = (0..30).map(|n| stopped(&format!("w{n:02}"), StopReason::Verified));
    let all = [
        asks("b"),
        worker("c", Status::Lost, Some(Cause::Lost { host: None })),
        stopped("d", StopReason::AllFailed),
    ];
    let events =
        many.chain(all).map(|state| Notification::of(&state, NotifyClass::of(&state).unwrap(), at(0).wall));
    let digest = Notification::digest(events.collect(), at(0).wall);
    let title = "33 workers: 1 needs you, 1 failed, 30 done, 1 parked, lost or without disk space";
    assert_eq!((digest.title(), digest.line()), (title.to_owned(), title.to_owned()));
    let body = digest.body();
    assert!(body.starts_with("b needs you: asks for permission\nw00 is done: every gate holds\n"), "{body}");
    assert!(body.lines().count() == 21 && body.ends_with("\nand 13 more: swarm ls"), "{body}");
    assert_eq!(digest.class, NotifyClass::NeedsYou);
}

#[test]
fn state_is_announced_once_if_it_lasts_longer_than_the_delay() {
    let mut planner = planner();
    assert_eq!(tell(&mut planner, &[asks("a"), asks("b")], at(0)), [""; 0]);
    assert_eq!(planner.next(at(0)), Some(at(20).mono));
    assert_eq!(tell(&mut planner, &[asks("a"), runs("b")], at(19)), [""; 0]);
    assert_eq!(tell(&mut planner, &[asks("a"), asks("b")], at(20)), ["a needs you"]);
    assert_eq!(planner.next(at(20)), Some(at(40).mono), "the delay of b starts again");
    assert_eq!(tell(&mut planner, &[asks("a"), runs("b")], at(40)), [""; 0]);
    assert_eq!(planner.next(at(40)), None);
    // The next question is another state, even with the same text.
    tell(&mut planner, &[runs("a")], at(50));
    tell(&mut planner, &[asks("a")], at(51));
    assert_eq!(tell(&mut planner, &[asks("a")], at(71)), ["a needs you"]);
    // So is the end of another run.
    let ended = |run| WorkerState { run, ..stopped("a", StopReason::Verified) };
    tell(&mut planner, &[ended(1)], at(80));
    assert_eq!(tell(&mut planner, &[ended(1)], at(100)), ["a is done"]);
    tell(&mut planner, &[ended(2)], at(101));
    assert_eq!(tell(&mut planner, &[ended(2)], at(121)), ["a is done"]);
}

#[test]
fn an_outage_that_returns_after_a_retry_is_the_same_state() {
    let mut planner = planner();
    let out = worker("a", Status::Waiting, Some(outage(OutageKind::Login)));
    tell(&mut planner, std::slice::from_ref(&out), at(0));
    assert_eq!(tell(&mut planner, std::slice::from_ref(&out), at(20)), ["a needs you"]);
    for retry in 1..20 {
        tell(&mut planner, &[runs("a")], at(retry * 300));
        tell(&mut planner, std::slice::from_ref(&out), at(retry * 300 + 30));
        assert_eq!(tell(&mut planner, std::slice::from_ref(&out), at(retry * 300 + 60)), [""; 0]);
    }
    tell(&mut planner, &[runs("a")], at(10_000));
    tell(&mut planner, &[runs("a")], at(10_700));
    tell(&mut planner, std::slice::from_ref(&out), at(10_701));
    assert_eq!(tell(&mut planner, &[out], at(10_721)), ["a needs you"]);
}

#[test]
fn state_with_a_changing_text_is_announced() {
    let mut planner = planner();
    let text = |n: u8| {
        worker(
            "a",
            Status::Waiting,
            Some(Cause::NeedsPerson { text: char::from(n).into(), answerable: false }),
        )
    };
    let told: Vec<_> =
        (b'a'..b'f').zip(0..).map(|(c, n)| tell(&mut planner, &[text(c)], at(5 * n))).collect();
    assert_eq!(told.concat(), ["a needs you"]);
}

#[test]
fn five_messages_a_minute_then_one_digest() {
    let mut planner = planner();
    let ended: Vec<_> = (0..20).map(|n| stopped(&format!("w{n:02}"), StopReason::Verified)).collect();
    tell(&mut planner, &ended, at(0));
    assert_eq!(tell(&mut planner, &ended, at(20)).len(), 5);
    assert_eq!(planner.next(at(20)), Some(at(80).mono));
    assert_eq!(tell(&mut planner, &ended, at(79)), [""; 0]);
    assert_eq!(tell(&mut planner, &ended, at(80)), ["15 workers: 15 done"]);
    assert_eq!(planner.next(at(80)), None);
    // The same if the rest comes later in the minute.
    let mut planner = self::planner();
    tell(&mut planner, &ended[..5], at(0));
    assert_eq!(tell(&mut planner, &ended[..5], at(20)).len(), 5);
    tell(&mut planner, &ended, at(30));
    assert_eq!(tell(&mut planner, &ended, at(50)), [""; 0]);
    assert_eq!(tell(&mut planner, &ended, at(80)), ["15 workers: 15 done"]);
    // The digest counts as one of the next five.
    let more: Vec<_> = (20..26).map(|n| stopped(&format!("w{n}"), StopReason::Verified)).collect();
    let all = [ended, more].concat();
    tell(&mut planner, &all, at(81));
    assert_eq!(tell(&mut planner, &all, at(101)).len(), 4);
    assert_eq!(tell(&mut planner, &all, at(140)), ["2 workers: 2 done"]);
}

#[test]
fn a_worker_that_a_person_is_attached_to_is_not_announced() {
    let mut planner = planner();
    planner.observe([asks("a"), asks("b")], at(0));
    planner.observe([asks("a"), asks("b")], at(20));
    let told = planner.take_due(&BTreeSet::from(["a".to_owned()]), at(20));
    assert_eq!(told.iter().map(Notification::title).collect::<Vec<_>>(), ["b needs you"]);
    assert_eq!(tell(&mut planner, &[asks("a"), asks("b")], at(100)), [""; 0], "the person has seen it");
}

#[test]
fn a_class_that_is_not_selected_is_not_announced() {
    let mut planner = planner();
    planner.set_rules(NotifyRules { classes: vec![NotifyClass::NeedsYou], ..rules() });
    let all = [asks("a"), stopped("b", StopReason::Verified)];
    tell(&mut planner, &all, at(0));
    assert_eq!(tell(&mut planner, &all, at(20)), ["a needs you"]);
    planner.set_rules(rules());
    assert_eq!(tell(&mut planner, &all, at(60)), [""; 0]);
    // Nor is a state that was due while nobody received messages.
    let all = [asks("a"), stopped("b", StopReason::Verified), asks("c")];
    planner.observe(all.to_vec(), at(70));
    planner.drop_due(at(90));
    assert_eq!(tell(&mut planner, &all, at(120)), [""; 0]);
}

#[test]
fn quiet_hours_are_parsed() {
    for (text, wall, left) in [
        ("22:00-07:00", "21:59:59", None),
        ("22:00-07:00", "22:00:00", Some(9 * 3600)),
        ("22:00-07:00", "00:00:00", Some(7 * 3600)),
        ("22:00-7:00", "06:59:59", Some(1)),
        ("22:00-07:00", "07:00:00", None),
        ("12:00-13:30", "12:30:00", Some(3600)),
        ("12:00-13:30", "13:30:00", None),
        ("00:00-23:59", "23:59:00", None),
        ("23:59-00:00", "23:59:30", Some(30)),
    ] {
        let wall = DateTime::parse_from_rfc3339(&format!("2026-01-15T{wall}+01:00")).unwrap();
        let quiet = QuietHours::parse(text).unwrap();
        assert_eq!(quiet.left(wall), left.map(Duration::from_secs), "{text} {wall}");
    }
    assert_eq!(QuietHours::parse("22:00 - 7:00").unwrap().to_string(), "22:00-07:00");
    for text in
        ["", "22:00", "22-7", "24:00-07:00", "22:60-07:00", "07:00-07:00", "+2:00-07:00", "22:00-", "a:b-c:d"]
    {
        assert_eq!(QuietHours::parse(text), None, "{text}");
    }
}

#[test]
fn states_during_quiet_hours_are_one_digest_at_their_end() {
    let mut planner = planner();
    planner.set_rules(NotifyRules { quiet: QuietHours::parse("12:00-13:00"), ..rules() });
    let all = [asks("a"), asks("b"), asks("c")];
    tell(&mut planner, &all, at(0));
    assert_eq!(tell(&mut planner, &all, at(20)), [""; 0]);
    assert_eq!(planner.next(at(20)), Some(at(3600).mono));
    assert!(!planner.is_due(at(3599)));
    let left = [asks("a"), runs("b"), asks("c")];
    assert_eq!(tell(&mut planner, &left, at(3600)), ["2 workers: 2 need you"]);
    let later = [asks("a"), asks("b"), asks("c")];
    tell(&mut planner, &later, at(3601));
    assert_eq!(tell(&mut planner, &later, at(3621)), ["b needs you"]);
}

#[test]
fn the_next_daemon_announces_only_the_new_states() {
    let mut first = planner();
    let all = [asks("a"), stopped("b", StopReason::Verified)];
    tell(&mut first, &all, at(0));
    assert_eq!(tell(&mut first, &all, at(20)).len(), 2);
    let mut second = NotifyPlanner::new(rules(), Some(first.record()));
    // The question is read from the screen again.
    let now = [runs("a"), stopped("b", StopReason::Verified), asks("c")];
    tell(&mut second, &now, at(30));
    let now = [asks("a"), stopped("b", StopReason::Verified), asks("c")];
    tell(&mut second, &now, at(33));
    assert_eq!(tell(&mut second, &now, at(60)), ["c needs you"]);
    // Without a record, everything is known.
    let mut first = NotifyPlanner::new(rules(), None);
    tell(&mut first, &now, at(0));
    assert_eq!(tell(&mut first, &now, at(60)), [""; 0]);
}

#[derive(Clone, Debug)]
enum Step {
    Change(usize, u8),
    Wait(u64),
    /// The wall clock jumps by this number of minutes.
    Jump(i64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..8_usize, 0..5_u8).prop_map(|(worker, state)| Step::Change(worker, state)),
        6 => (0..40_u64).prop_map(Step::Wait),
        1 => (-3000..3000_i64).prop_map(Step::Jump),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..120)
}

fn state_of(index: usize, state: u8, run: u64) -> WorkerState {
    let name = format!("w{index}");
    let state = match state {
        0 | 1 => runs(&name),
        2 => asks(&name),
        3 => stopped(&name, StopReason::Verified),
        _ => worker(&name, Status::Waiting, Some(outage(OutageKind::Limit))),
    };
    WorkerState { run, ..state }
}

proptest! {
    /// Each change leads to at most one message, a state that holds leads to one in the end, and a minute has at most
    /// five messages, whatever the wall clock and the daemon do.
    #[test]
    fn each_lasting_state_is_announced_exactly_once(steps in steps()) {
        let mut planner = planner();
        let mut workers: Vec<WorkerState> = (0..8).map(|n| state_of(n, 0, 1)).collect();
        let (mut now, mut changes, mut told) = (at(0), 0_usize, 0_usize);
        let look = |planner: &mut NotifyPlanner, workers: &[WorkerState], now: Now| {
            planner.observe(workers.to_vec(), now);
            let messages = planner.take_due(&BTreeSet::new(), now);
            messages.iter().map(|message| message.events.len().max(1)).sum::<usize>()
        };
        for step in steps {
            match step {
                Step::Change(index, state) => {
                    workers[index] = state_of(index, state, workers[index].run + 1);
                    changes += 1;
                }
                Step::Wait(seconds) => {
                    let wait = Duration::from_secs(seconds);
                    now = Now { mono: now.mono + wait, wall: now.wall + wait };
                }
                Step::Jump(minutes) => now.wall += chrono::TimeDelta::minutes(minutes),
                Step::Restart => planner = NotifyPlanner::new(rules(), Some(planner.record())),
            }
            told += look(&mut planner, &workers, now);
        }
        prop_assert!(told <= changes, "{told} of {changes}");
        for _ in 0..20 {
            let Some(next) = planner.next(now) else { break };
            prop_assert!(next <= now.mono + MESSAGE_MINUTE);
            now = Now { mono: next.max(now.mono), wall: now.wall };
            look(&mut planner, &workers, now);
        }
        prop_assert_eq!(planner.next(now), None);
        let record = planner.record();
        for worker in workers.iter().filter(|worker| NotifyClass::of(worker).is_some()) {
            prop_assert!(record.contains_key(&worker.name));
        }
    }

    #[test]
    fn a_minute_has_at_most_five_messages(counts in proptest::collection::vec(0..12_usize, 1..30)) {
        let mut planner = planner();
        let mut workers = vec![];
        let mut sent = vec![];
        for (step, count) in counts.into_iter().enumerate() {
            let now = at(10 * step as u64);
            let new = (0..count).map(|n| stopped(&format!("w{step}-{n}"), StopReason::Verified));
            workers.extend(new);
            sent.extend(tell(&mut planner, &workers, now).iter().map(|_| now.mono));
        }
        // Messages of two minutes may be next to each other.
        for start in &sent {
            let close = sent.iter().filter(|at| **at >= *start && **at < *start + MESSAGE_MINUTE).count();
            prop_assert!(close <= 2 * MAX_SINGLE_MESSAGES, "{close}");
        }
    }

    #[test]
    fn random_quiet_hours_do_not_panic(text in "\\PC{0,20}") {
        if let Some(quiet) = QuietHours::parse(&text) {
            prop_assert_eq!(QuietHours::parse(&quiet.to_string()), Some(quiet));
        }
    }
}
