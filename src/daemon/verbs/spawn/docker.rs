//! Refuses workers that cannot have a Docker sandbox.

use std::path::PathBuf;

use swarm_state::docker::DockerNeeds;
use swarm_state::model::Status;
use swarm_state::rooms::RoomGates;
use swarm_state::spec::WorkerSpec;

use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, ErrorCode, Result};
use crate::paths::resolve;

/// Refuses options that Docker cannot support. With the same check, the client decides what `auto` means.
pub(super) fn refuse_obstacle(spec: &WorkerSpec) -> Result<()> {
    if !spec.is_in_docker() {
        return Ok(());
    }
    let none = RoomGates::default();
    let needs = DockerNeeds {
        profile: &spec.profile,
        cmd: &spec.cmd,
        reviewer: spec.ralph.as_ref().and_then(|ralph| Some(&ralph.reviewer.as_ref()?.profile)),
        caps: &spec.caps,
        rooms: spec.ralph.as_ref().map_or(&none, |ralph| &ralph.gates.rooms),
        is_parallel: false,
    };
    match needs.obstacle() {
        None => Ok(()),
        Some((why, hint)) => Err(Error::new(ErrorCode::Sandbox, why).hint(hint)),
    }
}

/// The directory of a worker in a Docker sandbox that it does not have for itself.
fn directory(spec: &WorkerSpec) -> Option<PathBuf> {
    (spec.is_in_docker() && spec.worktree.is_none()).then(|| resolve(&spec.cwd))
}

impl Supervisor {
    /// Refuses a worker whose Docker sandbox another worker uses: the end of one would end the agent of the other.
    pub(super) fn refuse_shared_sandbox(&self, spec: &WorkerSpec) -> Result<()> {
        let Some(dir) = directory(spec) else { return Ok(()) };
        let is_other = |slot: &&Slot| {
            let is_live = slot.status().is_live_or_paused() || slot.status() == Status::Lost;
            is_live && slot.spec.name != spec.name && directory(&slot.spec).as_ref() == Some(&dir)
        };
        let Some(other) = self.slots.values().find(is_other).map(|slot| &slot.spec.name) else {
            return Ok(());
        };
        let message = format!("worker '{other}' uses the Docker sandbox of {}", dir.display());
        let hint = format!("wait for it, or end it: swarm kill {other}; a second worker needs --worktree");
        Err(Error::new(ErrorCode::Exists, message).hint(hint))
    }
}
