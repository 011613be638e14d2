//! What a worker printed: its screen and history while it lives, its log after that.
//!
//! What is too long for an answer is asked for page by page ([`pages`]).

use std::sync::Arc;

use swarm_state::model::{Pane, WorkerName};
use swarm_state::screen;

use super::slot::{Reply, Slot};
use super::supervisor::Supervisor;
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Lines, LogsParams, Peeked, RUNNING, is_run_header};
use crate::store::{LOG_LIMIT, Store};
use crate::tmux::Tmux;

mod one_run;
mod pages;

use pages::{ROOM, Wish, fit};

/// Lines of a finished run that `peek` can reach.
const MANY: usize = 20_000;

/// The most bytes of a loop's `iterations.log` that are told.
const JOURNAL: u64 = 2 * LOG_LIMIT;

struct Source {
    name: WorkerName,
    run: u64,
    tmux: Tmux,
    store: Arc<Store>,
    pane: Option<Pane>,
}

impl Source {
    fn of(slot: &Slot) -> Self {
        let context = &slot.driver.context;
        Self {
            name: slot.spec.name.clone(),
            run: slot.engine.run().0,
            tmux: context.tmux.clone(),
            store: context.store.clone(),
            pane: slot.pane.clone().filter(|_| slot.engine.has_pane()),
        }
    }

    /// The rows in the pane, the number of the first, and whether they are a picture.
    async fn rows(&self, history: u32) -> Result<Option<(Vec<String>, u64, bool)>> {
        let Some(pane) = &self.pane else { return Ok(None) };
        let Some(captured) = self.tmux.capture_rows(&pane.id, history).await? else { return Ok(None) };
        let lines = lines_of(&captured.text);
        let first =
            if captured.alternate { 0 } else { captured.history.saturating_sub(captured.history_taken) };
        Ok(Some((lines, first, captured.picture)))
    }

    /// The last rows of the log.
    fn logged(&self, rows: usize) -> Result<Vec<String>> {
        // A few are asked for more often than all, and may be as long as they like all the same.
        let tail = self.store.read_worker_log_tail(&self.name, rows, ROOM as u64)?;
        if !tail.truncated || tail.lines.len() >= rows {
            return Ok(tail.lines);
        }
        Ok(self.store.read_worker_log_tail(&self.name, rows, 2 * LOG_LIMIT)?.lines)
    }
}

/// Answers `peek`.
pub(super) fn peek(slot: &Slot, lines: u32, reply: Reply) {
    let source = Source::of(slot);
    tokio::spawn(async move {
        let answer = async {
            if let Some((mut rows, first, picture)) = source.rows(lines).await? {
                let cut = rows.len().saturating_sub(lines as usize);
                rows.drain(..cut);
                let first = first + cut as u64;
                let (lines, dropped) = fit(rows);
                return Ok(Peeked {
                    run: source.run,
                    first: first + dropped,
                    lines,
                    alternate: picture,
                    live: true,
                });
            }
            let rows = last_section(source.logged(MANY)?);
            let first = rows.len().saturating_sub(lines as usize);
            let rows = rows.into_iter().skip(first).collect();
            let first = first as u64;
            Ok(Peeked { run: source.run, first, lines: fit(rows).0, alternate: false, live: false })
        };
        Supervisor::answer(reply, answer.await);
    });
}

/// Answers `logs`: the current (or last) run, one run, or all runs that are kept.
///
/// Lines are counted as the log will have them once the run is over, so that a follower's count goes on
/// from one run to the next: what is logged, a header, and what is in the pane.
pub(super) fn logs(slot: &Slot, params: &LogsParams, reply: Reply) {
    let source = Source::of(slot);
    let (wish, history) = (wish(params), params.history);
    if let Some(number) = params.iteration {
        return one_run::logs(slot, source, number, wish, reply);
    }
    tokio::spawn(async move { Supervisor::answer(reply, all_logs(source, wish, history).await) });
}

async fn all_logs(source: Source, wish: Wish, history: bool) -> Result<Lines> {
    let live = match &source.pane {
        Some(pane) => source.tmux.capture(&pane.id, u32::MAX).await?,
        None => None,
    };
    let read = move || {
        let logged = source.store.count_worker_log_lines(&source.name)?;
        let run = Some(source.run);
        let Some(live) = live else {
            let rows = |rows| source.logged(rows).map(|rows| if history { rows } else { last_section(rows) });
            return Ok(Lines { total: logged, run, ..pages::grant(wish, rows)? });
        };
        let now = lines_of(&live.text);
        let total = logged + 1 + now.len() as u64;
        let rows = |rows| {
            let mut all = if history { source.logged(rows)? } else { vec![] };
            all.extend(history.then(|| RUNNING.to_owned()));
            all.extend_from_slice(&now);
            Ok(all)
        };
        Ok(Lines { total, picture: live.picture, run, ..pages::grant(wish, rows)? })
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| Err(stopping()))
}

fn wish(params: &LogsParams) -> Wish {
    Wish { last: params.lines.map(|n| n as usize), from: params.from }
}

fn stopping() -> Error {
    Error::new(ErrorCode::NoDaemon, "the daemon is stopping")
}

fn lines_of(text: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        text.split('\n').map(|row| screen::strip(row).trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Answers `ralph.logs`.
pub(super) fn iterations(slot: &Slot, params: &LogsParams, reply: Reply) {
    let source = Source::of(slot);
    let wish = wish(params);
    tokio::task::spawn_blocking(move || {
        let all = source.store.read_iteration_log(&source.name, usize::MAX, JOURNAL);
        let lines = all.map(|all| {
            let total = all.total.unwrap_or(all.lines.len() as u64);
            Lines { total, ..pages::answer(all.lines, wish) }
        });
        Supervisor::answer(reply, lines);
    });
}

/// The last run's part of a log.
fn last_section(rows: Vec<String>) -> Vec<String> {
    let from = rows.iter().rposition(|row| is_run_header(row)).map_or(0, |at| at + 1);
    rows.into_iter().skip(from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_is_what_stands_after_the_last_header() {
        let header = |run| format!("=== run {run}, ended x, exit code 0 ===");
        let rows = [header(1), "old".into(), header(2), "new".into(), "=== its own ===".into()].to_vec();
        assert_eq!(last_section(rows), ["new", "=== its own ==="]);
    }
}
