//! When a loop or a worker that is started again must end, and how long it waits after a failure.
//!
//! Today's budgets are the iteration count and the number of failures in a row. Time, cost and progress
//! come with the gates; they belong here, as more arms of [`exhausted`].

use std::time::Duration;

use crate::model::{RestartSpec, RestartWhen};
use crate::notice::StopReason;

/// Failures in a row that end a loop.
pub const MAX_FAILURES: u32 = 5;

/// The longest wait after a failure.
pub const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// The wait between a run that ended well and its restart: a command that ends at once must not storm.
pub const PAUSE: Duration = Duration::from_secs(1);

/// A run that lived this long (awake time) shows that the worker works: failures before it do not count.
pub const PROVEN: Duration = Duration::from_secs(600);

/// The wait after the `n`th failure in a row: `min(2^(n-1), 300)` seconds; none for `n` = 0.
pub fn backoff(n: u32) -> Duration {
    match n {
        0 => Duration::ZERO,
        1..=9 => Duration::from_secs(1 << (n - 1)).min(MAX_BACKOFF),
        _ => MAX_BACKOFF,
    }
}

/// What has been used up at the end of an iteration, if anything. The failure limit is asked first.
pub fn exhausted(failures: u32, iteration: u32, max_iterations: u32) -> Option<StopReason> {
    if failures >= MAX_FAILURES {
        Some(StopReason::Failures(failures))
    } else if iteration >= max_iterations {
        Some(StopReason::MaxIterations)
    } else {
        None
    }
}

/// What follows the end of a run of a plain worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRun {
    /// Nothing: its end is the worker's.
    Over,
    /// So many restarts in a row were of no use.
    GiveUp(u32),
    /// Another run after this wait.
    Again(Duration),
}

/// What follows the end of a run, by the worker's restart policy. `failures` counts the failures in a row,
/// this run's included where it was one: 0 after exit status 0.
pub fn after_run(spec: RestartSpec, failures: u32) -> AfterRun {
    match (spec.when, failures) {
        (RestartWhen::OnFailure, 0) => AfterRun::Over,
        (RestartWhen::Always, 0) if spec.max_restarts == 0 => AfterRun::Over,
        (RestartWhen::Always, 0) => AfterRun::Again(PAUSE),
        (RestartWhen::OnFailure | RestartWhen::Always, n) if n > spec.max_restarts => {
            AfterRun::GiveUp(spec.max_restarts)
        }
        (RestartWhen::OnFailure | RestartWhen::Always, n) => AfterRun::Again(backoff(n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_waits() {
        let waits: Vec<u64> = (0..=11).map(|n| backoff(n).as_secs()).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff(u32::MAX), MAX_BACKOFF);
    }

    #[test]
    fn restarts_end_with_success_or_when_they_are_of_no_use() {
        let after = |when, max_restarts, failures| after_run(RestartSpec { when, max_restarts }, failures);
        let again = |seconds| AfterRun::Again(Duration::from_secs(seconds));
        for (when, max, failures, expected) in [
            (RestartWhen::OnFailure, 3, 0, AfterRun::Over),
            (RestartWhen::OnFailure, 3, 1, again(1)),
            (RestartWhen::OnFailure, 3, 3, again(4)),
            (RestartWhen::OnFailure, 3, 4, AfterRun::GiveUp(3)),
            (RestartWhen::OnFailure, 0, 1, AfterRun::GiveUp(0)),
            (RestartWhen::Always, 3, 0, again(1)),
            (RestartWhen::Always, 3, 2, again(2)),
            (RestartWhen::Always, 3, 4, AfterRun::GiveUp(3)),
            (RestartWhen::Always, 0, 0, AfterRun::Over),
            (RestartWhen::Always, u32::MAX, u32::MAX, again(300)),
        ] {
            assert_eq!(after(when, max, failures), expected, "{when:?} {max} {failures}");
        }
    }

    #[test]
    fn failures_come_before_the_iteration_limit() {
        assert_eq!(exhausted(5, 5, 5), Some(StopReason::Failures(5)));
        assert_eq!(exhausted(4, 5, 5), Some(StopReason::MaxIterations));
        assert_eq!(exhausted(4, 4, 5), None);
    }
}
