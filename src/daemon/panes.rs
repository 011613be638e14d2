//! Lists the panes of a tmux server, finds the worker and run of each, and ends some.

use std::time::Duration;

use nix::sys::signal::Signal;
use swarm_state::model::{Pane, Run};
use tokio::time::{sleep, timeout};

use crate::daemon::messages::ServerPanes;
use crate::procs;
use crate::tmux::{Health, PaneRow, Tmux};

/// How long the start of the daemon waits for one tmux server. A slower server is reconciled when it answers.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(4);

pub(crate) async fn look(tmux: &Tmux) -> ServerPanes {
    let none = |silent| ServerPanes { rows: vec![], server: None, silent };
    let found = async {
        match tmux.health().await {
            Health::Gone => none(false),
            Health::Unresponsive => none(true),
            Health::Alive { pid } => tmux
                .list()
                .await
                .map_or_else(|_| none(true), |rows| ServerPanes { rows, server: Some(pid), silent: false }),
        }
    };
    timeout(SURVEY_TIMEOUT, found).await.unwrap_or_else(|_| none(true))
}

pub(crate) async fn look_until_it_answers(tmux: &Tmux) -> ServerPanes {
    loop {
        sleep(Duration::from_secs(1)).await;
        let found = look(tmux).await;
        if !found.silent {
            return found;
        }
    }
}

/// The worker and run that a pane claims to be, by its options or by the folder of its wrapper.
pub(crate) fn claim_of(row: &PaneRow) -> Option<(&str, Run)> {
    row.worker.as_deref().zip(row.run.map(Run))
}

/// Ends the processes in these panes, and closes their windows. The wrappers end processes that ignore the signal.
pub(crate) async fn end_panes(tmux: &Tmux, panes: Vec<Pane>) {
    for pane in panes {
        let Pane { run: Run(run), id, pid, .. } = &pane;
        tracing::warn!(pane = %id, run, "ending a pane that no worker owns");
        // The pid of a wrapper that has ended may belong to another process.
        if procs::is_alive(*pid) {
            procs::signal_tree(*pid, Signal::SIGTERM);
        }
        drop(tmux.close(&pane).await);
    }
}
