//! Restores an engine from a file with any numbers and checks that it keeps working.

use std::time::Duration;

use serde_json::Value;
use swarm_state::engine::{Edits, Event, HookSignal, Now, SpawnError, Worker};
use swarm_state::gates::Verdict;
use swarm_state::model::Exit;
use swarm_state::notice::PauseBy;
use swarm_state::screen::{Blocked, Reading};

/// Sends the engine of a record every event, from its own state, one after the other.
///
/// # Panics
/// When the engine panics, or cannot be saved and restored.
pub(super) fn walk(engine: Value) {
    let Ok(mut engine) = serde_json::from_value::<Worker>(engine) else { return };
    let wall = chrono::DateTime::UNIX_EPOCH.fixed_offset();
    let at = |seconds: u64| Now { mono: Duration::from_secs(seconds), wall };
    engine.rebase(at(10_000));
    for (seconds, event) in (10_001..).zip(events(&engine)) {
        step(&mut engine.clone(), event.clone(), at(seconds));
        step(&mut engine, event, at(seconds));
    }
}

fn step(engine: &mut Worker, event: Event, now: Now) {
    let _ = engine.step(event, now);
    let written = serde_json::to_value(&*engine).expect("an engine is JSON");
    let mut again: Worker = serde_json::from_value(written).expect("an engine can be read again");
    // Whether tmux responds is not saved.
    let _ = (again.step(Event::Reachable(true), now), engine.step(Event::Reachable(true), now));
    assert_eq!(&again, engine);
    let _ = (engine.deadline(), engine.status(), engine.reason(), engine.loop_status());
    let _ = engine.last_exit().map(Exit::code);
}

/// Every kind of event, about the engine's run.
fn events(engine: &Worker) -> Vec<Event> {
    let run = engine.run();
    let dialog = Blocked { startup: false, what: "a dialog".into() };
    let replaced = Some(Blocked { startup: true, what: "a dialog".into() });
    let edits = Edits {
        max_iterations: Some(u32::MAX),
        inactivity_timeout: Some(u64::MAX),
        question_timeout: Some(u64::MAX),
        ..Edits::default()
    };
    let verdict = Verdict { done_pattern: Some(false), ..Verdict::default() };
    vec![
        Event::Adopted(run),
        Event::Screen(run, Reading { blocked: Some(dialog), ..Reading::default() }),
        Event::Quiet(run),
        Event::Tick,
        Event::Pause(PauseBy::User),
        Event::Resume,
        Event::Edited(edits),
        Event::Screen(run, Reading { ready: true, done: true, ..Reading::default() }),
        Event::PromptBlocked(run, replaced),
        Event::Screen(run, Reading { ready: true, ..Reading::default() }),
        Event::PromptSent(run),
        Event::PromptFailed(run, "no".into()),
        Event::Grew(run, Duration::MAX),
        Event::Probed(run, true),
        Event::Hook(run, HookSignal::TurnOver),
        Event::Hook(run, HookSignal::Idle),
        Event::Hook(run, HookSignal::Working),
        Event::Hook(run, HookSignal::Asks("may I".into())),
        Event::Exited(run, Exit::Signal(9)),
        Event::Evaluated(run, verdict),
        Event::Tick,
        Event::NeverStarted(run),
        Event::SpawnFailed(run, SpawnError::Other("no".into())),
        Event::SpawnFailed(run, SpawnError::OutOfTime),
        Event::PaneLost(run),
        Event::ServerLost(run),
        Event::Start,
        Event::Up(run),
        Event::Kill,
        Event::Tick,
    ]
}
