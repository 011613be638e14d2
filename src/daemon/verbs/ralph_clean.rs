//! `ralph.clean`: delete the files of loops that have ended.

use swarm_state::model::WorkerName;

use crate::daemon::caller::refuse_own;
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, Result};
use crate::protocol::{Cleaned, RalphCleanParams};

impl Supervisor {
    pub(crate) fn ralph_clean(&mut self, params: &RalphCleanParams, peer: Option<i32>) -> Result<Cleaned> {
        if let Some(name) = &params.name {
            WorkerName::new(base_of(name)).map_err(|e| Error::invalid(e.to_string()))?;
        }
        let mut cleaned = Cleaned { removed: vec![], kept: vec![] };
        for dir in self.store.ralph_dirs() {
            let base = base_of(&dir);
            if params.name.as_deref().is_some_and(|wanted| wanted != base && wanted != dir) {
                continue;
            }
            let slot = WorkerName::new(base).ok().and_then(|name| self.slots.get(&name));
            let live = |s: &Slot| !s.engine.is_stopped() && s.engine.ralph().is_some();
            // An agent may not delete the data that its own results are checked against.
            let own = slot.map_or(Ok(()), |slot| refuse_own(slot, peer, "delete the files of its own loop"));
            if own.is_err() && params.name.is_some() {
                own?;
            } else if own.is_err() || dir == base && slot.is_some_and(live) {
                cleaned.kept.push(dir);
                continue;
            }
            self.store.remove_ralph_dir(&dir)?;
            cleaned.removed.push(dir);
        }
        match &params.name {
            Some(name) if cleaned.removed.is_empty() && cleaned.kept.is_empty() => {
                self.find(base_of(name))?;
                Err(Error::invalid(format!("no ralph state for '{name}'")))
            }
            _ => Ok(cleaned),
        }
    }
}

/// The name in `agent` and in `agent.1`, the state of an earlier loop.
fn base_of(state: &str) -> &str {
    state.split_once('.').map_or(state, |(base, _)| base)
}
