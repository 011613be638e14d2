//! Gates beside the done pattern, budgets and outages, as short stories.

use super::*;
use crate::budget::{self, BudgetEdits, Budgets};
use crate::engine::{Edits, Why};
use crate::gates::CheckResult;
use crate::model::{LoopStatus, Status};
use crate::notice::{Entry, IterationExit, PauseBy, StopReason};
use crate::outage::{self, Outage};
use crate::promise::Claim;
use crate::tasks::IterationMode;
use crate::tasks::gate::{TaskTurn, TaskVerdict};

fn verified(budgets: Budgets) -> Worker {
    Worker::verified(STDIN, 10, 60, budgets, true)
}

/// A loop whose first iteration ended by itself, with what the gates say of it.
fn judged(mut worker: Worker, exit: Exit, verdict: Verdict, ms: u64) -> (Worker, Vec<Effect>) {
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(Run(1)), at(0));
    worker.step(Event::Exited(Run(1), exit), at(ms));
    let effects = worker.step(Event::Evaluated(Run(1), verdict), at(ms));
    (worker, effects)
}

fn entries(effects: &[Effect]) -> Vec<&Entry> {
    effects.iter().filter_map(|e| if let Effect::Notify(entry) = e { Some(entry) } else { None }).collect()
}

fn check(passed: bool) -> CheckResult {
    CheckResult {
        name: "make test".into(),
        passed,
        output: String::new(),
        seconds: 1.0,
        cut: false,
        tests: None,
    }
}

#[test]
fn edited_limits_apply_to_the_next_verdict_and_to_a_paused_loop() {
    let keep = BudgetEdits::default;
    let rows = [
        (keep(), 3, false),
        (BudgetEdits { max_cost: Some(Some(4)), ..keep() }, 3, true),
        (BudgetEdits { max_cost: Some(None), ..keep() }, 3, true),
        (BudgetEdits { max_cost: Some(None), max_tokens: Some(Some(9)), ..keep() }, 3, false),
        (BudgetEdits { max_cost: Some(None), max_time: Some(Some(2)), ..keep() }, 3, false),
        (keep(), 2, true),
        (BudgetEdits { max_cost: Some(Some(2)), ..keep() }, 2, false),
        (BudgetEdits { max_tokens: Some(Some(10)), ..keep() }, 2, true),
        (BudgetEdits { max_tokens: Some(Some(9)), ..keep() }, 2, false),
        (BudgetEdits { max_time: Some(Some(3)), ..keep() }, 2, true),
        (BudgetEdits { max_time: Some(Some(2)), ..keep() }, 2, false),
    ];
    for (budgets, cost, goes_on) in rows {
        let edits = Edits { budgets, ..Edits::default() };
        for while_paused in [false, true] {
            // A loop that has reached its limit ends, and cannot be edited any more.
            if while_paused && cost == 3 {
                continue;
            }
            let mut worker = verified(Budgets { max_cost: Some(3), ..Budgets::default() });
            worker.step(Event::Start, at(0));
            worker.step(Event::Up(Run(1)), at(0));
            worker.step(Event::Pause(PauseBy::User), at(0));
            worker.step(Event::Exited(Run(1), Exit::Code(0)), at(2000));
            if !while_paused {
                worker.step(Event::Edited(edits.clone()), at(2000));
            }
            let verdict = Verdict { cost: Some(cost), tokens: Some(9), ..Verdict::default() };
            worker.step(Event::Evaluated(Run(1), verdict), at(2000));
            if while_paused {
                assert_eq!(worker.loop_status(), Some(LoopStatus::Paused));
                worker.step(Event::Edited(edits.clone()), at(2000));
            }
            worker.step(Event::Resume, at(2000));
            assert_eq!(!worker.is_stopped(), goes_on, "{edits:?}, {cost} spent, paused: {while_paused}");
        }
    }
}

