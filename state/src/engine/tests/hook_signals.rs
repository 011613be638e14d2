//! Hook signals: the end of a turn and another hook's effect on it, prompts, errors, questions.

use super::tables::{after, at_iteration, script};
use super::*;
use crate::model::Status;

const R: Run = Run(1);

fn busy(n: u8) -> Reading {
    Reading { working: true, ..screen(n) }
}

fn calm(n: u8) -> Reading {
    Reading { ready: true, ..screen(n) }
}

/// A loop whose agent works and has just said that its turn is over, at 10 s.
fn over() -> Worker {
    let mut worker = at_iteration(1, 9);
    after(&mut worker, script(9, [Event::Screen(R, calm(1))]));
    assert_eq!(after(&mut worker, script(10, [Event::Hook(R, HookSignal::TurnOver)])), "persist => running");
    worker
}

#[test]
fn turn_end_ends_the_iteration_after_a_delay_and_a_look() {
    let mut worker = over();
    assert_eq!(worker.deadline(), Some(at(11_000).mono));
    assert_eq!(after(&mut worker, script(10, [Event::Screen(R, calm(1))])), "=> running", "not yet");
    assert_eq!(after(&mut worker, script(11, [Event::Tick])), "look 1 => running");
    assert_eq!(
        after(&mut worker, script(11, [Event::Screen(R, calm(1))])),
        "persist; term 1 => ending(turnover)"
    );
}

#[test]
fn missing_look_does_not_block_the_end_of_the_iteration() {
    let mut worker = over();
    after(&mut worker, script(11, [Event::Tick]));
    assert_eq!(after(&mut worker, script(14, [Event::Tick])), "=> running");
    assert_eq!(after(&mut worker, script(15, [Event::Tick])), "persist; term 1 => ending(turnover)");
}

#[test]
fn agent_continued_by_another_hook_runs_until_its_screen_is_still() {
    // Work or a prompt within the second cancels the end of the turn.
    for goes_on in [HookSignal::Working, HookSignal::Prompt] {
        let mut worker = over();
        after(&mut worker, script(10, [Event::Hook(R, goes_on)]));
        assert_eq!(worker.deadline(), None);
        assert_eq!(after(&mut worker, script(12, [Event::Tick, Event::Screen(R, calm(2))])), "=> running");
    }
    // So does a screen that says that it works; a box that is there for a moment between two tools is no end.
    let mut worker = over();
    let looks = [Event::Tick, Event::Screen(R, busy(1)), Event::Screen(R, calm(2))];
    assert_eq!(after(&mut worker, script(11, looks)), "=> running");
    assert_eq!(worker.deadline(), None);
    assert_eq!(after(&mut worker, script(13, [Event::Screen(R, busy(3))])), "=> running");
    after(&mut worker, script(15, [Event::Screen(R, calm(4))]));
    assert_eq!(after(&mut worker, script(17, [Event::Quiet(R)])), "=> running");
    assert_eq!(after(&mut worker, script(19, [Event::Quiet(R)])), "persist; term 1 => ending(turnover)");
}

#[test]
fn idle_report_ends_the_turn_unless_a_background_task_runs() {
    let mut worker = at_iteration(1, 9);
    after(&mut worker, script(9, [Event::Screen(R, calm(1))]));
    let told = after(&mut worker, script(10, [Event::Hook(R, HookSignal::Working)]));
    assert_eq!(told, "persist => running", "the next daemon must know it too");
    worker.rebase(at(1_000));
    after(&mut worker, script(1, [Event::Adopted(R)]));
    assert_eq!(after(&mut worker, script(60, [Event::Hook(R, HookSignal::Idle)])), "=> running");
    assert_eq!(worker.deadline(), None);
    // The end of another turn was not heard.
    after(&mut worker, script(70, [Event::Hook(R, HookSignal::Prompt)]));
    assert_eq!(after(&mut worker, script(130, [Event::Hook(R, HookSignal::Idle)])), "persist => running");
    after(&mut worker, script(131, [Event::Tick]));
    let told = after(&mut worker, script(131, [Event::Screen(R, calm(1))]));
    assert_eq!(told, "persist; term 1 => ending(turnover)");
}

