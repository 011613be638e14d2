//! Finds and ends orphaned panes: panes of a run that has ended, or of a deleted worker.
//!
//! A pane is closed when its run is evaluated. If that fails, or if tmux creates a window after swarm's timeout, a dead
//! window or an unsupervised agent remains. So the daemon looks for orphaned panes at its start, one second after a
//! worker ended or a window could not be created or closed, and again until it finds none. It waits for a tmux that
//! does not answer. Not here: panes that no worker of swarm's started, and the rule for what is orphaned
//! ([`swarm_state::reconcile`]).

use std::time::Duration;

use swarm_state::model::{Pane, WorkerName};
use swarm_state::reconcile::{self, PaneClaim};

use crate::daemon::messages::{DaemonInput, ServerPanes};
use crate::daemon::panes;
use crate::daemon::supervisor::{Supervisor, SweepState};
use crate::tmux::PaneRow;

/// The delay before a search: workers that end together cause one search, and tmux has finished its last command.
const SWEEP_DELAY: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Plans a search for orphaned panes on this server.
    pub(crate) fn schedule_sweep(&mut self, socket: &Option<String>) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        let begun = server.sweep != SweepState::Idle;
        server.sweep = SweepState::Away { again: begun };
        if !begun {
            self.send_sweep(socket);
        }
    }

    /// As [`Supervisor::schedule_sweep`], for the server of a worker, unless it is the predecessor's.
    pub(crate) fn sweep_server_of(&mut self, name: &WorkerName) {
        let own = self.slots.get(name).filter(|slot| slot.origin.legacy.is_none());
        if let Some(socket) = own.map(|slot| slot.spec.tmux_socket.clone()) {
            self.schedule_sweep(&socket);
        }
    }

    fn send_sweep(&mut self, socket: &Option<String>) {
        let (tmux, inbox, socket) = (self.tmux(socket), self.inbox.clone(), socket.clone());
        tokio::spawn(async move {
            tokio::time::sleep(SWEEP_DELAY).await;
            let found = panes::look_until_it_answers(&tmux).await;
            drop(inbox.send(DaemonInput::Swept { socket, found }));
        });
    }

    /// A search has ended: ends the panes that it found, and searches again.
    pub(crate) fn swept(&mut self, socket: &Option<String>, found: &ServerPanes) {
        let left = self.ours_left(socket, found);
        let Some(server) = self.servers.get_mut(socket) else { return };
        if left.is_empty() && server.sweep != (SweepState::Away { again: true }) {
            server.sweep = SweepState::Idle;
            return;
        }
        server.sweep = SweepState::Away { again: false };
        let tmux = server.tmux.clone();
        tokio::spawn(async move { panes::end_panes(&tmux, left).await });
        self.send_sweep(socket);
    }

    /// The search at a start: all panes with a worker's mark that belong to no worker.
    pub(crate) fn sweep(&mut self, socket: &Option<String>, found: &ServerPanes) -> Vec<Pane> {
        let left = self.left(socket, found, |_, _| true);
        if !left.is_empty() {
            self.schedule_sweep(socket);
        }
        left
    }

    /// Only panes of workers that this daemon has or has deleted, in a window that was created for this directory:
    /// another swarm may use the same server, and some records may be gone.
    fn ours_left(&self, socket: &Option<String>, found: &ServerPanes) -> Vec<Pane> {
        let runs = self.store.paths().runs_dir().to_string_lossy().into_owned();
        self.left(socket, found, |row, name| {
            let known = self.slots.contains_key(name) || self.forgotten.contains(name);
            known && row.start_command.contains(&runs)
        })
    }

    fn left(
        &self,
        socket: &Option<String>,
        found: &ServerPanes,
        admits: impl Fn(&PaneRow, &WorkerName) -> bool,
    ) -> Vec<Pane> {
        let Some(server_pid) = found.server else { return vec![] };
        let pane = |row: &PaneRow| {
            let (worker, run) = panes::claim_of(row)?;
            let name = WorkerName::new(worker).ok()?;
            // The pane may belong to a record that could not be read: it stays.
            let unread = !self.slots.contains_key(&name)
                && self.problems.iter().any(|p| p.name.as_ref() == Some(&name));
            let (id, window) = (row.pane.clone(), row.window.clone());
            let pane = Pane { run, id, window, pid: row.pid, server_pid };
            let left = !unread && self.is_left(socket, &name, &pane, row.dead) && admits(row, &name);
            left.then_some(pane)
        };
        found.rows.iter().filter_map(pane).collect()
    }

    fn is_left(&self, socket: &Option<String>, name: &WorkerName, pane: &Pane, dead: bool) -> bool {
        let slot = self.slots.get(name).filter(|s| s.spec.tmux_socket == *socket);
        let is_other =
            |own: &Pane| own.run == pane.run && own.server_pid == pane.server_pid && own.id != pane.id;
        let claim = PaneClaim { run: pane.run, dead };
        reconcile::is_orphan(claim, slot.map(|s| &s.engine))
            || slot.and_then(|s| s.pane.as_ref()).is_some_and(is_other)
    }
}
