//! `daemon.stop`: pause all loops and end the daemon.

use crate::daemon::messages::DaemonEnd;
use crate::daemon::reply::Reply;
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::views;
use crate::protocol::DaemonStopped;

impl Supervisor {
    pub(crate) fn daemon_stop(&mut self, reply: Reply) {
        self.end_daemon(DaemonEnd::Stop);
        let agents = self.slots.values().filter(|s| s.engine.has_pane()).count();
        let lost = self.slots.values().filter(|s| views::paused_by_shutdown(s) && s.saving.may_be_lost());
        let warn = |slot: &Slot| {
            let name = &slot.spec.name;
            format!(
                "the pause of the loop of worker '{name}' could not be saved: the next daemon continues the loop"
            )
        };
        let warnings = lost.map(warn).collect();
        let stopped = DaemonStopped { paused: self.paused_by_shutdown(), agents, warnings };
        reply.answer(Ok(stopped));
    }
}