#[test]
fn a_pattern_alone_does_not_complete_a_loop_that_has_other_gates() {
    let mut worker = verified(Budgets::default());
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(Run(1)), at(0));
    let done = Reading { done: true, ..screen(1) };
    worker.step(Event::Screen(Run(1), done), at(1000));
    worker.step(Event::Quiet(Run(1)), at(3000));
    worker.step(Event::Quiet(Run(1)), at(5000));
    assert!(matches!(worker.phase(), Phase::Ending { why: Why::Done, .. }), "{:?}", worker.phase());
    worker.step(Event::Exited(Run(1), Exit::Signal(15)), at(6000));
    let verdict = Verdict { done_pattern: Some(true), checks: vec![check(false)], ..Verdict::default() };
    worker.step(Event::Evaluated(Run(1), verdict), at(7000));
    assert_eq!(worker.ralph().unwrap().iteration, 2);
    assert_eq!(worker.ralph().unwrap().failures, 0);
}

#[test]
fn verified_loop_ends_when_all_gates_hold_for_any_exit_status() {
    let verdict = Verdict { checks: vec![check(true)], ..Verdict::default() };
    let (worker, effects) = judged(verified(Budgets::default()), Exit::Code(1), verdict, 1000);
    assert_eq!(*worker.phase(), Phase::Stopped { reason: StopReason::Verified });
    assert!(entries(&effects).contains(&&Entry::GatesHeld { iteration: 1 }));
}

fn tasks(done: u64) -> Verdict {
    let turn = TaskTurn { mode: IterationMode::Review, story: "US-001".into(), title: "Pay".into() };
    let undone = vec!["story US-002 was removed and was restored".into()];
    let tasks = TaskVerdict { turn, done, total: 2, undone, ..TaskVerdict::default() };
    Verdict { tasks: Some(tasks.into()), ..Verdict::default() }
}

#[test]
fn a_task_list_ends_the_loop_when_every_story_is_approved() {
    let (worker, _) = judged(verified(Budgets::default()), Exit::Code(0), tasks(2), 1000);
    assert_eq!(*worker.phase(), Phase::Stopped { reason: StopReason::StoriesApproved });
    let (worker, effects) = judged(verified(Budgets::default()), Exit::Code(0), tasks(1), 1000);
    assert_eq!(worker.ralph().unwrap().iteration, 2);
    let told = entries(&effects);
    let Entry::GatesMissed { missing, .. } = told[1] else { panic!("{told:?}") };
    assert_eq!(
        *missing,
        ["1 of 2 stories are approved (review US-001: open)", "story US-002 was removed and was restored"]
    );
}

#[test]
fn task_list_without_work_ends_the_loop_and_uses_no_iteration() {
    for (error, reason) in [
        (SpawnError::StoriesApproved, StopReason::StoriesApproved),
        (SpawnError::NoStory("a → a".into()), StopReason::NoStory("a → a".into())),
    ] {
        let mut worker = verified(Budgets::default());
        worker.step(Event::Start, at(0));
        worker.step(Event::SpawnFailed(Run(1), error), at(1));
        assert_eq!(*worker.phase(), Phase::Stopped { reason });
        assert_eq!(worker.ralph().unwrap().iteration, 0);
    }
}

#[test]
fn three_empty_answers_in_a_row_use_no_iteration() {
    let mut worker = verified(Budgets::default());
    worker.step(Event::Start, at(0));
    let mut now = 0;
    for (answer, iteration) in [(1, 0), (2, 0), (3, 0), (4, 1)] {
        let run = worker.run();
        worker.step(Event::Up(run), at(now));
        worker.step(Event::Exited(run, Exit::Code(0)), at(now + 10));
        let empty = Verdict { is_empty_answer: true, ..tasks(0) };
        worker.step(Event::Evaluated(run, empty), at(now + 20));
        assert_eq!(worker.ralph().unwrap().iteration, iteration, "answer {answer}");
        now += 60_000;
        worker.step(Event::Tick, at(now));
    }
}

#[test]
fn missed_gates_are_reported_before_the_next_iteration() {
    let verdict = Verdict { checks: vec![check(false)], promise: Some(Claim::Missing), ..Verdict::default() };
    let (_, effects) = judged(verified(Budgets::default()), Exit::Code(0), verdict, 1000);
    let missing = vec!["the promise was not given".to_owned(), "the check 'make test' failed".to_owned()];
    let told = entries(&effects);
    assert_eq!(*told[1], Entry::GatesMissed { iteration: 1, missing });
    assert_eq!(*told[2], Entry::IterationStarted { iteration: 2, max: 10 });
}

