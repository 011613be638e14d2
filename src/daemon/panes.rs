//! All panes of one tmux server: lists them, tells which worker's run each belongs to, ends some.

use std::time::Duration;

use nix::sys::signal::Signal;
use swarm_state::model::{Pane, Run};
use tokio::time::{sleep, timeout};

use crate::daemon::messages::ServerPanes;
use crate::procs;
use crate::tmux::{Health, Row, Tmux};

/// How long the start waits for a tmux: whoever started the daemon waits too. What a tmux that is slower
/// than this holds is seen by the first looks at the screens.
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

/// Which worker's run a pane says that it is: by its options, or by the folder its wrapper was given.
pub(crate) fn claim_of(row: &Row) -> Option<(&str, Run)> {
    row.worker.as_deref().zip(row.run.map(Run))
}

/// Ends what runs in these panes, and closes their windows. The wrapper of one sees to what does not listen.
pub(crate) async fn end_panes(tmux: &Tmux, panes: Vec<Pane>) {
    for pane in panes {
        let Pane { run: Run(run), id, pid, .. } = &pane;
        tracing::warn!(pane = %id, run, "ending a pane that no worker owns");
        // The number of a wrapper that is gone may be anybody's by now.
        if procs::is_alive(*pid) {
            procs::signal_tree(*pid, Signal::SIGTERM);
        }
        drop(tmux.close(&pane).await);
    }
}
