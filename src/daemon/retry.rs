//! A spawn or respawn request that a client repeats because the daemon ended before it answered.
//!
//! The client puts an id into each request, and the worker's record has it from its first save on. If no record has
//! the id, the request is carried out. If a worker has it, nothing is created, and the client gets the answer of the
//! first request. Used by [`super::verbs::spawn`] and [`super::verbs::respawn`].

use swarm_state::engine::Phase;
use swarm_state::model::{Run, Status, WorkerName};
use swarm_state::notice::{Entry, StopReason};

use crate::daemon::messages::PendingSpawn;
use crate::daemon::reply::Reply;
use crate::daemon::slot::{Slot, Start};
use crate::daemon::supervisor::Supervisor;
use crate::daemon::views;
use crate::protocol::Spawned;

impl Supervisor {
    /// Returns the worker that this request has created, if it is a repeated one.
    pub(crate) fn repeated_request(&self, request: Option<&String>) -> Option<WorkerName> {
        let request = request?;
        let made = self.slots.iter().find(|(_, slot)| slot.origin.request.as_ref() == Some(request));
        made.map(|(name, _)| name.clone())
    }

    /// Answers a repeated request: now, or when the worker has reached the state that the client waits for.
    pub(crate) fn answer_repeated(
        &mut self,
        name: &WorkerName,
        until_ready: bool,
        respawned: bool,
        reply: Reply,
    ) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let (seq, request) = (slot.origin.first_notice, slot.origin.request.clone());
        let warnings = slot.take_pending().map(|first| first.warnings).unwrap_or_default();
        if slot.is_there(until_ready) {
            return reply.answer(Ok(Spawned { worker: views::whole(slot), seq, warnings }));
        }
        slot.start = Start::Pending(PendingSpawn {
            reply,
            until_ready,
            seq,
            respawned,
            warnings,
            request,
            lacks_sandbox: false,
        });
        if let Some(word) = slot.last_word() {
            self.answer_spawn(name, &word);
            self.finish_stopped(name);
        }
    }
}

impl Slot {
    /// Whether the worker has reached the state that the client of a spawn waits for.
    fn is_there(&self, until_ready: bool) -> bool {
        let has_read_launch = self.engine.ralph().is_some_and(|ralph| ralph.iteration > 0);
        match self.engine.phase() {
            Phase::Idle => false,
            Phase::Spawning { .. } if self.engine.run() > Run(1) => true,
            // The baseline may take minutes.
            Phase::Spawning { .. } => !until_ready && self.spec.is_gated() && has_read_launch,
            Phase::Starting { .. } => !until_ready || self.engine.is_ready(),
            Phase::Stopped { reason: StopReason::SpawnFailed(_) | StopReason::Prompt(_) } => false,
            Phase::Stopped { .. } => !until_ready,
            _ => true,
        }
    }

    /// The notice that answers a spawn whose outcome is already known.
    fn last_word(&self) -> Option<Entry> {
        match self.engine.phase() {
            Phase::Stopped { reason: reason @ StopReason::Prompt(_) } => {
                Some(Entry::LoopFailed { iterations: 0, reason: reason.clone() })
            }
            Phase::Stopped { reason } => Some(Entry::Stopped { reason: reason.clone() }),
            Phase::Starting { .. } if self.engine.status() == Status::Waiting => Some(Entry::Waiting {
                run: self.engine.run().0,
                reason: self.engine.reason().unwrap_or_default(),
            }),
            _ => None,
        }
    }
}