#[test]
fn loop_whose_gates_never_held_fails_at_its_last_iteration() {
    let worker = Worker::verified(STDIN, 1, 60, Budgets::default(), true);
    let verdict = Verdict { checks: vec![check(false)], ..Verdict::default() };
    let (worker, _) = judged(worker, Exit::Code(0), verdict, 1000);
    assert_eq!(*worker.phase(), Phase::Stopped { reason: StopReason::Unverified });
    assert_eq!(worker.status(), Status::Failed);
}

#[test]
fn cost_and_token_limits_end_a_loop_after_the_iteration_over_them() {
    let spent = |cost, tokens| Verdict { cost, tokens, checks: vec![check(false)], ..Verdict::default() };
    let budgets = Budgets { max_cost: Some(3_000_000), max_tokens: Some(500), ..Budgets::default() };
    let (worker, _) = judged(verified(budgets.clone()), Exit::Code(0), spent(Some(3_100_000), None), 1000);
    let reason = StopReason::Cost { spent: 3_100_000, limit: 3_000_000 };
    assert_eq!(worker.reason().unwrap(), "out of budget ($3.10 of $3.00)");
    assert_eq!(*worker.phase(), Phase::Stopped { reason });
    let (worker, _) = judged(verified(budgets.clone()), Exit::Code(0), spent(None, Some(499)), 1000);
    assert_eq!(worker.ralph().unwrap().iteration, 2);
    let (worker, _) = judged(verified(budgets), Exit::Code(0), spent(Some(1), Some(500)), 1000);
    assert_eq!(worker.loop_status(), Some(LoopStatus::Failed));
}

#[test]
fn time_limit_of_a_loop_ends_the_running_agent() {
    let mut worker = verified(Budgets { max_time: Some(100), ..Budgets::default() });
    worker.step(Event::Start, at(50_000));
    worker.step(Event::Up(Run(1)), at(60_000));
    assert_eq!(worker.deadline(), Some(at(150_000).mono));
    assert!(worker.step(Event::Tick, at(149_000)).is_empty());
    let effects = worker.step(Event::Tick, at(150_000));
    assert!(effects.contains(&Effect::Terminate(Run(1))));
    assert!(entries(&effects).contains(&&Entry::OutOfTime { iteration: 1, limit: 100, whole: true }));
    worker.step(Event::Exited(Run(1), Exit::Signal(15)), at(151_000));
    let verdict = Verdict { checks: vec![check(false)], ..Verdict::default() };
    worker.step(Event::Evaluated(Run(1), verdict), at(152_000));
    assert_eq!(*worker.phase(), Phase::Stopped { reason: StopReason::OutOfTime(100) });
}

#[test]
fn gates_that_hold_at_the_time_limit_complete_the_loop() {
    let mut worker = verified(Budgets { max_time: Some(100), ..Budgets::default() });
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(Run(1)), at(0));
    worker.step(Event::Tick, at(100_000));
    worker.step(Event::Exited(Run(1), Exit::Signal(15)), at(101_000));
    worker.step(
        Event::Evaluated(Run(1), Verdict { checks: vec![check(true)], ..Verdict::default() }),
        at(102_000),
    );
    assert_eq!(*worker.phase(), Phase::Stopped { reason: StopReason::Verified });
}

