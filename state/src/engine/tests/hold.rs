//! A worker that a person holds, by typing or by `swarm hold`.

use super::tables::{OK, after, at_iteration, check, script};
use super::*;
use crate::budget::Budgets;
use crate::cause::Cause;
use crate::engine::{Presence, RELEASE_DELAY};
use crate::model::Status;
use crate::notice::{HoldBy, PauseBy};

const R: Run = Run(1);
const AWAY: Event = Event::Present(Presence::Away(RELEASE_DELAY));
const TYPES: Event = Event::Present(Presence::Typing);
const ATTACHED: Event = Event::Present(Presence::Attached);

fn hook(signal: HookSignal) -> Event {
    Event::Hook(R, signal)
}

fn by_typing() -> &'static str {
    "persist; \"held while you type: swarm starts and ends no run until 30 s after you detach\" => running"
}

#[test]
fn turn_end_ends_a_held_iteration_only_after_the_person_left() {
    let worker = check(
        at_iteration(1, 2),
        vec![
            (10, TYPES),
            (11, hook(HookSignal::TurnOver)),
            (13, Event::Tick),
            (14, Event::Screen(R, screen(1))),
            // Typed once, then idle for an hour.
            (3600, ATTACHED),
            (3600, Event::Tick),
            (3601, AWAY),
            (3630, Event::Tick),
            (3630, AWAY),
            (3631, Event::Tick),
            (3632, Event::Screen(R, screen(1))),
        ],
        &[
            by_typing(),
            "persist => running",
            "=> running",
            "=> running",
            "=> running",
            "=> running",
            "=> running",
            "=> running",
            "=> running",
            "persist; \"released\"; look 1; look 1 => running",
            "persist; term 1 => ending(turnover)",
        ],
    );
    assert_eq!(worker.ralph().unwrap().iteration, 1);
}

#[test]
fn hold_continues_if_the_person_returns_within_the_delay() {
    let mut worker = at_iteration(1, 2);
    after(&mut worker, vec![(10, TYPES), (20, AWAY)]);
    assert_eq!(worker.deadline(), Some(at(50_000).mono));
    after(&mut worker, script(40, [ATTACHED]));
    assert_eq!((worker.deadline(), worker.is_held()), (None, true));
    assert_eq!(after(&mut worker, vec![(45, AWAY), (60, TYPES), (80, Event::Tick)]), "=> running");
    after(&mut worker, vec![(90, AWAY), (120, Event::Tick)]);
    assert!(!worker.is_held());
}

#[test]
fn prompt_of_the_person_starts_another_turn() {
    let mut worker = at_iteration(1, 2);
    after(
        &mut worker,
        vec![(10, TYPES), (11, hook(HookSignal::TurnOver)), (20, hook(HookSignal::Prompt)), (30, AWAY)],
    );
    assert_eq!(
        after(&mut worker, vec![(60, Event::Tick), (64, Event::Screen(R, screen(2)))]),
        "=> running",
        "the agent works on what the person typed"
    );
    let over = [(70, hook(HookSignal::TurnOver)), (71, Event::Tick), (72, Event::Screen(R, screen(2)))];
    assert_eq!(after(&mut worker, over.to_vec()), "persist; term 1 => ending(turnover)");
}

#[test]
fn held_run_that_exits_is_checked_and_the_next_waits_for_a_release() {
    let mut worker = check(
        at_iteration(1, 3),
        vec![
            (10, Event::Hold),
            (20, Event::Exited(R, OK)),
            (20, Event::Evaluated(R, gates(false))),
            (900, Event::Tick),
        ],
        &[
            "persist; \"held by you: swarm starts and ends no run until you release it\" => running",
            "persist; judge 1 => judging(0)",
            "persist; \"iteration 1 completed (exit: 0, duration: 20s)\" => backoff(0s)",
            "=> backoff(0s)",
        ],
    );
    assert_eq!((worker.status(), worker.deadline()), (Status::Waiting, None));
    assert!(matches!(worker.cause(), Some(Cause::Held { by: HoldBy::Command, .. })));
    assert!(worker.is_held_back());
    assert_eq!(after(&mut worker, script(901, [Event::Release])), "persist; \"released\" => backoff(0s)");
    assert_eq!(
        after(&mut worker, script(901, [Event::Tick])),
        "persist; \"starting iteration 2/3\"; spawn 2 => spawning"
    );
}

