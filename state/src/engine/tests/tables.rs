//! The ralph document's scenarios and the design's small print, as scripts: events in, lines out.
//!
//! A line holds what a step does, in order, and the phase after it; what is in quotes is what the follower
//! prints.

use super::*;
use crate::engine::{Edits, Why};
use crate::model::Status;
use crate::notice::PauseBy;

pub(super) type Script = Vec<(u64, Event)>;

pub(super) const OK: Exit = Exit::Code(0);
pub(super) const BAD: Exit = Exit::Code(1);

/// Feeds a script (seconds and events) and compares each line; gives the worker for more questions.
pub(super) fn check(mut worker: Worker, script: Script, expected: &[&str]) -> Worker {
    let mut lines = Vec::new();
    for (seconds, event) in script {
        let effects = worker.step(event, at(seconds * 1000));
        lines.push(line(&effects, &worker));
    }
    let expected: Vec<String> = expected.iter().map(|&text| text.to_owned()).collect();
    assert_eq!(lines, expected, "{lines:#?}");
    worker
}

fn looping(max: u32) -> Worker {
    Worker::looping(STDIN, max, 60)
}

/// A loop in mid-work on the given iteration, earlier ones all well.
pub(super) fn at_iteration(n: u32, max: u32) -> Worker {
    let mut worker = looping(max);
    worker.step(Event::Start, at(0));
    for run in 1..u64::from(n) {
        for event in whole(run, OK, false) {
            worker.step(event, at(0));
        }
    }
    worker.step(Event::Up(Run(u64::from(n))), at(0));
    worker
}

/// A whole iteration after its spawn.
pub(super) fn whole(run: u64, exit: Exit, done: bool) -> [Event; 3] {
    [Event::Up(Run(run)), Event::Exited(Run(run), exit), Event::Evaluated(Run(run), gates(done))]
}

pub(super) fn script(seconds: u64, events: impl IntoIterator<Item = Event>) -> Script {
    events.into_iter().map(|event| (seconds, event)).collect()
}

/// Looks every two seconds at an unchanging screen, the first one captured.
fn still(run: u64, from: u64, to: u64, look: &Reading) -> Script {
    let quiet = (from + 2..=to).step_by(2).map(|s| (s, Event::Quiet(Run(run))));
    std::iter::once((from, Event::Screen(Run(run), look.clone()))).chain(quiet).collect()
}

/// Feeds a script of which only the last line matters.
pub(super) fn after(worker: &mut Worker, script: Script) -> String {
    let mut last = String::new();
    for (seconds, event) in script {
        let effects = worker.step(event, at(seconds * 1000));
        last = line(&effects, worker);
    }
    last
}

#[test]
fn scenario_basic_loop() {
    let worker = check(
        looping(10),
        script(0, [Event::Start, Event::Up(Run(1))]),
        &["persist; \"starting iteration 1/10\"; spawn 1 => spawning", "persist; started => running"],
    );
    assert_eq!(worker.ralph().map(|l| (l.iteration, l.iteration_started)), Some((1, Some(at(0).wall))));
}

#[test]
fn scenario_restart_on_exit() {
    check(
        at_iteration(3, 10),
        script(312, [Event::Exited(Run(3), OK), Event::Evaluated(Run(3), gates(false))]),
        &[
            "persist; judge 3 => judging(0)",
            "persist; \"iteration 3 completed (exit: 0, duration: 5m 12s)\"; \"starting iteration 4/10\"; spawn 4 => spawning",
        ],
    );
}

#[test]
fn scenario_inactivity_after_output_restarts_and_is_a_success() {
    let mut worker = at_iteration(2, 10);
    worker.ralph.as_mut().unwrap().failures = 3;
    assert_eq!(after(&mut worker, still(2, 0, 58, &screen(1))), "=> running");
    let worker = check(
        worker,
        vec![
            (60, Event::Quiet(Run(2))),
            (61, Event::Quiet(Run(2))),
            (61, Event::Probed(Run(2), false)),
            (61, Event::Probed(Run(2), false)),
            (62, Event::Exited(Run(2), Exit::Signal(15))),
            (62, Event::Evaluated(Run(2), gates(false))),
        ],
        &[
            "probe 2 => running",
            "=> running",
            "persist; \"inactivity timeout (60s), restarting\"; term 2 => ending(inactivity)",
            "=> ending(inactivity)",
            "persist; judge 2 => judging(signal 15,inactivity)",
            "persist; \"iteration 2 completed (exit: inactivity, duration: 1m 2s)\"; \"starting iteration 3/10\"; spawn 3 => spawning",
        ],
    );
    assert_eq!(worker.ralph().map(|l| (l.failures, l.total_failures)), Some((0, 0)), "the row is over");
}

