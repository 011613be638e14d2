//! A server that was told to end and cannot.
//!
//! `kill-server` makes tmux close every pane and wait until each client is gone. When a control client's daemon
//! was killed with output still queued for it (tmux 3.3a), that never happens: the server keeps its socket,
//! accepts connections and answers none of them. It holds nothing any more, so for swarm it is gone, and a new
//! server may take its place. A server that merely hangs still holds the terminals of its panes.
//!
//! [`super::server`] calls this. Nothing here searches for servers by name: the kernel says which process
//! listens at the socket.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::Inner;
use super::server::{Probe, is_server_at, probe};
use crate::error::Result;
use crate::procs;

/// Between two looks at a server that has not answered yet.
const LOOK: Duration = Duration::from_millis(250);

/// How many looks in a row must find no pane. A server that has just started has none for some milliseconds.
const LOOKS: u32 = 4;

/// The longest that [`Inner::until_empty`] takes for a server that is empty.
pub(super) const EMPTY: Duration = LOOK.saturating_mul(LOOKS + 2);

/// How long a server may take to exit once its last client is gone, or after SIGKILL.
const EXIT: Duration = Duration::from_secs(1);

impl Inner {
    /// Resolves once the server is known to hold no pane; never for one that does, or that cannot be examined.
    pub(super) async fn until_empty(&self, listener: Option<i32>) {
        let Some(pid) = listener else { return std::future::pending().await };
        let mut empty = 0;
        while empty < LOOKS {
            tokio::time::sleep(LOOK).await;
            empty = if holds_nothing(pid, self.socket_path()) { empty + 1 } else { 0 };
        }
    }

    /// Ends the server that still listens at the socket although it holds nothing, so that another can start.
    ///
    /// # Errors
    /// When somebody listens there who is not such a server.
    pub(super) async fn end_empty(&self) -> Result<()> {
        let Probe::Listening(listener) = probe(self.socket_path()).await else { return Ok(()) };
        let Some(pid) = listener else { return Err(self.silent()) };
        // It waits for clients, and those of dead daemons are ours to end.
        self.end_stuck_clients();
        if tokio::time::timeout(EXIT, procs::wait_gone(pid)).await.is_ok() {
            return Ok(());
        }
        let Some(started) = procs::start_time(pid) else { return Err(self.silent()) };
        if !holds_nothing(pid, self.socket_path()) {
            return Err(self.silent());
        }
        let socket = self.socket_path().display();
        tracing::warn!(pid, %socket, "ending, by SIGKILL, a tmux server that holds no pane and does not answer");
        procs::signal_same(pid, started, Signal::SIGKILL);
        tokio::time::timeout(EXIT, procs::wait_gone(pid)).await.map_err(|_| self.silent())
    }
}

/// Whether a process is the server that was started for this socket, and has neither a pane's terminal nor a
/// child. False where the system does not say.
fn holds_nothing(pid: i32, socket: &Path) -> bool {
    is_server_at(pid, socket)
        && procs::holds_terminals(pid) == Some(false)
        && procs::first_child(pid).is_none()
}