#[test]
fn no_agent_starts_if_the_time_limit_was_reached_before() {
    let limited = || verified(Budgets { max_time: Some(100), ..Budgets::default() });
    // The base line took it all.
    let mut worker = limited();
    worker.step(Event::Start, at(0));
    assert_eq!(worker.ralph().unwrap().time_left(at(30_000)), Some(Duration::from_secs(70)));
    let effects = worker.step(Event::SpawnFailed(Run(1), SpawnError::OutOfTime), at(101_000));
    assert_eq!(*worker.phase(), Phase::Stopped { reason: StopReason::OutOfTime(100) });
    assert_eq!(worker.ralph().unwrap().iteration, 0, "nobody has worked");
    let told = entries(&effects);
    assert_eq!(*told[0], Entry::OutOfTime { iteration: 1, limit: 100, whole: true });
    assert_eq!(*told[2], Entry::LoopFailed { iterations: 0, reason: StopReason::OutOfTime(100) });
    // A daemon that died during the base line found that nothing had been started.
    let mut worker = limited();
    worker.step(Event::Start, at(0));
    worker.step(Event::NeverStarted(Run(1)), at(100_000));
    assert_eq!(*worker.phase(), Phase::Stopped { reason: StopReason::OutOfTime(100) });
    // A paused loop is limited by nothing, and a pause of its agent does not give it more time.
    let mut worker = limited();
    worker.step(Event::Start, at(0));
    worker.step(Event::Pause(PauseBy::User), at(0));
    assert_eq!(worker.ralph().unwrap().time_left(at(500_000)), None);
    let mut worker = Worker::looping(STDIN, 9, 60);
    worker.step(Event::Start, at(0));
    worker.step(Event::SpawnFailed(Run(1), SpawnError::OutOfTime), at(0));
    assert_eq!(worker.ralph().unwrap().failures, 1, "a loop without a limit cannot be out of time");
}

#[test]
fn last_failure_is_the_reason_until_the_next_run() {
    let no = |run| Event::SpawnFailed(Run(run), SpawnError::Other("no room".into()));
    let mut worker = verified(Budgets { max_failures: 2, ..Budgets::default() });
    worker.step(Event::Start, at(0));
    worker.step(no(1), at(0));
    assert_eq!(worker.reason().unwrap(), "next try 1s after a failure: no room");
    worker.step(Event::Tick, at(1000));
    assert_eq!((worker.failure(), worker.reason()), (None, None));
    worker.step(no(2), at(1000));
    assert_eq!(worker.reason().unwrap(), "2 consecutive failures: no room");
    // So is what kept the gates from being tried, or how the agent failed.
    let trouble = Verdict { trouble: Some("the agent was not started: no".into()), ..Verdict::default() };
    let (worker, _) = judged(verified(Budgets::default()), Exit::Code(127), trouble, 1000);
    assert_eq!(worker.failure().as_deref(), Some("the agent was not started: no"));
    let failed = Verdict { checks: vec![check(false)], ..Verdict::default() };
    let (worker, _) = judged(verified(Budgets::default()), Exit::Code(1), failed, 1000);
    assert_eq!(worker.failure().as_deref(), Some("exit status 1"));
}

#[test]
fn failed_wrapper_start_uses_no_iteration_and_five_end_the_loop() {
    let no = |run| Event::SpawnFailed(Run(run), SpawnError::Helper("no program".into()));
    let mut worker = Worker::looping(STDIN, 1, 60);
    worker.step(Event::Start, at(0));
    let mut now = 0;
    for attempt in 1..=5 {
        let run = worker.run().0;
        assert_eq!((run, worker.ralph().unwrap().iteration), (attempt, 1));
        // In every second attempt, the run is up before its failure is reported.
        if attempt % 2 == 0 {
            worker.step(Event::Up(Run(run)), at(now));
        }
        let effects = worker.step(no(run), at(now));
        let failed = |entry: &&&Entry| matches!(entry, Entry::IterationFailed { iteration: 1, .. });
        assert_eq!(entries(&effects).iter().filter(failed).count(), 1, "{effects:?}");
        assert_eq!(worker.ralph().unwrap().iteration, 0, "it is given back");
        assert_eq!(worker.failure().as_deref(), Some("no program"));
        now += 20_000;
        worker.step(Event::Tick, at(now));
    }
    assert_eq!((worker.status(), worker.ralph().unwrap().total_failures), (Status::Failed, 5));
    assert_eq!(worker.reason().unwrap(), "5 consecutive failures: no program");
    // A plain worker ends with the reason, and a kill meanwhile is a kill.
    let mut plain = Worker::plain(STDIN);
    plain.step(Event::Start, at(0));
    plain.step(Event::Up(Run(1)), at(0));
    plain.step(no(1), at(1000));
    assert_eq!(plain.reason().unwrap(), "no program");
    let mut killed = Worker::looping(STDIN, 1, 60);
    for event in [Event::Start, Event::Up(Run(1)), Event::Kill, no(1)] {
        killed.step(event, at(0));
    }
    assert_eq!(killed.phase(), &Phase::Stopped { reason: StopReason::Killed });
}

