//! `ralph.logs`: the log of a loop's iterations.

use crate::daemon::output::{OutputSource, wish};
use crate::daemon::pages;
use crate::daemon::reply::Reply;
use crate::daemon::slot::Slot;
use crate::protocol::{Lines, LogsParams};
use crate::store::MAX_LOG_BYTES;

/// The most bytes of a loop's `iterations.log` that are told.
const MAX_ITERATIONS_LOG_BYTES: u64 = 2 * MAX_LOG_BYTES;

/// Answers `ralph.logs`.
pub(crate) fn ralph_logs(slot: &Slot, params: &LogsParams, reply: Reply) {
    let source = OutputSource::of(slot);
    let wish = wish(params);
    tokio::task::spawn_blocking(move || {
        let all = source.store.read_iteration_log(&source.name, usize::MAX, MAX_ITERATIONS_LOG_BYTES);
        let lines = all.map(|all| {
            let total = all.total.unwrap_or(all.lines.len() as u64);
            Lines { total, ..pages::answer(all.lines, wish) }
        });
        reply.answer(lines);
    });
}
