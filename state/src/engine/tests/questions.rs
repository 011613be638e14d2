//! Questions in mid-work: how long they wait, what ends them, and the reason of the iteration that fails.

use super::tables::{after, at_iteration, script};
use super::*;
use crate::model::Status;
use crate::notice::PauseBy;

const R: Run = Run(1);

/// Looks every two seconds at the same screen, with the ticks that are due.
fn stare(worker: &mut Worker, from: u64, to: u64, look: &Reading) -> Vec<(u64, String)> {
    let mut lines = vec![];
    for second in (from..=to).step_by(2) {
        for event in [Event::Tick, Event::Screen(R, look.clone())] {
            let told = after(worker, script(second, [event]));
            if !told.starts_with("=>") {
                lines.push((second, told));
            }
        }
    }
    lines
}

fn asks() -> Reading {
    dialog(1, false, "Do you want to run this?")
}

#[test]
fn question_stops_the_inactivity_timeout_and_has_its_own() {
    let mut worker = at_iteration(1, 2);
    let told = stare(&mut worker, 0, 602, &asks());
    let expected = [
        (0, "persist; \"waiting for a person: Do you want to run this?\" => running"),
        (600, "persist; term 1 => ending(unanswered)"),
    ];
    assert_eq!(told.iter().map(|(at, line)| (*at, line.as_str())).collect::<Vec<_>>(), expected);
    after(&mut worker, script(601, [Event::Exited(R, Exit::Code(143))]));
    assert_eq!(worker.ended().unwrap().reason, "not answered within 10m 0s: Do you want to run this?");
    assert_eq!(
        after(&mut worker, script(601, [Event::Evaluated(R, gates(false))])),
        "persist; \"iteration 1 failed (exit: unanswered): not answered within 10m 0s: Do you want to run this?, \
         retrying in 1s (attempt 1/5)\" => backoff(1s)"
    );
}

#[test]
fn question_without_a_timeout_or_of_a_plain_worker_waits_forever() {
    let mut endless = at_iteration(1, 2).asking(0);
    let mut plain = Worker::plain(STDIN);
    after(&mut plain, script(0, [Event::Start, Event::Up(R)]));
    for worker in [&mut endless, &mut plain] {
        assert_eq!(stare(worker, 0, 9000, &asks()).len(), 1);
        assert_eq!((worker.status(), worker.deadline()), (Status::Waiting, None));
    }
}

#[test]
fn a_question_that_is_reported_twice_is_timed_from_the_first_report() {
    let mut worker = at_iteration(1, 2).asking(100);
    stare(&mut worker, 0, 80, &asks());
    assert_eq!(worker.deadline(), Some(at(100_000).mono));
    // The hook reports the same question six seconds later in other words.
    after(&mut worker, script(86, [Event::Hook(R, HookSignal::Asks("permission for Bash".into()))]));
    assert_eq!(worker.deadline(), Some(at(100_000).mono));
    // Answered: the next one has the whole time, and so has the silence after it.
    stare(&mut worker, 88, 90, &screen(2));
    assert_eq!((worker.status(), worker.deadline()), (Status::Running, None));
    stare(&mut worker, 120, 120, &asks());
    assert_eq!(worker.deadline(), Some(at(220_000).mono));
    let told = after(&mut worker, script(220, [Event::Tick]));
    assert_eq!(told, "persist; term 1 => ending(unanswered)");
}

#[test]
fn question_timeout_stops_while_paused_or_unreachable() {
    let mut worker = at_iteration(1, 2).asking(100);
    stare(&mut worker, 0, 50, &asks());
    after(&mut worker, script(50, [Event::Pause(PauseBy::User)]));
    assert_eq!(worker.deadline(), None);
    after(&mut worker, script(500, [Event::Resume]));
    assert_eq!(worker.deadline(), Some(at(600_000).mono));
    after(&mut worker, script(550, [Event::Reachable(false)]));
    assert_eq!(worker.deadline(), None);
    after(&mut worker, script(900, [Event::Reachable(true)]));
    assert_eq!(worker.deadline(), Some(at(1_000_000).mono));
    // A later daemon's clock may begin anew.
    worker.rebase(at(5_000));
    assert_eq!(worker.deadline(), Some(at(105_000).mono));
}