#[test]
fn no_baseline_is_recorded_after_a_run_was_up() {
    let mut worker = verified(Budgets::default());
    let worked = |worker: &Worker| worker.ralph().unwrap().worked;
    worker.step(Event::Start, at(0));
    worker.step(Event::SpawnFailed(Run(1), SpawnError::Other("no room".into())), at(0));
    worker.step(Event::Tick, at(1000));
    assert!(!worked(&worker), "the base line may still be taken");
    worker.step(Event::Up(Run(2)), at(1000));
    assert!(worked(&worker));
    // Nor may it be when the daemon did not see it come up.
    let mut worker = verified(Budgets::default());
    worker.step(Event::Start, at(0));
    worker.step(Event::PaneLost(Run(1)), at(0));
    assert!(worked(&worker));
}

#[test]
fn iteration_timeout_ends_the_iteration_and_the_loop_continues() {
    let mut worker = verified(Budgets { iteration_timeout: Some(30), ..Budgets::default() });
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(Run(1)), at(10_000));
    let effects = worker.step(Event::Tick, at(30_000));
    assert!(entries(&effects).contains(&&Entry::OutOfTime { iteration: 1, limit: 30, whole: false }));
    worker.step(Event::Exited(Run(1), Exit::Signal(15)), at(31_000));
    let verdict = Verdict { checks: vec![check(false)], ..Verdict::default() };
    let effects = worker.step(Event::Evaluated(Run(1), verdict), at(32_000));
    let ended = Entry::IterationEnded { iteration: 1, exit: IterationExit::Timeout, seconds: 32 };
    assert_eq!(*entries(&effects)[0], ended);
    assert_eq!(worker.ralph().unwrap().iteration, 2);
}

#[test]
fn context_limit_ends_the_iteration_after_the_agent_was_asked_to_stop() {
    for (max_context, reports, ended) in [
        (None, &[50, 100, 100][..], false),
        (Some(70), &[69, 84, 84], false),
        (Some(70), &[70, 84, 85], true),
        // The first report above the limit only asks the agent, also above the end.
        (Some(70), &[60, 98], false),
        (Some(70), &[60, 98, 98, 98], false),
        (Some(70), &[60, 98, 98, 99], true),
        (Some(70), &[99, 20, 99], false),
        (Some(85), &[85, 100], true),
        // A compaction comes first.
        (Some(86), &[90, 100, 100], false),
    ] {
        let mut worker = verified(Budgets { max_context, ..Budgets::default() });
        worker.step(Event::Start, at(0));
        worker.step(Event::Up(Run(1)), at(0));
        let mut last = vec![];
        for percent in reports {
            last = worker.step(Event::Hook(Run(1), HookSignal::ToolUsed(Some(*percent))), at(1000));
        }
        let is_ending = matches!(worker.phase(), Phase::Ending { why: Why::ContextSpent, .. });
        assert_eq!(is_ending, ended, "{max_context:?} {reports:?}");
        assert_eq!(worker.context_percent(), reports.last().filter(|_| !ended).copied());
        if max_context == Some(70) && ended {
            let percent = reports.last().unwrap();
            let reason = format!("its context is {percent}% full; --max-context 70 ends it at 85%");
            assert!(entries(&last).contains(&&Entry::Warning { message: format!("iteration 1: {reason}") }));
            worker.step(Event::Exited(Run(1), Exit::Signal(15)), at(2000));
            assert_eq!(worker.ended().unwrap().reason, reason);
        }
    }
}

#[test]
fn pause_without_an_agent_does_not_count_and_no_limit_ends_a_paused_one() {
    let mut worker = verified(Budgets { max_time: Some(100), ..Budgets::default() });
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(Run(1)), at(0));
    worker.step(Event::Pause(PauseBy::User), at(10_000));
    assert!(worker.step(Event::Tick, at(500_000)).is_empty());
    let mut worker = verified(Budgets { max_time: Some(100), ..Budgets::default() });
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(Run(1)), at(0));
    worker.step(Event::Pause(PauseBy::User), at(10_000));
    worker.step(Event::Exited(Run(1), Exit::Code(0)), at(20_000));
    worker.step(Event::Evaluated(Run(1), Verdict::default()), at(20_000));
    assert_eq!(*worker.phase(), Phase::Parked);
    worker.step(Event::Resume, at(900_000));
    assert_eq!(worker.ralph().unwrap().spent(at(900_000)).time.as_secs(), 20);
    worker.step(Event::Up(Run(2)), at(900_000));
    assert_eq!(worker.deadline(), Some(at(980_000).mono));
}