#[test]
fn turn_end_after_a_daemon_restart_is_found_by_the_screen() {
    let mut worker = over();
    worker.rebase(at(1_000));
    assert_eq!(worker.deadline(), None);
    after(&mut worker, script(1, [Event::Adopted(R), Event::Screen(R, calm(1))]));
    after(&mut worker, script(3, [Event::Quiet(R)]));
    assert_eq!(after(&mut worker, script(5, [Event::Quiet(R)])), "persist; term 1 => ending(turnover)");
}

#[test]
fn turn_end_makes_a_plain_worker_idle() {
    let mut worker = Worker::plain(STDIN);
    after(&mut worker, script(0, [Event::Start, Event::Up(R), Event::Hook(R, HookSignal::TurnOver)]));
    after(&mut worker, script(1, [Event::Tick]));
    let told = after(&mut worker, script(1, [Event::Screen(R, screen(1))]));
    assert_eq!(told, "idle => running");
    assert!(worker.is_idle(), "no input box is needed for that");
    // A screen that changes for its own reasons is no work and no second end.
    let quiet = [Event::Screen(R, calm(2)), Event::Quiet(R), Event::Quiet(R), Event::Quiet(R)];
    for (second, event) in (2..).step_by(2).zip(quiet) {
        let told = after(&mut worker, script(second, [event]));
        assert!(!told.contains("idle"), "{told}");
        assert!(worker.is_idle());
    }
    for at_work in [Event::Screen(R, busy(3)), Event::Hook(R, HookSignal::Prompt), Event::Typed(R)] {
        after(&mut worker, script(9, [Event::Hook(R, HookSignal::TurnOver)]));
        after(&mut worker, script(10, [Event::Tick, Event::Screen(R, screen(1))]));
        assert!(worker.is_idle());
        after(&mut worker, script(11, [at_work]));
        assert!(!worker.is_idle());
    }
    for quiet in [HookSignal::ApiError("529".into()), HookSignal::ContextSpent] {
        assert_eq!(after(&mut worker, script(2, [Event::Hook(R, quiet)])), "=> running");
    }
}

#[test]
fn prompt_reported_by_a_hook_is_accepted() {
    for (heard, then) in [
        (HookSignal::Prompt, "persist; promptsent => running"),
        (HookSignal::TurnOver, "persist; promptsent => running"),
        (HookSignal::Working, "=> prompting"),
    ] {
        let mut worker = Worker::looping(PASTE, 9, 60);
        after(&mut worker, script(0, [Event::Start, Event::Up(R), Event::Screen(R, calm(1))]));
        assert_eq!(after(&mut worker, script(1, [Event::Hook(R, heard)])), then);
    }
}

#[test]
fn agent_is_ready_when_a_hook_reports_its_prompt_or_turn_end() {
    let policy = Policy { ready_wait: true, ..STDIN };
    for (heard, then) in [
        (HookSignal::Prompt, "persist; ready => running"),
        (HookSignal::TurnOver, "persist; ready => running"),
        (HookSignal::Asks("may I".into()), "persist; \"waiting for a person: may I\" => starting"),
    ] {
        let mut worker = Worker::looping(policy.clone(), 9, 60);
        after(&mut worker, script(0, [Event::Start, Event::Up(R), Event::Screen(R, screen(1))]));
        let is_over = heard == HookSignal::TurnOver;
        assert_eq!(after(&mut worker, script(1, [Event::Hook(R, heard)])), then);
        if is_over {
            after(&mut worker, script(2, [Event::Tick]));
            let ended = after(&mut worker, script(2, [Event::Screen(R, screen(1))]));
            assert_eq!(ended, "persist; term 1 => ending(turnover)");
        }
    }
    // A prompt that is still to be pasted has not arrived, whatever somebody has typed.
    let mut worker = Worker::looping(PASTE, 9, 60);
    after(&mut worker, script(0, [Event::Start, Event::Up(R), Event::Screen(R, screen(1))]));
    assert_eq!(after(&mut worker, script(1, [Event::Hook(R, HookSignal::Prompt)])), "persist => starting");
}