#[test]
fn scenario_inactivity_of_the_last_iteration_ends_the_loop() {
    let mut worker = at_iteration(2, 2);
    after(&mut worker, still(2, 0, 60, &screen(1)));
    check(
        worker,
        vec![
            (60, Event::Probed(Run(2), false)),
            (61, Event::Exited(Run(2), OK)),
            (61, Event::Evaluated(Run(2), gates(false))),
        ],
        &[
            "persist; \"inactivity timeout (60s)\"; term 2 => ending(inactivity)",
            "persist; judge 2 => judging(0,inactivity)",
            "persist; \"iteration 2 completed (exit: inactivity, duration: 1m 1s)\"; \"loop complete after 2 iterations\" => stopped(max_iterations)",
        ],
    );
}

#[test]
fn any_screen_change_resets_inactivity() {
    let mut worker = at_iteration(1, 2);
    for n in 0..20 {
        let last = after(&mut worker, still(1, u64::from(n) * 50, u64::from(n) * 50 + 48, &screen(n)));
        assert_eq!(last, "=> running");
    }
}

#[test]
fn computing_agent_gets_at_most_ten_inactivity_timeouts() {
    let mut worker = at_iteration(1, 2);
    let mut now = 0;
    let mut ended = vec![];
    after(&mut worker, vec![(0, Event::Screen(Run(1), screen(1)))]);
    while matches!(worker.phase(), Phase::Running { .. }) {
        now += 2;
        let effects = worker.step(Event::Quiet(Run(1)), at(now * 1000));
        if effects == [Effect::Probe(Run(1))] {
            ended.push((now, after(&mut worker, vec![(now, Event::Probed(Run(1), true))])));
        }
    }
    assert_eq!(ended.len(), 10);
    assert_eq!(
        ended[0].1,
        "\"inactivity timeout (60s), but the agent is computing: more time given\" => running"
    );
    assert_eq!(
        ended[9],
        (600, "persist; \"inactivity timeout (60s), restarting\"; term 1 => ending(inactivity)".into())
    );
}

#[test]
fn time_without_looks_is_not_silence() {
    let mut worker = at_iteration(1, 2);
    after(&mut worker, still(1, 0, 40, &screen(1)));
    assert_eq!(after(&mut worker, vec![(4000, Event::Quiet(Run(1)))]), "=> running", "a suspended machine");
    worker.step(Event::Reachable(false), at(4_000_000));
    assert_eq!(worker.status().as_str(), "unreachable");
    worker.step(Event::Reachable(true), at(8_000_000));
    assert_eq!(after(&mut worker, vec![(8000, Event::Quiet(Run(1)))]), "=> running", "a hung tmux");
}

#[test]
fn scenario_done_pattern_stops_the_loop() {
    let done = Reading { done: true, ..screen(1) };
    let busy = Reading { done: true, working: true, ..screen(2) };
    let mut worker = at_iteration(2, 10);
    assert_eq!(after(&mut worker, still(2, 0, 20, &busy)), "=> running", "not while it says it works");
    assert_eq!(after(&mut worker, still(2, 22, 24, &done)), "=> running", "not before it is quiet");
    let worker = check(
        worker,
        vec![
            (26, Event::Quiet(Run(2))),
            (27, Event::Exited(Run(2), Exit::Signal(15))),
            (27, Event::Evaluated(Run(2), Verdict::default())),
        ],
        &[
            "persist; term 2 => ending(done)",
            "persist; judge 2 => judging(signal 15,done)",
            "persist; \"iteration 2 completed (exit: done, duration: 27s)\"; \"done pattern matched, stopping loop\"; \"loop complete after 2 iterations\" => stopped(done_pattern)",
        ],
    );
    assert_eq!(worker.loop_status().map(|s| s.as_str()), Some("stopped"));
}