#[test]
fn silence_is_success_only_after_output_of_an_interactive_agent() {
    let silent = |one_shot, printed, heard: &[HookSignal]| {
        let mut worker = Worker::looping(Policy { one_shot, ..STDIN }, 9, 60);
        after(&mut worker, script(0, [Event::Start, Event::Up(R)]));
        for heard in heard {
            after(&mut worker, script(0, [Event::Hook(R, heard.clone())]));
        }
        worker.rebase(at(0));
        stare(&mut worker, 0, 60, &Reading { printed, ..screen(1) });
        after(&mut worker, script(60, [Event::Probed(R, false), Event::Exited(R, Exit::Signal(15))]));
        let reason = worker.ended().unwrap().reason;
        after(&mut worker, script(60, [Event::Evaluated(R, gates(false))]));
        (worker.ralph().unwrap().total_failures == 1, reason)
    };
    let (nothing, nothing_new) = ("nothing on screen for 60 s", "nothing new on screen for 60 s");
    for (one_shot, printed, heard, failed, reason) in [
        (false, true, &[] as &[HookSignal], false, nothing_new),
        (false, false, &[], true, nothing),
        (true, true, &[], true, nothing_new),
        (true, false, &[], true, nothing),
        // A hook reported a turn that did not end.
        (false, true, &[HookSignal::Prompt], true, nothing_new),
    ] {
        assert_eq!(silent(one_shot, printed, heard), (failed, reason.to_owned()));
    }
}

#[test]
fn changing_clock_is_not_activity_and_a_new_line_is() {
    type Rows = fn(u8) -> u64;
    // Looks every two seconds until something follows, at most a hundred times.
    let look = |worker: &mut Worker, from: u8, row: Rows, working: bool| {
        (from..from + 100).find_map(|n| {
            let tick = Reading { calm_fingerprint: [0; 16], rows: (3, row(n)), working, ..screen(n) };
            let told = after(worker, script(u64::from(n) * 2, [Event::Screen(R, tick)]));
            (told != "=> running").then_some((n, told))
        })
    };
    let (fixed, scrolling): (Rows, Rows) = (|_| 0, u64::from);
    let probe = |n: u8| Some((n, "probe 1 => running".to_owned()));
    let mut worker = at_iteration(1, 9);
    assert_eq!(look(&mut worker, 0, fixed, false), probe(30));
    // As long as something computes beside it, it is the agent's.
    assert_eq!(after(&mut worker, script(60, [Event::Probed(R, true)])), "=> running");
    assert_eq!(look(&mut worker, 31, fixed, false), probe(60));
    // So it is while the transcript grows.
    let young = Event::Grew(R, Duration::from_secs(4));
    after(&mut worker, script(120, [young, Event::Probed(R, false)]));
    assert_eq!(look(&mut worker, 61, fixed, false), probe(88));
    let old = Event::Grew(R, Duration::from_secs(90));
    let ended = after(&mut worker, script(176, [old, Event::Probed(R, false)]));
    assert!(ended.ends_with("term 1 => ending(inactivity)"), "{ended}");
    // Lines that scroll, and an agent whose mark says that it works.
    assert_eq!(look(&mut at_iteration(1, 9), 0, scrolling, false), None);
    assert_eq!(look(&mut at_iteration(1, 9), 0, fixed, true), None);
}

#[test]
fn done_pattern_with_a_spinner_ends_the_run_once_its_processes_are_idle() {
    let mut worker = at_iteration(1, 9);
    let mut look = |at: u64, event: Event| after(&mut worker, script(at, [event]));
    let tick = |n: u8| Event::Screen(R, Reading { calm_fingerprint: [0; 16], done: true, ..screen(n) });
    for n in 0..2 {
        assert!(look(u64::from(n) * 2, tick(n)).ends_with("=> running"));
    }
    assert_eq!(look(4, tick(2)), "probe 1 => running");
    assert_eq!(look(5, Event::Probed(R, true)), "=> running", "it still computes");
    assert_eq!(look(6, tick(3)), "probe 1 => running");
    assert_eq!(look(7, Event::Probed(R, false)), "persist; term 1 => ending(done)");
}
