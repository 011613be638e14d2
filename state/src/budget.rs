//! When a loop must end, and how long it waits after a failure.
//!
//! Today's budgets are the iteration count and the number of failures in a row. Time, cost and progress
//! come with the gates; they belong here, as more arms of [`exhausted`].

use std::time::Duration;

use crate::notice::StopReason;

/// Failures in a row that end a loop.
pub const MAX_FAILURES: u32 = 5;

/// The longest wait after a failure.
pub const MAX_BACKOFF: Duration = Duration::from_secs(300);

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
    fn failures_come_before_the_iteration_limit() {
        assert_eq!(exhausted(5, 5, 5), Some(StopReason::Failures(5)));
        assert_eq!(exhausted(4, 5, 5), Some(StopReason::MaxIterations));
        assert_eq!(exhausted(4, 4, 5), None);
    }
}
