//! `interrupt`: press Ctrl-C in a worker's pane.

use crate::daemon::reply::Reply;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::send::pane_of;
use crate::protocol::Empty;

impl Supervisor {
    pub(crate) fn interrupt(&mut self, name: &str, reply: Reply) {
        match self.find(name).and_then(|(_, slot)| Ok((pane_of(slot)?, slot))) {
            Err(error) => reply.refuse(error),
            Ok((pane, slot)) => {
                // Not through the driver's queue, since a delivery that hangs must be interruptible.
                let tmux = slot.driver.context.tmux.clone();
                tokio::spawn(async move {
                    let outcome = tmux.keys(&pane.id, &["C-c"]).await;
                    reply.answer(outcome.map(|()| Empty {}));
                });
            }
        }
    }
}