#[test]
fn the_last_iteration_and_a_complete_loop_end_although_they_are_held() {
    for (max, done) in [(1, false), (3, true)] {
        let mut worker = at_iteration(1, max);
        after(&mut worker, script(1, [Event::Hold, Event::Exited(R, OK), Event::Evaluated(R, gates(done))]));
        assert!(worker.is_stopped() && !worker.is_held());
    }
}

#[test]
fn no_prompt_is_typed_into_a_held_agent() {
    let ready = || Event::Screen(R, Reading { ready: true, ..screen(1) });
    let start = || {
        let mut worker = Worker::looping(PASTE, 2, 60);
        after(&mut worker, script(0, [Event::Start, Event::Up(R)]));
        worker
    };
    let mut worker = start();
    let held = [(1, TYPES), (2, ready()), (40, Event::Tick), (41, AWAY), (71, Event::Tick)];
    let released = "persist; \"released\"; look 1 => starting";
    assert_eq!(after(&mut worker, held.to_vec()), released);
    // The screen has printed nothing since.
    assert_eq!(after(&mut worker, script(72, [Event::Quiet(R)])), "persist; ready; deliver 1 => prompting");

    // A delivery that the person interrupts begins again.
    for stopped in
        [Event::PromptBlocked(R, None), Event::PromptFailed(R, "it does not show".into()), Event::Adopted(R)]
    {
        let mut worker = start();
        after(&mut worker, script(1, [ready(), TYPES]));
        assert_eq!(after(&mut worker, script(2, [stopped])), "persist => starting");
        assert_eq!(worker.status(), Status::Starting);
        assert!(worker.needs_capture());
        assert_eq!(after(&mut worker, vec![(3, AWAY), (33, Event::Tick)]), released);
        assert_eq!(after(&mut worker, script(34, [ready()])), "persist; ready; deliver 1 => prompting");
    }
}

#[test]
fn time_of_a_hold_counts_for_no_limit() {
    let budgets = Budgets { iteration_timeout: Some(60), max_time: Some(100), ..Budgets::default() };
    let mut worker = Worker::verified(STDIN, 3, 40, budgets, false);
    after(&mut worker, script(0, [Event::Start, Event::Up(R), Event::Screen(R, screen(1))]));
    after(&mut worker, script(30, [Event::Hold]));
    assert_eq!(worker.deadline(), None);
    let looks = (32..1000).step_by(2).map(|second| (second, Event::Quiet(R))).collect();
    assert_eq!(after(&mut worker, looks), "=> running");
    let now = at(1_030_000);
    after(&mut worker, vec![(1030, Event::Release)]);
    assert_eq!(worker.deadline(), Some(at(1_060_000).mono), "30 of 60 seconds of the iteration are left");
    assert_eq!(worker.ralph().unwrap().spent(now).time, Duration::from_secs(30));
    assert_eq!(after(&mut worker, script(1059, [Event::Tick])), "=> running");
    let told = after(&mut worker, script(1060, [Event::Tick]));
    assert_eq!(told, "persist; term 1; \"iteration 1 is out of time (1m 0s)\" => ending(timeout)");
    after(&mut worker, script(1060, [Event::Exited(R, OK), Event::Evaluated(R, gates(false))]));
    after(&mut worker, script(1060, [Event::Up(Run(2))]));
    assert_eq!(
        worker.deadline(),
        Some(at(1_100_000).mono),
        "the loop has 40 s left, and the hold is not counted again"
    );
}

#[test]
fn an_open_question_waits_while_the_worker_is_held() {
    let asks = || Event::Screen(R, dialog(1, false, "may I?"));
    let mut worker = at_iteration(1, 2).asking(100);
    after(&mut worker, vec![(0, asks()), (50, TYPES)]);
    // The person at the pane sees the question.
    assert_eq!((worker.deadline(), worker.status()), (None, Status::Running));
    after(&mut worker, vec![(500, AWAY), (530, Event::Tick)]);
    assert_eq!((worker.deadline(), worker.status()), (Some(at(630_000).mono), Status::Waiting));
    // A person who holds it by command may be elsewhere, and has to know.
    after(&mut worker, script(540, [Event::Hold]));
    assert_eq!((worker.deadline(), worker.status()), (None, Status::Waiting));
    assert!(matches!(worker.cause(), Some(Cause::NeedsPerson { .. })));
}

