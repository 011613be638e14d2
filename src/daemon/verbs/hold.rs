//! `hold`: keep swarm away from a worker until `release`.

use swarm_state::engine::{Event, Phase};
use swarm_state::notice::HoldBy;

use crate::daemon::caller::refuse_own;
use crate::daemon::legacy::refuse_legacy;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, Result};
use crate::protocol::HoldChanged;

impl Supervisor {
    pub(crate) fn hold(&mut self, name: &str, peer: Option<i32>) -> Result<HoldChanged> {
        let (name, slot) = self.find(name)?;
        // The time of a hold counts for no limit of the loop.
        refuse_own(slot, peer, "hold itself")?;
        refuse_legacy(slot)?;
        match slot.engine.phase() {
            Phase::Stopped { .. } => return Err(Error::conflict(format!("worker '{name}' has finished"))),
            Phase::Lost => {
                return Err(Error::conflict(format!("worker '{name}' is lost: it has no agent to hold")));
            }
            _ => {}
        }
        let changed = !matches!(slot.engine.held_by(), Some((HoldBy::Command, _)));
        if changed {
            self.step_if_saved(&name, |_| Ok(Event::Hold))?;
        }
        Ok(HoldChanged { changed, warnings: self.save_warnings(&name) })
    }
}