#[test]
fn gates_that_hold_complete_a_loop_at_its_failure_limit() {
    let mut failing = at_iteration(1, 1);
    failing.ralph.as_mut().unwrap().failures = 4;
    check(
        failing,
        script(1, [Event::Exited(Run(1), BAD), Event::Evaluated(Run(1), gates(true))]),
        &[
            "persist; judge 1 => judging(1)",
            "persist; \"iteration 1 completed (exit: 1, duration: 1s)\"; \"done pattern matched, stopping loop\"; \"loop complete after 1 iteration\" => stopped(done_pattern)",
        ],
    );
}

#[test]
fn scenario_max_iterations() {
    let worker = check(
        at_iteration(10, 10),
        script(5, [Event::Exited(Run(10), OK), Event::Evaluated(Run(10), gates(false))]),
        &[
            "persist; judge 10 => judging(0)",
            "persist; \"iteration 10 completed (exit: 0, duration: 5s)\"; \"loop complete after 10 iterations\" => stopped(max_iterations)",
        ],
    );
    assert_eq!(
        (worker.status().as_str(), worker.loop_status().map(|s| s.as_str())),
        ("done", Some("stopped"))
    );
}

#[test]
fn scenarios_backoff_and_five_failures() {
    let mut worker = looping(100);
    worker.step(Event::Start, at(0));
    let mut now = 0;
    let mut lines = vec![];
    for run in 1..=5 {
        let last = after(&mut worker, script(now, whole(run, BAD, false)));
        lines.push(last);
        if let Phase::BackingOff { until, delay } = *worker.phase() {
            assert_eq!(until, at(now * 1000).mono + delay);
            assert_eq!(
                after(&mut worker, vec![(until.as_secs() - 1, Event::Tick)]).split_once("=> b").map(|s| s.0),
                Some("")
            );
            now = until.as_secs();
            after(&mut worker, vec![(now, Event::Tick)]);
        }
    }
    let retry = |n: u32, wait: u32| {
        format!(
            "persist; \"iteration {n} failed (exit: 1), retrying in {wait}s (attempt {n}/5)\" => backoff({wait}s)"
        )
    };
    let mut expected: Vec<String> =
        [(1, 1), (2, 2), (3, 4), (4, 8)].iter().map(|&(n, w)| retry(n, w)).collect();
    expected.push(
        "persist; \"iteration 5 failed (exit: 1)\"; \"5 consecutive failures, stopping loop\" => stopped(consecutive_failures)"
            .into(),
    );
    assert_eq!(lines, expected);
    assert_eq!(now, 15, "1 + 2 + 4 + 8 seconds");
    assert_eq!(
        (worker.status().as_str(), worker.loop_status().map(|s| s.as_str())),
        ("failed", Some("failed"))
    );
}

/// Checks which ends the design counts as a failure, and how each of them changes the count.
#[test]
fn ends_of_an_iteration_count_as_failures_as_documented() {
    let r = Run(1);
    let exit = |exit| vec![Event::Exited(r, exit)];
    // (what, the events that end the iteration, failures in a row after it with 2 before it, in all)
    let rows: Vec<(&str, Vec<Event>, u32, u32)> = vec![
        ("exit 0", exit(OK), 0, 2),
        ("non-zero", exit(BAD), 3, 3),
        ("a signal that swarm did not send", exit(Exit::Signal(9)), 3, 3),
        ("unknown is never success", exit(Exit::Unknown), 3, 3),
        ("a pane that vanished", vec![Event::PaneLost(r)], 3, 3),
        (
            "the agent said that its context is full",
            vec![Event::Hook(r, HookSignal::ContextSpent), Event::Exited(r, Exit::Signal(15))],
            0,
            2,
        ),
        (
            "an API error",
            vec![Event::Hook(r, HookSignal::ApiError("529".into())), Event::Exited(r, Exit::Signal(15))],
            3,
            3,
        ),
    ];
    for (what, events, row, all) in rows {
        let mut worker = at_iteration(1, 9);
        let ralph = worker.ralph.as_mut().unwrap();
        (ralph.failures, ralph.total_failures) = (2, 2);
        after(&mut worker, script(1, events));
        after(&mut worker, script(1, [Event::Evaluated(r, gates(false))]));
        assert_eq!(
            worker.ralph().map(|l| (l.failures, l.total_failures, l.iteration)),
            Some((row, all, if all == 2 { 2 } else { 1 })),
            "{what}"
        );
    }
}

