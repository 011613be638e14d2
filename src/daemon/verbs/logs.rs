//! `logs`: the output of a worker's runs.

use crate::daemon::output::{OutputSource, last_section, lines_of, wish};
use crate::daemon::pages::{self, LinesWanted};
use crate::daemon::reply::{Later, stopping};
use crate::daemon::supervisor::Supervisor;
use crate::error::Result;
use crate::protocol::{Lines, LogsParams, RUNNING};

mod one_run;

use one_run::KnownRuns;

impl Supervisor {
    /// The output of the current (or last) run, of one run, or of all runs that are kept.
    ///
    /// Counts the lines of the log, a header and the pane, as the log will have them after the run. So a follower's
    /// count continues from run to run.
    pub(crate) fn logs(&mut self, params: &LogsParams) -> Later<Lines> {
        let (_, slot) = self.find(&params.name)?;
        let (source, wish) = (OutputSource::of(slot), wish(params));
        Ok(match params.iteration {
            Some(number) => Box::pin(one_run::find(KnownRuns::of(slot, &source), source, number, wish)),
            None => Box::pin(all_logs(source, wish, params.history)),
        })
    }
}

async fn all_logs(source: OutputSource, wish: LinesWanted, history: bool) -> Result<Lines> {
    let live = match &source.pane {
        Some(pane) => source.tmux.capture(&pane.id, u32::MAX).await?,
        None => None,
    };
    let read = move || {
        let logged = source.store.count_worker_log_lines(&source.name)?;
        let run = Some(source.run);
        let Some(live) = live else {
            let rows = |rows| source.logged(rows).map(|rows| if history { rows } else { last_section(rows) });
            return Ok(Lines { total: logged, run, ..pages::answer_from(wish, rows)? });
        };
        let now = lines_of(&live.text);
        let total = logged + 1 + now.len() as u64;
        let rows = |rows| {
            let mut all = if history { source.logged(rows)? } else { vec![] };
            all.extend(history.then(|| RUNNING.to_owned()));
            all.extend_from_slice(&now);
            Ok(all)
        };
        Ok(Lines { total, picture: live.picture, run, ..pages::answer_from(wish, rows)? })
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| Err(stopping()))
}