#[test]
fn question_waits_for_a_person_until_the_agent_continues() {
    let asks = || Event::Hook(R, HookSignal::Asks("it needs your permission".into()));
    for moves in [Event::Hook(R, HookSignal::Working), Event::Screen(R, busy(1)), Event::Screen(R, screen(7))]
    {
        let mut worker = at_iteration(1, 9);
        after(&mut worker, script(0, [Event::Screen(R, screen(1))]));
        after(&mut worker, script(1, [asks()]));
        assert_eq!(
            (worker.status(), worker.reason().as_deref()),
            (Status::Waiting, Some("it needs your permission"))
        );
        assert_eq!(after(&mut worker, script(2, [asks()])), "=> running", "told once");
        after(&mut worker, script(3, [Event::Quiet(R), Event::Screen(R, screen(1))]));
        assert_eq!(worker.status(), Status::Waiting);
        after(&mut worker, script(5, [moves]));
        assert_eq!(worker.status(), Status::Running);
    }
}

#[test]
fn full_context_ends_the_iteration_and_an_api_error_fails_it() {
    let mut worker = at_iteration(1, 9);
    after(
        &mut worker,
        script(1, [Event::Hook(R, HookSignal::ContextSpent), Event::Exited(R, Exit::Signal(15))]),
    );
    let next = after(&mut worker, script(2, [Event::Evaluated(R, gates(false))]));
    assert!(next.contains("exit=context-spent") || next.contains("spawn 2"), "{next}");
    assert_eq!(worker.ralph().map(|l| (l.iteration, l.failures)), Some((2, 0)));
    let mut worker = at_iteration(1, 9);
    let error = Event::Hook(R, HookSignal::ApiError("bad request".into()));
    after(&mut worker, script(1, [error, Event::Exited(R, Exit::Code(0))]));
    let next = after(&mut worker, script(2, [Event::Evaluated(R, gates(false))]));
    assert!(next.contains("api-error") && next.ends_with("backoff(1s)"), "{next}");
    // An outage is nobody's failure, whoever told of it.
    let mut worker = at_iteration(1, 9);
    let error = Event::Hook(R, HookSignal::ApiError("529 overloaded".into()));
    after(&mut worker, script(1, [error, Event::Exited(R, Exit::Code(0))]));
    let outage = crate::outage::Outage {
        kind: crate::outage::OutageKind::Overload,
        message: "529".into(),
        until: None,
    };
    after(&mut worker, script(2, [Event::Evaluated(R, Verdict { outage: Some(outage), ..gates(false) })]));
    assert_eq!(worker.ralph().map(|l| (l.iteration, l.failures)), Some((0, 0)));
}

#[test]
fn text_typed_after_the_turn_end_continues_the_iteration() {
    let typed_after = |mut worker: Worker| {
        after(&mut worker, script(10, [Event::Typing(R)]));
        worker
    };
    // While the text is on its way, no time and no look ends the run.
    let mut worker = typed_after(over());
    let waits = [Event::Tick, Event::Screen(R, calm(1)), Event::Quiet(R), Event::Quiet(R)];
    for (second, event) in (11..).step_by(3).zip(waits) {
        assert_eq!(after(&mut worker, script(second, [event])), "=> running");
    }
    // The agent begins a turn with it, and only the end of that turn ends the iteration.
    after(&mut worker, script(22, [Event::Typed(R), Event::Hook(R, HookSignal::Prompt)]));
    assert_eq!(after(&mut worker, script(40, [Event::Tick, Event::Screen(R, calm(2))])), "=> running");
    after(&mut worker, script(41, [Event::Hook(R, HookSignal::TurnOver)]));
    let ended = after(&mut worker, script(43, [Event::Tick, Event::Screen(R, calm(2))]));
    assert!(ended.ends_with("=> ending(turnover)"), "{ended}");
    // A text that begins no turn: the screen shows when the agent stands still.
    let mut worker = typed_after(over());
    after(&mut worker, script(12, [Event::Typed(R), Event::Screen(R, calm(2))]));
    let ended = after(&mut worker, script(30, [Event::Quiet(R)]));
    assert!(ended.ends_with("=> ending(turnover)"), "{ended}");
}