#[test]
fn successful_end_fails_if_the_screen_shows_an_api_error() {
    let inactive = Some(Why::Inactivity);
    for (why, exit, outages, fails) in [
        (inactive, OK, None, true),
        (inactive, Exit::Signal(15), None, true),
        (None, OK, None, true),
        (Some(Why::Timeout), OK, None, false),
        // An outage is waited for, but not forever, and is no success in the end.
        (inactive, OK, Some(0), false),
        (inactive, OK, Some(crate::outage::MAX_OUTAGE_TRIES), true),
    ] {
        let mut worker = at_iteration(1, 9);
        worker.phase = Phase::Evaluating { exit, why };
        let kind = crate::outage::OutageKind::Login;
        let outage = outages.map(|_| crate::outage::Outage { kind, message: "401".into(), until: None });
        let ralph = worker.ralph.as_mut().unwrap();
        (ralph.outages, ralph.detail) = (outages.unwrap_or(0), Some("nothing new on screen for 60 s".into()));
        let verdict = Verdict { api_error: Some("[API Error: no]".into()), outage, ..gates(false) };
        let told = after(&mut worker, script(1, [Event::Evaluated(Run(1), verdict)]));
        let failed = "iteration 1 failed (exit: api-error): [API Error: no], retrying in 1s (attempt 1/5)";
        assert_eq!(told.contains(failed), fails, "{why:?} {exit} {outages:?}: {told}");
        assert_eq!(worker.ralph().map(|l| l.total_failures), Some(u32::from(fails)), "{told}");
    }
}

#[test]
fn failed_spawn_counts_as_a_failure() {
    let failed = |run| Event::SpawnFailed(Run(run), SpawnError::Other("no worktree".into()));
    let worker = check(
        looping(2),
        vec![(0, Event::Start), (0, failed(1)), (1, Event::Tick), (1, failed(2))],
        &[
            "persist; \"starting iteration 1/2\"; spawn 1 => spawning",
            "persist; \"iteration 1 failed (exit: spawn-failed): no worktree, retrying in 1s (attempt 1/5)\" => backoff(1s)",
            "persist; \"starting iteration 2/2\"; spawn 2 => spawning",
            "persist; \"iteration 2 failed (exit: spawn-failed): no worktree\"; \"loop failed after 2 iterations: max iterations, and no iteration succeeded\" => stopped(all_failed)",
        ],
    );
    assert_eq!(worker.ralph().map(|l| (l.failures, l.total_failures)), Some((2, 2)));
}

#[test]
fn missing_prompt_file_ends_the_loop() {
    let gone = SpawnError::Prompt("prompt file not found: /p".into());
    let worker = check(
        looping(9),
        script(0, [Event::Start, Event::SpawnFailed(Run(1), gone)]),
        &[
            "persist; \"starting iteration 1/9\"; spawn 1 => spawning",
            "persist; \"loop failed after 1 iteration: prompt file not found: /p\" => stopped(prompt_file)",
        ],
    );
    assert_eq!(
        (worker.status().as_str(), worker.reason().as_deref()),
        ("failed", Some("prompt file not found: /p"))
    );
}

#[test]
fn scenario_pause_and_resume() {
    let (user, shutdown) = (Event::Pause(PauseBy::User), Event::Pause(PauseBy::Shutdown));
    let worker = check(
        at_iteration(5, 10),
        script(
            9,
            [user.clone(), user, shutdown, Event::Exited(Run(5), OK), Event::Evaluated(Run(5), gates(false))],
        ),
        &[
            "persist; \"paused\" => running",
            "=> running",
            "=> running",
            "persist; judge 5 => judging(0)",
            "persist; \"iteration 5 completed (exit: 0, duration: 9s)\" => parked",
        ],
    );
    let seen = (worker.status().as_str(), worker.loop_status().map(|s| s.as_str()), worker.reason());
    assert_eq!(seen, ("paused", Some("paused"), Some("paused".into())));
    check(
        worker,
        script(99, [Event::Tick, Event::Resume, Event::Resume]),
        &[
            "=> parked",
            "persist; \"resumed\"; \"starting iteration 6/10\"; spawn 6 => spawning",
            "=> spawning",
        ],
    );
}