#[test]
fn a_usage_limit_waits_and_uses_up_no_iteration() {
    let until = at(0).wall + TimeDelta::minutes(30);
    let limit = Outage { kind: outage::OutageKind::Limit, message: "limit".into(), until: Some(until) };
    let verdict = Verdict { outage: Some(limit), cost: Some(5), ..Verdict::default() };
    let (mut worker, effects) = judged(verified(Budgets::default()), Exit::Code(1), verdict, 0);
    assert_eq!(worker.status(), Status::Waiting);
    assert!(worker.reason().unwrap().starts_with("limit (goes on by itself at "), "{:?}", worker.reason());
    assert!(entries(&effects).contains(&&Entry::Outage {
        iteration: 1,
        message: "limit".into(),
        wait: 1805,
        parked: false
    }));
    let ralph = worker.ralph().unwrap();
    assert_eq!((ralph.iteration, ralph.failures, ralph.total_failures), (0, 0, 0));
    assert!(worker.step(Event::Tick, at(1_804_000)).is_empty());
    assert_eq!(worker.ralph().unwrap().outages(at(1_804_000).wall), (1, 1804));
    let effects = worker.step(Event::Tick, at(1_805_000));
    assert!(entries(&effects).contains(&&Entry::IterationStarted { iteration: 1, max: 10 }));
    assert_eq!((worker.status(), worker.run()), (Status::Starting, Run(2)));
    assert_eq!(worker.ralph().unwrap().outages(at(9_000_000).wall), (1, 1805));
}

#[test]
fn kill_during_an_outage_ends_the_counted_outage_time() {
    let outage = Outage { kind: outage::OutageKind::Overload, message: "529".into(), until: None };
    let verdict = Verdict { outage: Some(outage), ..Verdict::default() };
    let (mut worker, _) = judged(verified(Budgets::default()), Exit::Code(1), verdict, 7_000);
    worker.step(Event::Kill, at(9_000));
    assert_eq!(worker.ralph().unwrap().outages(at(90_000).wall), (1, 9));
}

#[test]
fn disabled_access_ends_the_loop() {
    let outage =
        Outage { kind: outage::OutageKind::Forbidden, message: "disabled by your admin".into(), until: None };
    let verdict = Verdict { outage: Some(outage), ..Verdict::default() };
    let (worker, _) = judged(verified(Budgets::default()), Exit::Code(1), verdict, 0);
    assert_eq!(
        (worker.status(), worker.reason().unwrap().as_str()),
        (Status::Failed, "disabled by your admin")
    );
}

#[test]
fn loop_without_a_reported_cost_is_paused_until_it_is_resumed() {
    for code in [0, 1] {
        let mut worker = verified(Budgets { max_cost: Some(9), no_progress: Some(1), ..Budgets::default() });
        let unseen = Some("no cost".to_owned());
        let verdict =
            Verdict { checks: vec![check(false)], moved: Some(false), unseen, ..Verdict::default() };
        worker.step(Event::Start, at(0));
        for run in [1, 2] {
            worker.step(Event::Up(Run(run)), at(0));
            worker.step(Event::Exited(Run(run), Exit::Code(code)), at(0));
            worker.step(Event::Evaluated(Run(run), verdict.clone()), at(0));
            assert_eq!(*worker.phase(), Phase::Parked, "after status {code}");
            assert_eq!(worker.ralph().unwrap().paused, Some(PauseBy::BudgetUnseen));
            assert_eq!(worker.reason().unwrap(), format!("paused: {}", budget::USAGE_UNKNOWN));
            worker.step(Event::Resume, at(0));
            assert_eq!(worker.ralph().unwrap().iteration, run as u32 + 1);
        }
        // An agent that could not be started used nothing.
        worker.step(Event::SpawnFailed(Run(3), SpawnError::Other("no".into())), at(0));
        assert!(matches!(worker.phase(), Phase::BackingOff { .. }), "{:?}", worker.phase());
    }
}

