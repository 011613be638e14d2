//! The output of a worker: its screen and history while it lives, its log after that.

use std::sync::Arc;

use swarm_state::model::{Pane, WorkerName};
use swarm_state::screen;

use crate::daemon::pages::{LinesWanted, MAX_PAGE_BYTES};
use crate::daemon::slot::Slot;
use crate::error::Result;
use crate::protocol::{LogsParams, is_run_header};
use crate::store::{MAX_WORKER_LOG_BYTES, Store};
use crate::tmux::Tmux;

pub(crate) struct OutputSource {
    pub(crate) name: WorkerName,
    pub(crate) run: u64,
    pub(crate) tmux: Tmux,
    pub(crate) store: Arc<Store>,
    pub(crate) pane: Option<Pane>,
}

impl OutputSource {
    pub(crate) fn of(slot: &Slot) -> Self {
        let context = &slot.driver.context;
        Self {
            name: slot.spec.name.clone(),
            run: slot.engine.run().0,
            tmux: context.tmux.clone(),
            store: context.store.clone(),
            pane: slot.pane.clone().filter(|_| slot.engine.has_pane()),
        }
    }

    /// The rows in the pane, the number of the first, and whether the agent uses the alternate screen.
    /// With `styled` the attributes of the text stay in them.
    pub(crate) async fn rows(&self, history: u32, styled: bool) -> Result<Option<(Vec<String>, u64, bool)>> {
        let Some(pane) = &self.pane else { return Ok(None) };
        let Some(captured) = self.tmux.capture_rows(&pane.id, history, styled).await? else {
            return Ok(None);
        };
        let clean = if styled { screen::styled } else { screen::strip };
        let lines = lines_with(&captured.text, clean);
        let first =
            if captured.alternate { 0 } else { captured.history.saturating_sub(captured.history_taken) };
        Ok(Some((lines, first, captured.picture)))
    }

    /// The last rows of the log.
    pub(crate) fn logged(&self, rows: usize) -> Result<Vec<String>> {
        // Most requests are for a few rows; the whole log is read only if these are too long.
        let tail = self.store.read_worker_log_tail(&self.name, rows, MAX_PAGE_BYTES as u64)?;
        if !tail.truncated || tail.lines.len() >= rows {
            return Ok(tail.lines);
        }
        Ok(self.store.read_worker_log_tail(&self.name, rows, 2 * MAX_WORKER_LOG_BYTES)?.lines)
    }
}

pub(crate) fn wish(params: &LogsParams) -> LinesWanted {
    LinesWanted { last: params.lines.map(|n| n as usize), from: params.from }
}

pub(crate) fn lines_of(text: &str) -> Vec<String> {
    lines_with(text, screen::strip)
}

/// The rows of a text, each of them cleaned, without empty ones at the end.
fn lines_with(text: &str, clean: fn(&str) -> String) -> Vec<String> {
    let mut lines: Vec<String> = text.split('\n').map(|row| clean(row).trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The last run's part of a log.
pub(crate) fn last_section(rows: Vec<String>) -> Vec<String> {
    let from = rows.iter().rposition(|row| is_run_header(row)).map_or(0, |at| at + 1);
    rows.into_iter().skip(from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_run_is_the_text_after_the_last_header() {
        let header = |run| format!("=== run {run}, ended x, exit code 0 ===");
        let rows = [header(1), "old".into(), header(2), "new".into(), "=== its own ===".into()].to_vec();
        assert_eq!(last_section(rows), ["new", "=== its own ==="]);
    }
}
