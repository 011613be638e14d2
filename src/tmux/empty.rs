//! Replaces a server that hangs after a request to exit.
//!
//! `kill-server` makes tmux close all panes and wait until each client is gone. If a control client's daemon was
//! killed while output was queued for it (tmux 3.3a), that never happens: the server keeps its socket, accepts
//! connections and answers none. It has no panes, so swarm treats it as gone and may start a new server. A server
//! that merely hangs still has the terminals of its panes open.
//!
//! [`super::server`] uses it. It finds the server through the kernel, which reports the process that listens at the
//! socket, and not by name.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::handle::Inner;
use super::probe::{ServerProbe, is_server_at, probe};
use crate::error::Result;
use crate::procs;

/// How often to look at a server that has not answered yet.
const EMPTY_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How many looks in a row must find no pane. A server that has just started has none for some milliseconds.
const EMPTY_POLLS: u32 = 4;

/// The longest time that [`Inner::until_empty`] takes for an empty server.
pub(super) const EMPTY_CHECK_TIME: Duration = EMPTY_POLL_INTERVAL.saturating_mul(EMPTY_POLLS + 2);

/// How long a server may take to exit after its last client is gone, or after SIGKILL.
const TMUX_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

impl Inner {
    /// Resolves when the server is known to have no pane; never if it has one or cannot be examined.
    pub(super) async fn until_empty(&self, listener: Option<i32>) {
        let Some(pid) = listener else { return std::future::pending().await };
        let mut empty = 0;
        while empty < EMPTY_POLLS {
            tokio::time::sleep(EMPTY_POLL_INTERVAL).await;
            empty = if holds_nothing(pid, self.socket_path()) { empty + 1 } else { 0 };
        }
    }

    /// Ends the empty server at the socket, so that another can start. Fails when another process listens there.
    pub(super) async fn end_empty(&self) -> Result<()> {
        let ServerProbe::Listening(listener) = probe(self.socket_path()).await else { return Ok(()) };
        let Some(pid) = listener else { return Err(self.silent()) };
        // The server waits for its clients, and clients of dead daemons are ours to end.
        self.end_stuck_clients();
        if tokio::time::timeout(TMUX_EXIT_TIMEOUT, procs::wait_gone(pid)).await.is_ok() {
            return Ok(());
        }
        let Some(started) = procs::start_time(pid) else { return Err(self.silent()) };
        if !holds_nothing(pid, self.socket_path()) {
            return Err(self.silent());
        }
        let socket = self.socket_path().display();
        tracing::warn!(pid, %socket, "killing a tmux server that has no panes and does not respond");
        procs::signal_same(pid, started, Signal::SIGKILL);
        tokio::time::timeout(TMUX_EXIT_TIMEOUT, procs::wait_gone(pid)).await.map_err(|_| self.silent())
    }
}

/// Whether a process is the server for this socket and has neither a pane's terminal nor a child. False if unknown.
fn holds_nothing(pid: i32, socket: &Path) -> bool {
    is_server_at(pid, socket)
        && procs::holds_terminals(pid) == Some(false)
        && procs::first_child(pid).is_none()
}
