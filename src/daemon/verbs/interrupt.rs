//! `interrupt`: press Ctrl-C in a worker's pane.

use crate::daemon::reply::Later;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::send::pane_of;
use crate::protocol::Empty;

impl Supervisor {
    pub(crate) fn interrupt(&mut self, name: &str) -> Later<Empty> {
        let (_, slot) = self.find(name)?;
        let (pane, tmux) = (pane_of(slot)?, slot.driver.context.tmux.clone());
        // Not through the driver's queue, since a delivery that hangs must be interruptible.
        Ok(Box::pin(async move { tmux.keys(&pane.id, &["C-c"]).await.map(|()| Empty {}) }))
    }
}