#[test]
fn resume_watches_a_live_agent_and_resets_its_inactivity() {
    let mut worker = at_iteration(5, 10);
    worker.step(Event::Pause(PauseBy::User), at(0));
    assert_eq!(after(&mut worker, still(5, 0, 600, &screen(1))), "=> running", "never killed while paused");
    assert_eq!(after(&mut worker, vec![(600, Event::Resume)]), "persist; \"resumed\" => running");
    assert_eq!(after(&mut worker, still(5, 600, 658, &screen(1))), "=> running");
    assert_eq!(after(&mut worker, vec![(660, Event::Quiet(Run(5)))]), "probe 5 => running");
}

#[test]
fn pause_during_a_probe_keeps_the_agent() {
    let mut worker = at_iteration(5, 10);
    assert_eq!(after(&mut worker, still(5, 0, 60, &screen(1))), "probe 5 => running");
    worker.step(Event::Pause(PauseBy::User), at(60_000));
    assert_eq!(after(&mut worker, vec![(61, Event::Probed(Run(5), false))]), "=> running");
}

#[test]
fn pause_within_a_backoff_ends_the_wait_and_resume_starts_at_once() {
    let mut worker = at_iteration(3, 10);
    after(&mut worker, script(0, whole(3, BAD, false)));
    check(
        worker,
        script(0, [Event::Pause(PauseBy::User), Event::Tick, Event::Resume]),
        &[
            "persist; \"paused\" => parked",
            "=> parked",
            "persist; \"resumed\"; \"starting iteration 4/10\"; spawn 4 => spawning",
        ],
    );
}

#[test]
fn failure_while_paused_waits_for_a_resume() {
    let mut worker = at_iteration(3, 10);
    worker.step(Event::Pause(PauseBy::User), at(0));
    let last = after(&mut worker, script(0, whole(3, BAD, false)));
    assert_eq!(last, "persist; \"iteration 3 failed (exit: 1)\" => parked");
    assert_eq!(worker.deadline(), None);
}

#[test]
fn a_paused_loop_that_is_started_parks() {
    check(
        looping(3),
        script(0, [Event::Pause(PauseBy::User), Event::Start, Event::Resume]),
        &[
            "persist; \"paused\" => idle",
            "persist => parked",
            "persist; \"resumed\"; \"starting iteration 1/3\"; spawn 1 => spawning",
        ],
    );
}

#[test]
fn lost_tmux_server_keeps_the_loop_and_resume_repeats_the_iteration() {
    let worker = check(
        at_iteration(4, 9),
        script(7, [Event::ServerLost(Run(4)), Event::Tick]),
        &["persist; \"lost: the tmux server went away\" => lost", "=> lost"],
    );
    let seen = (worker.status().as_str(), worker.loop_status().map(|s| s.as_str()), worker.last_exit());
    assert_eq!(seen, ("lost", Some("running"), Some(Exit::Unknown)));
    assert_eq!(worker.ralph().map(|l| (l.iteration, l.failures)), Some((4, 0)), "no failure");
    let worker = check(
        worker,
        script(9, [Event::Resume]),
        &["persist; \"resumed\"; \"starting iteration 4/9\"; spawn 5 => spawning"],
    );
    assert_eq!((worker.run(), worker.last_exit()), (Run(5), None));
}

#[test]
fn loop_that_is_paused_and_lost_needs_one_resume() {
    let mut worker = at_iteration(4, 4);
    worker.step(Event::ServerLost(Run(4)), at(0));
    worker.step(Event::Pause(PauseBy::Shutdown), at(0));
    assert_eq!(
        (worker.status().as_str(), worker.loop_status().map(|s| s.as_str())),
        ("lost", Some("paused"))
    );
    let last = after(&mut worker, script(0, [Event::Resume]));
    assert_eq!(last, "persist; \"resumed\"; \"starting iteration 4/4\"; spawn 5 => spawning");
}