#[test]
fn loop_is_paused_after_a_story_was_sent_back_three_times_at_its_cap() {
    let mut worker = verified(Budgets::default());
    worker.step(Event::Start, at(0));
    for (run, sent_back_at_cap) in [(1, 1), (2, 2), (3, 3), (4, 0), (5, 4), (6, 6)] {
        worker.step(Event::Up(Run(run)), at(0));
        worker.step(Event::Exited(Run(run), Exit::Code(0)), at(0));
        let turn = TaskTurn { mode: IterationMode::Review, story: "US-001".into(), title: String::new() };
        let tasks = TaskVerdict { turn, sent_back_at_cap, total: 1, ..TaskVerdict::default() };
        let verdict = Verdict { tasks: Some(tasks.into()), ..Verdict::default() };
        worker.step(Event::Evaluated(Run(run), verdict), at(0));
        let is_stuck = matches!(sent_back_at_cap, 3 | 6);
        assert_eq!(worker.ralph().unwrap().paused, is_stuck.then_some(PauseBy::StoryStuck), "{run}");
        let reason = worker.reason().unwrap_or_default();
        assert_eq!(
            reason.starts_with("paused: story US-001 has reached its review cap"),
            is_stuck,
            "{reason}"
        );
        worker.step(Event::Resume, at(0));
    }
}

#[test]
fn loop_is_paused_after_its_held_out_checks_used_all_tries() {
    let mut worker = verified(Budgets::default());
    worker.step(Event::Start, at(0));
    for (run, tries_spent) in [(1, false), (2, true), (3, false)] {
        worker.step(Event::Up(Run(run)), at(0));
        worker.step(Event::Exited(Run(run), Exit::Code(0)), at(0));
        let verdict = Verdict { checks: vec![check(false)], tries_spent, ..Verdict::default() };
        worker.step(Event::Evaluated(Run(run), verdict), at(0));
        assert_eq!(*worker.phase() == Phase::Parked, tries_spent, "run {run}");
        assert_eq!(worker.ralph().unwrap().paused, tries_spent.then_some(PauseBy::HeldOut));
        worker.step(Event::Resume, at(0));
    }
}

#[test]
fn a_check_that_cannot_run_pauses_the_loop_with_the_reason() {
    let mut worker = verified(Budgets::default());
    worker.step(Event::Start, at(0));
    for (run, why) in [(1, Some("no such program: x")), (2, None)] {
        worker.step(Event::Up(Run(run)), at(0));
        worker.step(Event::Exited(Run(run), Exit::Code(0)), at(0));
        let cannot_check = why.map(Into::into);
        let verdict = Verdict { checks: vec![check(false)], cannot_check, ..Verdict::default() };
        worker.step(Event::Evaluated(Run(run), verdict), at(0));
        let reason = why.map(|why| format!("paused: {why}"));
        assert_eq!((*worker.phase() == Phase::Parked, worker.reason()), (why.is_some(), reason), "run {run}");
        worker.step(Event::Resume, at(0));
    }
}

#[test]
fn loop_without_progress_is_paused_with_that_reason() {
    let mut worker = verified(Budgets { no_progress: Some(2), ..Budgets::default() });
    let verdict = |moved| Verdict { checks: vec![check(false)], moved, ..Verdict::default() };
    worker.step(Event::Start, at(0));
    for (run, moved) in [(1, Some(false)), (2, Some(true)), (3, Some(false)), (4, Some(false))] {
        worker.step(Event::Up(Run(run)), at(0));
        worker.step(Event::Exited(Run(run), Exit::Code(0)), at(0));
        worker.step(Event::Evaluated(Run(run), verdict(moved)), at(0));
    }
    assert_eq!(*worker.phase(), Phase::Parked);
    assert_eq!(worker.loop_status(), Some(LoopStatus::Paused));
    assert_eq!(worker.reason().unwrap(), "paused: no progress");
    worker.step(Event::Resume, at(0));
    assert_eq!(worker.ralph().unwrap().iteration, 5);
}
