//! What a worker printed: its screen and history while it lives, its log after that.
//!
//! Answers are cut from the front to fit a line of the protocol.

use std::sync::Arc;

use swarm_state::model::{Pane, WorkerName};
use swarm_state::screen;

use super::slot::{Reply, Slot};
use super::supervisor::Supervisor;
use crate::error::{Error, Result};
use crate::protocol::{Lines, LogsParams, Peeked, RUNNING, is_run_header};
use crate::store::Store;
use crate::tmux::Tmux;

mod one_run;

/// Bytes of text that fit an answer with room to spare: JSON can double a line.
const ROOM: usize = 400_000;

/// Lines of an answer when nobody said how many.
const MANY: usize = 20_000;

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
        Ok(Some((lines, first, captured.alternate)))
    }

    fn logged(&self, lines: usize) -> Result<(Vec<String>, u64, bool)> {
        let tail = self.store.read_worker_log_tail(&self.name, lines, ROOM as u64)?;
        let total = tail.total.unwrap_or(tail.lines.len() as u64);
        Ok((tail.lines, total, tail.truncated))
    }
}

/// Answers `peek`.
pub(super) fn peek(slot: &Slot, lines: u32, reply: Reply) {
    let source = Source::of(slot);
    tokio::spawn(async move {
        let answer = async {
            if let Some((mut rows, first, alternate)) = source.rows(lines).await? {
                let cut = rows.len().saturating_sub(lines as usize);
                rows.drain(..cut);
                let first = first + cut as u64;
                let (lines, dropped) = fit(rows);
                return Ok(Peeked { run: source.run, first: first + dropped, lines, alternate, live: true });
            }
            let rows = last_section(source.logged(MANY)?.0);
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
    let (wanted, history) = (params.lines.map_or(MANY, |n| n as usize), params.history);
    if let Some(number) = params.iteration {
        return one_run::logs(slot, source, number, wanted, reply);
    }
    tokio::spawn(async move {
        let answer = async {
            let logged = source.store.count_worker_log_lines(&source.name)?;
            let live = match &source.pane {
                Some(pane) => source.tmux.capture(&pane.id, u32::MAX).await?,
                None => None,
            };
            let Some(live) = live else {
                let rows = source.logged(MANY)?.0;
                let rows = if history { rows } else { last_section(rows) };
                return Ok(Lines { total: logged, ..cut(rows, wanted) });
            };
            let now = lines_of(&live.text);
            let total = logged + 1 + now.len() as u64;
            let mut rows = if history { source.logged(MANY)?.0 } else { vec![] };
            if history {
                rows.push(RUNNING.to_owned());
            }
            rows.extend(now);
            Ok(Lines { total, picture: live.alternate, ..cut(rows, wanted) })
        };
        Supervisor::answer(reply, answer.await);
    });
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
    let wanted = params.lines.map_or(MANY, |n| n as usize);
    tokio::task::spawn_blocking(move || {
        let tail = source.store.read_iteration_log(&source.name, MANY, ROOM as u64);
        let lines = tail.map(|tail| {
            let total = tail.total.unwrap_or(tail.lines.len() as u64);
            Lines { total, ..cut(tail.lines, wanted) }
        });
        Supervisor::answer(reply, lines.map_err(|e: Error| e));
    });
}

/// The last run's part of a log.
fn last_section(rows: Vec<String>) -> Vec<String> {
    let from = rows.iter().rposition(|row| is_run_header(row)).map_or(0, |at| at + 1);
    rows.into_iter().skip(from).collect()
}

fn cut(rows: Vec<String>, wanted: usize) -> Lines {
    let total = rows.len() as u64;
    let skip = rows.len().saturating_sub(wanted);
    let (lines, dropped) = fit(rows.into_iter().skip(skip).collect());
    Lines { lines, truncated: dropped > 0, total, picture: false }
}

/// The last rows that fit an answer, and how many did not.
fn fit(rows: Vec<String>) -> (Vec<String>, u64) {
    let mut room = ROOM;
    let fitting = rows.iter().rev().take_while(|row| {
        let cost = row.len() + 8;
        let fits = cost <= room;
        room = room.saturating_sub(cost);
        fits
    });
    let dropped = rows.len() - fitting.count();
    (rows.into_iter().skip(dropped).collect(), dropped as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_cut_from_the_front() {
        let rows: Vec<String> = (0..100_000).map(|n| format!("line {n}")).collect();
        let lines = cut(rows, usize::MAX);
        assert!(lines.truncated);
        assert_eq!(lines.total, 100_000);
        assert_eq!(lines.lines.last().unwrap(), "line 99999");
        assert_eq!(cut(vec!["a".into(), "b".into()], 1).lines, ["b"]);
    }

    #[test]
    fn the_last_run_is_what_stands_after_the_last_header() {
        let header = |run| format!("=== run {run}, ended x, exit code 0 ===");
        let rows = [header(1), "old".into(), header(2), "new".into(), "=== its own ===".into()].to_vec();
        assert_eq!(last_section(rows), ["new", "=== its own ==="]);
    }
}