#[test]
fn lost_worker_that_is_found_again_is_running() {
    let mut worker = at_iteration(4, 9);
    worker.step(Event::ServerLost(Run(4)), at(0));
    assert_eq!(after(&mut worker, script(0, [Event::Adopted(Run(4))])), "persist => running");
    assert_eq!((worker.status().as_str(), worker.last_exit()), ("running", None));
}

#[test]
fn matched_pattern_counts_after_the_tmux_server_is_lost() {
    let mut worker = at_iteration(4, 9);
    after(&mut worker, still(4, 0, 4, &Reading { done: true, ..screen(1) }));
    check(
        worker,
        script(5, [Event::ServerLost(Run(4)), Event::Evaluated(Run(4), Verdict::default())]),
        &[
            "persist; judge 4 => judging(lost,done)",
            "persist; \"iteration 4 completed (exit: done, duration: 5s)\"; \"done pattern matched, stopping loop\"; \"loop complete after 4 iterations\" => stopped(done_pattern)",
        ],
    );
}

#[test]
fn limits_are_edited_at_any_time() {
    let max =
        |n| Event::Edited(Edits { max_iterations: Some(n), inactivity_timeout: None, ..Edits::default() });
    // Raised while it runs, while it is parked; lowered below what is done already.
    let mut worker = at_iteration(2, 2);
    worker.step(max(3), at(0));
    let last = after(&mut worker, script(0, whole(2, OK, false)));
    assert!(last.ends_with("spawn 3 => spawning"), "{last}");

    let mut worker = at_iteration(5, 9);
    worker.step(max(3), at(0));
    let last = after(&mut worker, script(0, whole(5, OK, false)));
    assert!(last.ends_with("\"loop complete after 5 iterations\" => stopped(max_iterations)"), "{last}");

    let mut worker = at_iteration(5, 9);
    after(&mut worker, script(0, whole(5, BAD, false)));
    worker.step(max(3), at(0));
    let last = after(&mut worker, vec![(1, Event::Tick)]);
    assert_eq!(
        last, "persist; \"loop complete after 5 iterations\" => stopped(max_iterations)",
        "in a backoff"
    );

    let mut worker = at_iteration(5, 9);
    worker.step(Event::Pause(PauseBy::User), at(0));
    after(&mut worker, script(0, whole(5, OK, false)));
    worker.step(max(5), at(0));
    let last = after(&mut worker, script(0, [Event::Resume]));
    assert!(last.ends_with("\"loop complete after 5 iterations\" => stopped(max_iterations)"), "{last}");

    let mut worker = at_iteration(5, 9);
    worker.step(Event::ServerLost(Run(5)), at(0));
    worker.step(max(4), at(0));
    let last = after(&mut worker, script(0, [Event::Resume]));
    assert!(last.ends_with("\"loop complete after 5 iterations\" => stopped(max_iterations)"), "{last}");

    let mut worker = at_iteration(1, 9);
    worker.step(
        Event::Edited(Edits { max_iterations: Some(0), inactivity_timeout: Some(0), ..Edits::default() }),
        at(0),
    );
    assert_eq!(worker.ralph().map(|l| (l.max_iterations, l.inactivity_timeout)), Some((1, 1)), "never 0");
    let mut plain = Worker::plain(STDIN);
    assert_eq!(plain.step(max(4), at(0)), []);
}

#[test]
fn kill_sends_sigterm_then_sigkill_and_the_loop_stays_stopped() {
    check(
        at_iteration(2, 9),
        vec![
            (0, Event::Kill),
            (3, Event::Kill),
            (4, Event::Tick),
            (5, Event::Tick),
            (10, Event::Tick),
            (11, Event::Exited(Run(2), Exit::Signal(9))),
            (11, Event::Evaluated(Run(2), gates(true))),
            (12, Event::Kill),
            (12, Event::Resume),
            (12, Event::Start),
        ],
        &[
            "persist; term 2 => ending(kill)",
            "persist => ending(kill)",
            "=> ending(kill)",
            "force 2 => ending(kill)",
            "force 2 => ending(kill)",
            "persist; judge 2 => judging(signal 9,kill)",
            "persist; \"iteration 2 completed (exit: killed, duration: 11s)\"; \"killed after 2 iterations\" => stopped(killed)",
            "=> stopped(killed)",
            "=> stopped(killed)",
            "=> stopped(killed)",
        ],
    );
}

