//! `attach`: where a worker's window is.

use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::send::pane_of;
use crate::error::Result;
use crate::protocol::AttachView;

impl Supervisor {
    pub(crate) fn attach(&mut self, name: &str) -> Result<AttachView> {
        let (_, slot) = self.find(name)?;
        let pane = pane_of(slot)?;
        let server = slot.spec.tmux_socket.clone();
        let view = AttachView {
            socket: slot.driver.context.tmux.socket_path(),
            session: "swarm".into(),
            window: pane.window,
            pane: pane.id,
            size: slot.spec.size,
        };
        self.attached.expect(&server);
        Ok(view)
    }
}
