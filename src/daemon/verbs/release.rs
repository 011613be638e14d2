//! `release`: end a hold, whether a command or typing began it.

use swarm_state::engine::Event;

use crate::daemon::caller::refuse_own;
use crate::daemon::supervisor::Supervisor;
use crate::error::Result;
use crate::protocol::HoldChanged;

impl Supervisor {
    pub(crate) fn release(&mut self, name: &str, peer: Option<i32>) -> Result<HoldChanged> {
        let (name, slot) = self.find(name)?;
        refuse_own(slot, peer, "release itself")?;
        let changed = slot.engine.is_held();
        if changed {
            self.step_if_saved(&name, |_| Ok(Event::Release))?;
        }
        Ok(HoldChanged { changed, warnings: self.save_warnings(&name) })
    }
}
