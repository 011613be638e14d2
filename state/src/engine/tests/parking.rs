//! Parks of an account, as short stories.

use super::*;
use crate::attention::Attention;
use crate::model::Status;
use crate::notice::{Entry, PauseBy};
use crate::quota::Park;

fn park(seconds: i64) -> Option<Park> {
    let until = at(0).wall + TimeDelta::seconds(seconds);
    Some(Park { account: "claude account ~/.claude".into(), limit: "5 hour limit".into(), used: 92, until })
}

fn looping() -> Worker {
    Worker::looping(STDIN, 10, 60)
}

/// A loop with its first iteration running.
fn running() -> Worker {
    let mut worker = looping();
    worker.step(Event::Start, at(0));
    worker.step(Event::Up(Run(1)), at(0));
    worker
}

/// Ends the running iteration with success.
fn end(worker: &mut Worker, now: Now) -> Vec<Effect> {
    let run = worker.run();
    worker.step(Event::Exited(run, Exit::Code(0)), now);
    worker.step(Event::Evaluated(run, gates(false)), now)
}

fn iteration(worker: &Worker) -> u32 {
    worker.ralph().unwrap().iteration
}

fn starts(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Spawn(_)))
}

#[test]
fn running_iteration_continues_and_the_next_one_waits_for_the_reset() {
    let mut worker = running();
    assert!(worker.is_news(park(600).as_ref()));
    assert!(worker.step(Event::Quota(park(600)), at(1_000)).is_empty());
    assert!(!worker.is_news(park(600).as_ref()));
    assert_eq!((worker.status(), worker.is_parked()), (Status::Running, false));
    let effects = end(&mut worker, at(9_000));
    let message = "claude account ~/.claude used 92 % of its 5 hour limit".to_owned();
    let told = Entry::Outage { iteration: 2, message, wait: 596, parked: true };
    assert!(effects.contains(&Effect::Notify(told)) && effects.contains(&Effect::Persist), "{effects:?}");
    assert_eq!((worker.status(), worker.is_parked(), iteration(&worker)), (Status::Waiting, true, 1));
    let cause = worker.cause();
    assert_eq!(Attention::of(worker.status(), cause.as_ref(), false), Attention::Parked);
    assert!(cause.unwrap().text().starts_with("parked until 1970-01-01 00:10 +00:00: claude account"));
    assert!(!starts(&worker.step(Event::Tick, at(604_000))));
    // The figure has ended, and a clock may be a little off.
    assert!(worker.step(Event::Quota(None), at(604_000)).is_empty());
    let effects = worker.step(Event::Tick, at(605_000));
    assert!(starts(&effects), "{effects:?}");
    assert_eq!((iteration(&worker), worker.ralph().unwrap().outages(at(700_000).wall)), (2, (0, 596)));
}

#[test]
fn first_iteration_waits_and_starts_at_the_end_of_the_park() {
    let mut worker = looping();
    worker.step(Event::Quota(park(600)), at(0));
    assert!(!starts(&worker.step(Event::Start, at(0))));
    assert_eq!((worker.is_parked(), iteration(&worker), worker.run()), (true, 0, Run(0)));
    // A later reset prolongs the park, and its end starts the iteration at once.
    assert_eq!(worker.step(Event::Quota(park(900)), at(500_000)), [Effect::Persist]);
    assert!(!starts(&worker.step(Event::Tick, at(700_000))));
    assert!(starts(&worker.step(Event::Quota(None), at(710_000))));
    assert_eq!(iteration(&worker), 1);
}

#[test]
fn resume_lifts_the_park_until_its_reset_and_a_later_one_parks_again() {
    let mut worker = looping();
    worker.step(Event::Quota(park(600)), at(0));
    worker.step(Event::Start, at(0));
    assert!(worker.can_resume(at(1_000)));
    assert!(starts(&worker.step(Event::Resume, at(1_000))));
    worker.step(Event::Up(Run(1)), at(1_000));
    assert!(starts(&end(&mut worker, at(2_000))), "parked again before the reset");
    worker.step(Event::Up(Run(2)), at(2_000));
    worker.step(Event::Quota(park(9_000)), at(3_000));
    assert!(!starts(&end(&mut worker, at(4_000))));
    assert!(worker.is_parked());
}

#[test]
fn a_paused_loop_stays_paused_and_parks_when_it_is_resumed() {
    let mut worker = looping();
    worker.step(Event::Quota(park(600)), at(0));
    worker.step(Event::Start, at(0));
    worker.step(Event::Pause(PauseBy::User), at(1_000));
    assert_eq!((worker.status(), worker.is_parked()), (Status::Paused, false));
    assert!(worker.step(Event::Quota(None), at(2_000)).is_empty());
    worker.step(Event::Quota(park(600)), at(3_000));
    assert!(!starts(&worker.step(Event::Resume, at(4_000))));
    assert!(worker.is_parked());
    worker.step(Event::Kill, at(5_000));
    assert_eq!(worker.status(), Status::Killed);
}

#[test]
fn past_reset_does_not_park() {
    let mut worker = looping();
    worker.step(Event::Quota(park(600)), at(0));
    assert!(starts(&worker.step(Event::Start, at(600_000))));
    // A run that was never started counts again when the park ends.
    worker.step(Event::Quota(park(900)), at(600_000));
    worker.step(Event::NeverStarted(Run(1)), at(600_000));
    assert_eq!((worker.is_parked(), iteration(&worker)), (true, 0));
}

#[test]
fn a_plain_worker_is_never_parked() {
    let mut worker = Worker::plain(STDIN);
    assert!(!worker.is_news(park(600).as_ref()));
    worker.step(Event::Quota(park(600)), at(0));
    assert!(starts(&worker.step(Event::Start, at(0))));
}

#[test]
fn a_restarted_daemon_finds_the_park_and_its_end() {
    let mut worker = looping();
    worker.step(Event::Quota(park(600)), at(50_000));
    worker.step(Event::Start, at(50_000));
    let saved = serde_json::to_value(&worker).unwrap();
    let mut loaded: Worker = serde_json::from_value(saved).unwrap();
    loaded.rebase(at(1_000));
    assert!(loaded.is_parked() && loaded.is_news(None) && loaded.is_news(park(600).as_ref()));
    assert!(loaded.clone().step(Event::Quota(park(600)), at(1_000)).is_empty());
    assert!(starts(&loaded.step(Event::Quota(None), at(2_000))));
}
