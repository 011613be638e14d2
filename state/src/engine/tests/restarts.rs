//! Plain workers that are started again, as scripts: events in, lines out.

use super::tables::{BAD, OK, Script, check, script, whole};
use super::*;
use crate::budget::PROVEN_RUN_TIME;
use crate::model::{RestartSpec, RestartWhen, Status};
use crate::notice::PauseBy;

fn restarting(when: RestartWhen, max_restarts: u32) -> Worker {
    Worker::restarting(STDIN, RestartSpec { when, max_restarts })
}

/// A worker whose first run has failed: it waits for a second.
fn waiting(when: RestartWhen, max_restarts: u32) -> Worker {
    let mut worker = restarting(when, max_restarts);
    worker.step(Event::Start, at(0));
    for event in whole(1, BAD, false) {
        worker.step(event, at(0));
    }
    worker
}

/// Run N of an endless series of failures: up, over and judged at one moment, the wait over at another.
fn fails(run: u64, seconds: u64, wait: u64) -> Script {
    let events = whole(run, BAD, false).into_iter().map(|event| (seconds, event));
    events.chain([(seconds + wait, Event::Tick)]).collect()
}

fn last(worker: &mut Worker, script: Script) -> String {
    let mut last = String::new();
    for (seconds, event) in script {
        let effects = worker.step(event, at(seconds * 1000));
        last = line(&effects, worker);
    }
    last
}

#[test]
fn a_failure_is_followed_by_a_wait_and_another_run() {
    let worker = check(
        restarting(RestartWhen::OnFailure, 3),
        vec![
            (0, Event::Start),
            (0, Event::Up(Run(1))),
            (5, Event::Exited(Run(1), BAD)),
            (5, Event::Evaluated(Run(1), Verdict::default())),
            (5, Event::Tick),
            (6, Event::Tick),
        ],
        &[
            "persist; spawn 1 => spawning",
            "persist; started => running",
            "persist; judge 1 => judging(1)",
            "persist; runended => backoff(1s)",
            "=> backoff(1s)",
            "persist; spawn 2 => spawning",
        ],
    );
    assert_eq!((worker.last_exit(), worker.restarts().map(|r| r.failures)), (None, Some(1)));
}

#[test]
fn restart_waits_grow_until_the_worker_is_given_up() {
    let mut worker = restarting(RestartWhen::Always, 3);
    worker.step(Event::Start, at(0));
    for (run, wait) in [(1, 1), (2, 2), (3, 4)] {
        let spawned = format!("persist; spawn {} => spawning", run + 1);
        assert_eq!(last(&mut worker, fails(run, run * 100, wait)), spawned);
    }
    let said = last(&mut worker, script(400, whole(4, BAD, false)));
    assert_eq!(said, "persist; runended; stopped => stopped(max_restarts)");
    assert_eq!(worker.reason().as_deref(), Some("gave up after 3 restarts: exit status 1"));
    assert_eq!((worker.status(), worker.last_exit()), (Status::Failed, Some(BAD)));
}

#[test]
fn reason_has_the_end_of_the_run_and_the_time_of_the_next() {
    let worker = waiting(RestartWhen::OnFailure, 3);
    assert_eq!(worker.status(), Status::Retrying);
    assert_eq!(worker.reason().as_deref(), Some("exit status 1, restart 1/3 at 00:00:01"));
    let mut well = restarting(RestartWhen::Always, 3);
    well.step(Event::Start, at(0));
    last(&mut well, script(7, whole(1, OK, false)));
    assert_eq!(well.reason().as_deref(), Some("exited, next run at 00:00:08"));
}

#[test]
fn exit_0_ends_on_failure_and_resets_the_count_with_always() {
    let mut on_failure = waiting(RestartWhen::OnFailure, 3);
    let script_of = |run| script(9, std::iter::once(Event::Tick).chain(whole(run, OK, false)));
    assert_eq!(last(&mut on_failure, script_of(2)), "persist; runended; stopped => stopped(exited)");
    assert_eq!(on_failure.status(), Status::Done);
    let mut always = waiting(RestartWhen::Always, 3);
    assert_eq!(last(&mut always, script_of(2)), "persist; runended => backoff(1s)", "no storm");
    assert_eq!(always.restarts().map(|r| r.failures), Some(0));
}

#[test]
fn every_end_except_exit_0_is_a_failure() {
    let ends = [
        Event::Exited(Run(1), Exit::Signal(9)),
        Event::Exited(Run(1), Exit::Unknown),
        Event::Exited(Run(1), Exit::Code(143)),
        Event::PaneLost(Run(1)),
        Event::ServerLost(Run(1)),
    ];
    for end in ends {
        let mut worker = restarting(RestartWhen::OnFailure, 3);
        let events = [Event::Start, Event::Up(Run(1)), end.clone(), Event::Evaluated(Run(1), gates(false))];
        assert_eq!(last(&mut worker, script(0, events)), "persist; runended => backoff(1s)", "{end:?}");
    }
    for error in [SpawnError::Other("no".into()), SpawnError::Prompt("gone".into())] {
        let mut worker = restarting(RestartWhen::OnFailure, 1);
        let failed = |run| Event::SpawnFailed(Run(run), error.clone());
        let said = last(&mut worker, script(0, [Event::Start, failed(1)]));
        assert_eq!(said, "persist; runended => backoff(1s)");
        let said = last(&mut worker, script(1, [Event::Tick, failed(2)]));
        assert_eq!(said, "persist; runended; stopped => stopped(max_restarts)");
    }
}

