//! Batch schedulers: the jobs of Slurm.

use std::time::{Duration, Instant};

pub(crate) mod slurm;

/// How long a job must be unknown to the scheduler before its daemon counts as gone.
const GONE_PERIOD: Duration = Duration::from_secs(60);

/// The delay between two questions.
const QUERY_INTERVAL: Duration = Duration::from_secs(5);

/// Waits until Slurm has not listed a job for a minute. False as soon as it does, or if it cannot be asked.
pub(crate) fn is_job_gone(id: &str) -> bool {
    let start = Instant::now();
    loop {
        if slurm::is_listed(id) != Some(false) {
            return false;
        }
        if start.elapsed() >= GONE_PERIOD {
            return true;
        }
        std::thread::sleep(QUERY_INTERVAL);
    }
}
