//! `daemon.status`: the daemon itself.

use crate::daemon::reply::Reply;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::views;
use crate::protocol::{DaemonView, RELEASE, VERSION};

impl Supervisor {
    pub(crate) fn daemon_status(&self, reply: Reply) {
        let mut view = DaemonView {
            pid: std::process::id(),
            version: RELEASE.into(),
            protocol: VERSION,
            started: self.started.to_rfc3339(),
            swarm_dir: self.store.paths().root().to_owned(),
            socket: self.store.paths().socket(),
            tmux: None,
            live: self.slots.values().filter(|s| s.status().is_live()).count(),
            workers: self.slots.len(),
            paused_by_shutdown: self.paused_by_shutdown(),
            notify_errors: self.notifying.errors(),
        };
        let tmux =
            self.slots.values().find(|s| s.spec.tmux_socket.is_none()).map(|s| s.driver.context.tmux.clone());
        tokio::spawn(async move {
            if let Some(tmux) = tmux {
                view.tmux = tmux.version().await;
            }
            reply.answer(Ok(view));
        });
    }

    pub(crate) fn paused_by_shutdown(&self) -> Vec<String> {
        let paused = self.slots.values().filter(|s| views::paused_by_shutdown(s));
        paused.map(|s| s.spec.name.to_string()).collect()
    }
}