#[test]
fn kill_during_a_spawn_waits_for_its_result() {
    let spawning = || {
        let mut worker = looping(3);
        worker.step(Event::Start, at(0));
        worker
    };
    let rows = [
        (Event::Up(Run(1)), "persist; term 1 => ending(kill)"),
        (Event::Adopted(Run(1)), "persist; term 1 => ending(kill)"),
        (
            Event::SpawnFailed(Run(1), SpawnError::Other("no".into())),
            "persist; \"killed after 1 iteration\" => stopped(killed)",
        ),
        (Event::NeverStarted(Run(1)), "persist; \"killed after 1 iteration\" => stopped(killed)"),
        (Event::ServerLost(Run(1)), "persist; \"killed after 1 iteration\" => stopped(killed)"),
        (Event::Exited(Run(1), OK), "persist; judge 1 => judging(0,kill)"),
        (Event::PaneLost(Run(1)), "persist; judge 1 => judging(lost,kill)"),
    ];
    for (report, expected) in rows {
        check(spawning(), script(0, [Event::Kill, report]), &["persist => doomed", expected]);
    }
}

#[test]
fn kill_during_the_gates_stops_the_loop_for_any_result() {
    let mut worker = at_iteration(2, 9);
    worker.step(Event::Exited(Run(2), OK), at(0));
    check(
        worker,
        script(1, [Event::Kill, Event::Kill, Event::Evaluated(Run(2), gates(true))]),
        &[
            "persist => judging(0,kill)",
            "persist => judging(0,kill)",
            "persist; \"iteration 2 completed (exit: killed, duration: 1s)\"; \"killed after 2 iterations\" => stopped(killed)",
        ],
    );
}

#[test]
fn a_run_that_never_started_is_started_and_counted_once() {
    let mut worker = looping(1);
    worker.step(Event::Start, at(0));
    let worker = check(
        worker,
        script(
            50,
            [
                Event::NeverStarted(Run(1)),
                Event::NeverStarted(Run(2)),
                Event::Up(Run(3)),
                Event::NeverStarted(Run(3)),
            ],
        ),
        &[
            "persist; \"starting iteration 1/1\"; spawn 2 => spawning",
            "persist; \"starting iteration 1/1\"; spawn 3 => spawning",
            "persist; started => running",
            "=> running",
        ],
    );
    let ralph = worker.ralph().unwrap();
    assert_eq!(
        (ralph.iteration, ralph.iteration_started, ralph.started_mono.as_secs()),
        (1, Some(at(50_000).wall), 50)
    );
}

#[test]
fn run_that_never_started_is_not_started_while_paused() {
    let mut worker = looping(2);
    worker.step(Event::Start, at(0));
    worker.step(Event::Pause(PauseBy::Shutdown), at(0));
    let worker = check(
        worker,
        script(9, [Event::NeverStarted(Run(1)), Event::Resume]),
        &["persist => parked", "persist; \"resumed\"; \"starting iteration 1/2\"; spawn 2 => spawning"],
    );
    assert_eq!(worker.ralph().map(|l| l.iteration), Some(1), "the iteration is done after all");
}

#[test]
fn a_plain_worker_runs_once() {
    let rows = [
        (OK, "done"),
        (BAD, "failed"),
        (Exit::Signal(9), "failed"),
        (Exit::Unknown, "failed"),
        (Exit::Lost, "failed"),
    ];
    for (exit, status) in rows {
        let worker = check(
            Worker::plain(STDIN),
            script(0, [Event::Start].into_iter().chain(whole(1, exit, false))),
            &[
                "persist; spawn 1 => spawning",
                "persist; started => running",
                &format!("persist; judge 1 => judging({exit})"),
                "persist; stopped => stopped(exited)",
            ],
        );
        assert_eq!((worker.status().as_str(), worker.last_exit()), (status, Some(exit)));
    }
    let no = Event::SpawnFailed(Run(1), SpawnError::Other("no such command".into()));
    let worker = check(
        Worker::plain(STDIN),
        script(0, [Event::Start, no]),
        &["persist; spawn 1 => spawning", "persist; stopped => stopped(spawn_failed)"],
    );
    assert_eq!((worker.status().as_str(), worker.reason().as_deref()), ("failed", Some("no such command")));
}