#[test]
fn on_abnormal_restarts_only_after_an_end_without_an_exit_status() {
    let stops = |end: &Event| {
        let mut worker = restarting(RestartWhen::OnAbnormal, 3);
        let events = [Event::Start, Event::Up(Run(1)), end.clone(), Event::Evaluated(Run(1), gates(false))];
        last(&mut worker, script(0, events));
        worker.is_stopped()
    };
    for code in [0, 1, 143] {
        assert!(stops(&Event::Exited(Run(1), Exit::Code(code))), "{code}");
    }
    for end in [Exit::Signal(9), Exit::Unknown].map(|exit| Event::Exited(Run(1), exit)) {
        assert!(!stops(&end), "{end:?}");
    }
    for end in [Event::PaneLost(Run(1)), Event::ServerLost(Run(1))] {
        assert!(!stops(&end), "{end:?}");
    }
}

#[test]
fn lost_tmux_server_is_one_restart_with_a_policy_and_the_end_without() {
    let events = [Event::Start, Event::Up(Run(1)), Event::ServerLost(Run(1))];
    let mut plain = Worker::plain(STDIN);
    assert!(last(&mut plain, script(0, events.clone())).ends_with("=> lost"));
    assert_eq!(last(&mut plain, script(9, [Event::Tick])), "=> lost");
    let mut worker = restarting(RestartWhen::OnFailure, 3);
    last(&mut worker, script(0, events));
    last(&mut worker, script(0, [Event::Evaluated(Run(1), gates(false))]));
    assert_eq!(last(&mut worker, script(1, [Event::Tick])), "persist; spawn 2 => spawning");
    let again = [Event::ServerLost(Run(1)), Event::Evaluated(Run(1), gates(false)), Event::Tick];
    assert_eq!(last(&mut worker, script(9, again)), "=> spawning", "and that once");
}

#[test]
fn matched_pattern_ends_the_worker_with_every_policy() {
    let mut worker = restarting(RestartWhen::Always, 3);
    worker.step(Event::Start, at(0));
    let said = last(&mut worker, script(3, whole(1, OK, true)));
    assert!(said.ends_with("=> stopped(done_pattern)"), "{said}");
    let mut quiet = restarting(RestartWhen::Always, 3);
    let seen = || Event::Screen(Run(1), Reading { done: true, ..screen(1) });
    let mut events = vec![(0, Event::Start), (0, Event::Up(Run(1)))];
    events.extend((0..=4).step_by(2).map(|s| (s, seen())));
    events.extend([(5, Event::Exited(Run(1), Exit::Signal(15))), (5, Event::Evaluated(Run(1), gates(true)))]);
    let said = last(&mut quiet, events);
    assert!(said.ends_with("=> stopped(done_pattern)"), "{said}");
    // Seen on the screen, and then the pane went before it was quiet.
    for gone in [Event::PaneLost(Run(1)), Event::ServerLost(Run(1))] {
        let mut worker = restarting(RestartWhen::Always, 3);
        let events = [Event::Start, Event::Up(Run(1)), seen(), gone, Event::Evaluated(Run(1), gates(false))];
        let said = last(&mut worker, script(3, events));
        assert!(said.ends_with("=> stopped(done_pattern)"), "{said}");
    }
}

#[test]
fn failed_run_is_not_done_even_with_the_pattern() {
    let mut worker = restarting(RestartWhen::OnFailure, 3);
    worker.step(Event::Start, at(0));
    assert_eq!(last(&mut worker, script(3, whole(1, BAD, true))), "persist; runended => backoff(1s)");
    assert_eq!(last(&mut worker, script(4, [Event::Tick])), "persist; spawn 2 => spawning");
}

