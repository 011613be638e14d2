//! `ralph.clean`: delete the files of loops that have ended, and their snapshots if a branch has the work.

use swarm_state::model::WorkerName;

use crate::daemon::caller::refuse_own;
use crate::daemon::loop_snapshots::{LoopSnapshots, clear, snapshots_of};
use crate::daemon::reply::Later;
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::clean::refuse_newer;
use crate::error::{Error, Result};
use crate::protocol::{Cleaned, RalphCleanParams};

impl Supervisor {
    pub(crate) fn ralph_clean(&mut self, params: RalphCleanParams, peer: Option<i32>) -> Later<Cleaned> {
        let (mut cleaned, snapshots) = self.remove_loops(&params, peer)?;
        Ok(Box::pin(async move {
            cleaned.snapshots = clear(snapshots, params.discard, &mut cleaned.warnings).await;
            let is_empty =
                cleaned.removed.is_empty() && cleaned.kept.is_empty() && cleaned.snapshots.is_empty();
            match params.name {
                Some(name) if is_empty => Err(Error::invalid(format!("no ralph state for '{name}'"))),
                _ => Ok(cleaned),
            }
        }))
    }

    /// Removes the files at once, so that a new loop of the name cannot lose its own.
    fn remove_loops(
        &mut self,
        params: &RalphCleanParams,
        peer: Option<i32>,
    ) -> Result<(Cleaned, Vec<LoopSnapshots>)> {
        if let Some(name) = &params.name {
            WorkerName::new(base_of(name)).map_err(|e| Error::invalid(e.to_string()))?;
        }
        let live = |s: &Slot| !s.engine.is_stopped() && s.engine.ralph().is_some();
        let (mut cleaned, mut snapshots) = (Cleaned::default(), vec![]);
        for dir in self.store.ralph_dirs() {
            let base = base_of(&dir);
            if params.name.as_deref().is_some_and(|wanted| wanted != base && wanted != dir) {
                continue;
            }
            let slot = WorkerName::new(base).ok().and_then(|name| self.slots.get(&name));
            // An agent may not delete the data that its own results are checked against.
            let newer = WorkerName::new(base).map_or(Ok(()), |name| refuse_newer(&self.store, &name));
            let own = slot.map_or(Ok(()), |slot| refuse_own(slot, peer, "delete the files of its own loop"));
            if own.is_err() && params.name.is_some() {
                own?;
            } else if dir == base && newer.is_err() && params.name.is_some() {
                newer?;
            } else if own.is_err() || dir == base && newer.is_err() || dir == base && slot.is_some_and(live) {
                cleaned.kept.push(dir);
                continue;
            }
            let found = slot.map(|slot| snapshots_of(slot, &self.store, std::slice::from_ref(&dir)));
            self.store.remove_ralph_dir(&dir)?;
            snapshots.extend(found.unwrap_or_default());
            cleaned.removed.push(dir);
        }
        match &params.name {
            // An earlier `ralph clean` may have kept the snapshots.
            Some(name) if cleaned.removed.is_empty() && cleaned.kept.is_empty() => {
                let (own_name, _) = self.find(base_of(name))?;
                let Some(slot) = self.slots.get(&own_name) else { return Ok((cleaned, snapshots)) };
                if live(slot) {
                    return Ok((cleaned, snapshots));
                }
                refuse_own(slot, peer, "delete the files of its own loop")?;
                let snapshots = snapshots_of(slot, &self.store, std::slice::from_ref(name));
                Ok((cleaned, snapshots))
            }
            _ => Ok((cleaned, snapshots)),
        }
    }
}

/// The name in `agent` and in `agent.1`, the state of an earlier loop.
fn base_of(state: &str) -> &str {
    state.split_once('.').map_or(state, |(base, _)| base)
}
