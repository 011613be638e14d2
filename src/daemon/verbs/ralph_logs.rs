//! `ralph.logs`: the log of a loop's iterations.

use crate::daemon::output::{OutputSource, wish};
use crate::daemon::pages;
use crate::daemon::reply::{Later, stopping};
use crate::daemon::supervisor::Supervisor;
use crate::protocol::{Lines, LogsParams};
use crate::store::MAX_WORKER_LOG_BYTES;

/// Maximum bytes of a loop's `iterations.log` in an answer.
const MAX_ITERATIONS_LOG_BYTES: u64 = 2 * MAX_WORKER_LOG_BYTES;

impl Supervisor {
    pub(crate) fn ralph_logs(&mut self, params: &LogsParams) -> Later<Lines> {
        let (_, slot) = self.find_loop(&params.name)?;
        let (source, wish) = (OutputSource::of(slot), wish(params));
        let read = move || {
            let all = source.store.read_iteration_log(&source.name, usize::MAX, MAX_ITERATIONS_LOG_BYTES)?;
            let total = all.total.unwrap_or(all.lines.len() as u64);
            Ok(Lines { total, ..pages::answer(all.lines, wish) })
        };
        Ok(Box::pin(async { tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| Err(stopping())) }))
    }
}