#[test]
fn kill_at_any_moment_prevents_a_restart() {
    let mut worker = waiting(RestartWhen::Always, 3);
    assert_eq!(last(&mut worker, script(0, [Event::Kill])), "persist; stopped => stopped(killed)");
    assert_eq!(last(&mut worker, script(99, [Event::Tick, Event::Start])), "=> stopped(killed)");
    assert_eq!((worker.status(), worker.deadline()), (Status::Killed, None));
    let moments: [&[Event]; 3] = [
        &[Event::Start, Event::Up(Run(1)), Event::Kill, Event::Exited(Run(1), BAD)],
        &[Event::Start, Event::Up(Run(1)), Event::Exited(Run(1), BAD), Event::Kill],
        &[Event::Start, Event::Kill, Event::Exited(Run(1), BAD)],
    ];
    for events in moments {
        let mut worker = restarting(RestartWhen::Always, 3);
        last(&mut worker, script(0, events.to_vec()));
        let said = last(&mut worker, script(0, [Event::Evaluated(Run(1), gates(false))]));
        assert_eq!(said, "persist; stopped => stopped(killed)");
    }
    let mut doomed = restarting(RestartWhen::Always, 3);
    let failed = Event::SpawnFailed(Run(1), SpawnError::Other("no".into()));
    let said = last(&mut doomed, script(0, [Event::Start, Event::Kill, failed]));
    assert_eq!(said, "persist; stopped => stopped(killed)");
    let mut lost = restarting(RestartWhen::Always, 3);
    let events = [Event::Start, Event::Up(Run(1)), Event::Kill, Event::ServerLost(Run(1))];
    assert_eq!(last(&mut lost, script(0, events)), "persist; stopped => stopped(killed)");
}

#[test]
fn long_run_resets_the_failure_count() {
    let proven = PROVEN_RUN_TIME.as_secs();
    for (lived, failures) in [(proven - 1, 3), (proven, 1)] {
        let mut worker = waiting(RestartWhen::OnFailure, 9);
        last(&mut worker, script(1, [Event::Tick]));
        last(&mut worker, fails(2, 1, 2));
        let end = lived + 3;
        let events = [Event::Exited(Run(3), BAD), Event::Evaluated(Run(3), gates(false))];
        last(&mut worker, script(3, [Event::Up(Run(3))]));
        last(&mut worker, script(end, events));
        assert_eq!(worker.restarts().map(|r| r.failures), Some(failures), "{lived}s");
    }
}

/// An end that nobody saw may lie long back: the time until somebody looked is not the run's.
#[test]
fn time_without_a_daemon_does_not_count_as_run_time() {
    let later = 3 + 10 * PROVEN_RUN_TIME.as_secs();
    for (alive, failures) in [(false, 2), (true, 1)] {
        let mut worker = waiting(RestartWhen::OnFailure, 9);
        last(&mut worker, vec![(1, Event::Tick), (1, Event::Up(Run(2)))]);
        let mut worker: Worker = serde_json::from_str(&serde_json::to_string(&worker).unwrap()).unwrap();
        worker.rebase(at(later * 1000));
        let seen = alive.then_some(Event::Adopted(Run(2)));
        let end = [Event::Exited(Run(2), BAD), Event::Evaluated(Run(2), gates(false))];
        last(&mut worker, script(later, seen.into_iter().chain(end)));
        assert_eq!(worker.restarts().map(|r| r.failures), Some(failures), "alive: {alive}");
    }
}

#[test]
fn restart_wait_and_count_survive_a_daemon_restart() {
    let mut worker = waiting(RestartWhen::OnFailure, 9);
    last(&mut worker, script(1, [Event::Tick]));
    last(&mut worker, fails(2, 1, 2));
    last(&mut worker, script(10, whole(3, BAD, false)));
    assert_eq!(phase_word(&worker), "backoff(4s)");
    // A daemon that is stopped pauses loops; this goes on.
    let said = last(&mut worker, script(11, [Event::Pause(PauseBy::Shutdown), Event::Resume]));
    assert_eq!(said, "=> backoff(4s)");
    let mut worker: Worker = serde_json::from_str(&serde_json::to_string(&worker).unwrap()).unwrap();
    worker.rebase(at(11_000));
    assert_eq!(last(&mut worker, script(13, [Event::Tick])), "=> backoff(4s)", "it waits as long");
    assert_eq!(last(&mut worker, script(14, [Event::Tick])), "persist; spawn 4 => spawning");
    last(&mut worker, script(14, whole(4, BAD, false)));
    assert_eq!(phase_word(&worker), "backoff(8s)", "and the next wait is the longer one");
}

#[test]
fn run_that_never_started_is_not_a_failure() {
    let mut worker = waiting(RestartWhen::OnFailure, 1);
    last(&mut worker, script(1, [Event::Tick]));
    let said = last(&mut worker, script(9, [Event::NeverStarted(Run(2))]));
    assert_eq!(said, "persist; spawn 3 => spawning");
    assert_eq!((worker.restarts().map(|r| r.failures), worker.restart_count()), (Some(1), 1));
}

/// A record of a swarm that knew no policy.
#[test]
fn record_of_an_earlier_release_has_no_restart_policy() {
    let mut old = serde_json::to_value(Worker::plain(STDIN)).unwrap();
    old.as_object_mut().unwrap().remove("restarts");
    let mut worker: Worker = serde_json::from_value(old).unwrap();
    worker.step(Event::Start, at(0));
    let said = last(&mut worker, script(0, whole(1, BAD, false)));
    assert_eq!(said, "persist; stopped => stopped(exited)");
}
