//! `ralph.pause`: pause a loop after its current iteration.

use swarm_state::engine::Event;
use swarm_state::model::LoopStatus;
use swarm_state::notice::PauseBy;

use crate::daemon::legacy::refuse_legacy;
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, Result};
use crate::protocol::Changed;

impl Supervisor {
    pub(crate) fn pause(&mut self, name: &str) -> Result<Changed> {
        let (name, slot) = self.find_loop(name)?;
        let before = status_of(slot)?;
        refuse_legacy(slot)?;
        if slot.engine.is_stopped() {
            let message = format!("the loop of worker '{name}' has ended ({before})");
            return Err(Error::conflict(message).hint(format!("swarm ralph status {name}")));
        }
        let changed = before != LoopStatus::Paused;
        if changed {
            self.step_if_saved(&name, |_| Ok(Event::Pause(PauseBy::User)))?;
        }
        Ok(Changed { changed, before, warnings: self.save_warnings(&name) })
    }
}

pub(crate) fn status_of(slot: &Slot) -> Result<LoopStatus> {
    slot.engine.loop_status().ok_or_else(|| Error::internal("a loop without a status"))
}