#[test]
fn plain_worker_ends_by_its_pattern_and_never_by_inactivity() {
    let mut worker = Worker::plain(STDIN);
    after(
        &mut worker,
        script(
            0,
            [
                Event::Start,
                Event::Up(Run(1)),
                Event::Hook(Run(1), HookSignal::ContextSpent),
                Event::Pause(PauseBy::User),
            ],
        ),
    );
    assert_eq!(after(&mut worker, still(1, 0, 9000, &screen(1))), "=> running");
    let done = Reading { done: true, ..screen(2) };
    assert_eq!(after(&mut worker, still(1, 9000, 9004, &done)), "persist; term 1 => ending(done)");
    let last =
        after(&mut worker, script(9005, [Event::Exited(Run(1), BAD), Event::Evaluated(Run(1), gates(true))]));
    assert_eq!(last, "persist; \"done pattern matched, stopping loop\"; stopped => stopped(done_pattern)");
    assert_eq!(worker.status().as_str(), "done");
}

#[test]
fn ready_is_reported_once_a_run_and_idle_once_a_turn() {
    let mut worker = Worker::plain(STDIN);
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(Run(1)), at(0));
    let ready = |n| Reading { ready: true, ..screen(n) };
    assert_eq!(after(&mut worker, still(1, 2, 2, &ready(1))), "persist; ready => running");
    assert!(worker.is_ready() && !worker.is_idle());
    assert_eq!(after(&mut worker, still(1, 4, 6, &ready(1))), "idle => running");
    assert!(worker.is_idle());
    assert_eq!(after(&mut worker, still(1, 8, 60, &ready(1))), "=> running");
    let works = Reading { working: true, ..screen(2) };
    assert_eq!(after(&mut worker, still(1, 62, 90, &works)), "=> running");
    assert!(!worker.is_ready() && !worker.is_idle());
    assert_eq!(after(&mut worker, still(1, 92, 94, &ready(3))), "=> running");
    assert_eq!(after(&mut worker, script(96, [Event::Quiet(Run(1))])), "idle => running");
    // Text that a person types is work for the agent, also before it is on the screen.
    worker.step(Event::Typed(Run(1)), at(97_000));
    assert!(!worker.is_idle());
    assert_eq!(after(&mut worker, script(98, [Event::Quiet(Run(1))])), "=> running");
    assert_eq!(after(&mut worker, script(100, [Event::Quiet(Run(1))])), "idle => running");
    // A new daemon has not looked yet.
    worker.rebase(at(101_000));
    assert!(!worker.is_ready() && !worker.is_idle());
    assert!(!worker.status().is_finished());
    worker.step(Event::Exited(Run(1), BAD), at(102_000));
    worker.step(Event::Evaluated(Run(1), gates(false)), at(102_000));
    assert_eq!(worker.status(), Status::Failed);
}

#[test]
fn screen_state_is_reported_again_after_tmux_was_unreachable() {
    let blocked = Blocked { startup: false, what: "may I?".into() };
    let dialog = Reading { blocked: Some(blocked), ..screen(1) };
    let ready = Reading { ready: true, ..screen(2) };
    for (look, told) in [(&dialog, "\"waiting for a person: may I?\" => running"), (&ready, "=> running")] {
        let mut worker = Worker::plain(STDIN);
        worker.step(Event::Start, at(0));
        worker.step(Event::Up(Run(1)), at(0));
        after(&mut worker, still(1, 2, 10, look));
        assert_eq!(after(&mut worker, script(12, [Event::Reachable(false)])), "=> running");
        assert!(!worker.is_ready());
        assert_eq!(after(&mut worker, script(14, [Event::Reachable(true)])), told);
        assert_eq!(after(&mut worker, script(16, [Event::Reachable(true)])), "=> running");
        let news = after(&mut worker, script(18, [Event::Quiet(Run(1))]));
        assert_eq!(news, if look.ready { "idle => running" } else { "=> running" });
    }
}