#[test]
fn error_or_full_context_ends_a_released_run_unless_the_agent_works() {
    for (signals, end) in [
        (vec![HookSignal::ApiError("529".into())], "ending(apierror)"),
        (vec![HookSignal::ContextSpent, HookSignal::ToolUsed(None)], "ending(contextspent)"),
        (vec![HookSignal::ApiError("529".into()), HookSignal::Prompt], "running"),
    ] {
        let mut worker = at_iteration(1, 2);
        after(&mut worker, script(1, [Event::Hold]));
        for signal in signals {
            after(&mut worker, script(2, [hook(signal)]));
        }
        assert_eq!(phase_word(&worker), "running");
        after(&mut worker, script(3, [Event::Release]));
        assert_eq!(phase_word(&worker), end);
    }
}

#[test]
fn commands_of_a_person_override_a_hold() {
    let mut worker = at_iteration(1, 3);
    after(&mut worker, script(1, [TYPES]));
    assert_eq!(after(&mut worker, script(2, [Event::Kill])), "persist; term 1 => ending(kill)");
    assert!(!worker.is_held());

    // A resume of a loop whose agent lives changes nothing for the person at the pane.
    let mut worker = at_iteration(1, 3);
    after(&mut worker, script(1, [TYPES, Event::Pause(PauseBy::User), Event::Resume]));
    assert!(worker.is_held() && worker.ralph().unwrap().paused.is_none());

    // A resume that starts an agent ends the hold.
    after(&mut worker, script(2, [Event::Hold, Event::Exited(R, OK), Event::Evaluated(R, gates(false))]));
    // It need not be paused.
    let mut held = worker.clone();
    assert!(held.can_resume(at(3000)));
    after(&mut held, script(3, [Event::Resume]));
    assert_eq!((phase_word(&held), held.is_held()), ("spawning".into(), false));
    assert_eq!(after(&mut worker, script(3, [Event::Pause(PauseBy::User)])), "persist; \"paused\" => parked");
    assert_eq!((worker.status(), worker.is_held()), (Status::Paused, true));
    assert_eq!(
        after(&mut worker, script(4, [Event::Resume])),
        "persist; \"resumed\"; \"released\"; \"starting iteration 2/3\"; spawn 2 => spawning"
    );
    assert!(!worker.is_held());
}

#[test]
fn hold_and_release_are_idempotent_and_survive_a_restart() {
    let mut worker = at_iteration(1, 3);
    assert_eq!(after(&mut worker, script(0, [Event::Release])), "=> running");
    after(&mut worker, script(1, [Event::Hold]));
    assert_eq!(after(&mut worker, script(2, [Event::Hold])), "=> running");
    let text = serde_json::to_string(&worker).unwrap();
    let mut next: Worker = serde_json::from_str(&text).unwrap();
    next.rebase(at(0));
    assert_eq!(next.held_by(), worker.held_by());
    // A person who types has to be seen again.
    let mut worker = at_iteration(1, 3);
    after(&mut worker, script(1000, [TYPES]));
    worker.rebase(at(5000));
    assert_eq!(worker.deadline(), Some(at(35_000).mono));
    after(&mut worker, script(6, [ATTACHED]));
    assert_eq!(worker.deadline(), None);
    // A record without a hold has no trace of it.
    assert!(!serde_json::to_string(&at_iteration(1, 3)).unwrap().contains("hold"));
}

#[test]
fn typing_without_an_agent_and_a_hold_of_a_stopped_worker_hold_nothing() {
    let mut worker = at_iteration(1, 3);
    after(&mut worker, script(1, [Event::Exited(R, OK), TYPES]));
    assert!(!worker.is_held());
    for mut ended in [worker.clone().lost(), worker] {
        after(&mut ended, script(2, [Event::Kill, Event::Evaluated(R, gates(false))]));
        assert_eq!(after(&mut ended, script(3, [Event::Hold])), "=> stopped(killed)");
    }
}
