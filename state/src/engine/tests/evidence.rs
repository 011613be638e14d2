//! A done pattern that was seen once reaches the verdict, whatever ends the run and whatever the screen shows later.

use super::tables::{after, at_iteration, script};
use super::*;
use crate::engine::{Edits, Evidence};
use crate::notice::StopReason;

const R: Run = Run(1);

/// A screen with the done pattern on it, and one without.
fn shows(done: bool) -> Reading {
    Reading { done, ..screen(u8::from(done)) }
}

/// A loop whose agent showed the pattern at 10 s and a screen without it at 12 s.
fn seen() -> Worker {
    let mut worker = at_iteration(1, 9);
    let told = after(&mut worker, script(10, [Event::Screen(R, shows(true))]));
    assert_eq!(told, "persist => running", "a daemon that takes over must know it");
    after(&mut worker, script(12, [Event::Screen(R, shows(false))]));
    worker
}

/// Returns the verdict that the daemon reports for the engine's evidence when the last capture lacks the pattern.
fn judged(worker: &Worker) -> Event {
    Event::Evaluated(R, gates(worker.evidence().done))
}

#[test]
fn seen_pattern_counts_for_every_end_of_the_run() {
    let term = Event::Exited(R, Exit::Signal(15));
    let quiet = |at: u64| (at, Event::Quiet(R));
    let ends: [(&str, Vec<(u64, Event)>); 7] = [
        ("it exits by itself", vec![(13, Event::Exited(R, Exit::Code(0)))]),
        ("it fails", vec![(13, Event::Exited(R, Exit::Code(7)))]),
        ("its pane is closed", vec![(13, Event::PaneLost(R))]),
        ("its server goes", vec![(13, Event::ServerLost(R))]),
        ("it is quiet", vec![quiet(14), quiet(16), quiet(18), (19, term.clone())]),
        (
            "its hook reports the end of the turn",
            vec![
                (13, Event::Hook(R, HookSignal::TurnOver)),
                (14, Event::Tick),
                (14, Event::Screen(R, shows(false))),
                (15, term.clone()),
            ],
        ),
        ("its context is full", vec![(13, Event::Hook(R, HookSignal::ContextSpent)), (14, term)]),
    ];
    for (end, events) in ends {
        for restarted in [false, true] {
            let mut worker = seen();
            if restarted {
                let json = serde_json::to_value(&worker).unwrap();
                worker = serde_json::from_value(json).unwrap();
                worker.rebase(at(12_000));
                worker.step(Event::Adopted(R), at(12_000));
            }
            after(&mut worker, events.clone());
            assert!(matches!(worker.phase(), Phase::Evaluating { .. }), "{end}: {:?}", worker.phase());
            let verdict = judged(&worker);
            worker.step(verdict, at(20_000));
            let phase = worker.phase();
            let complete = matches!(phase, Phase::Stopped { reason: StopReason::Complete });
            assert!(complete, "{end}, restarted {restarted}: {phase:?}");
        }
    }
}

#[test]
fn turn_end_and_pattern_on_the_next_look_end_by_the_pattern() {
    let mut worker = at_iteration(1, 9);
    after(&mut worker, script(10, [Event::Hook(R, HookSignal::TurnOver)]));
    after(&mut worker, script(11, [Event::Tick]));
    let told = after(&mut worker, script(11, [Event::Screen(R, shows(true))]));
    assert_eq!(told, "persist; term 1 => ending(done)");
}

#[test]
fn kill_wins_over_the_pattern() {
    let mut worker = seen();
    after(&mut worker, script(13, [Event::Kill]));
    after(&mut worker, script(14, [Event::Exited(R, Exit::Signal(15))]));
    let verdict = judged(&worker);
    worker.step(verdict, at(20_000));
    assert!(matches!(worker.phase(), Phase::Stopped { reason: StopReason::Killed }));
    assert!(worker.evidence().done, "its verdict has it all the same");
}

#[test]
fn evidence_belongs_to_one_run_and_one_pattern() {
    let mut worker = seen();
    let edited = Edits { done_pattern: Some(None), ..Edits::default() };
    worker.step(Event::Edited(edited), at(13_000));
    assert_eq!(worker.evidence(), Evidence::default(), "another pattern");

    let mut worker = seen();
    after(&mut worker, script(13, [Event::Exited(R, Exit::Code(0))]));
    worker.step(Event::Evaluated(R, gates(false)), at(14_000));
    assert_eq!((worker.run(), worker.evidence()), (Run(2), Evidence::default()));
}

#[test]
fn pattern_before_the_paste_does_not_count() {
    let mut worker = Worker::plain(PASTE);
    after(&mut worker, script(0, [Event::Start, Event::Up(R)]));
    after(&mut worker, script(1, [Event::Screen(R, Reading { done: true, ..screen(1) })]));
    assert_eq!(worker.evidence(), Evidence::default());
}
