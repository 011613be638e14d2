//! A spawn or a respawn that is asked for once more, because its answer was lost with the daemon that was to give it.
//!
//! The client names each such request, and the name is kept in the worker's record from the first save on, before
//! anything is started. So there are two cases: no record has it, and the request is carried out as if it were
//! the first; or a worker has it, and then nothing is made, and the answer is what the first one would have been.
//! Used by [`crate::daemon::verbs::spawn`] and [`crate::daemon::verbs::respawn`].

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
    /// The worker that this very request has made.
    pub(crate) fn repeated_request(&self, request: Option<&String>) -> Option<WorkerName> {
        let request = request?;
        let made = self.slots.iter().find(|(_, slot)| slot.origin.request.as_ref() == Some(request));
        made.map(|(name, _)| name.clone())
    }

    /// Answers now, or when what is waited for has come.
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
        slot.start = Start::Pending(PendingSpawn { reply, until_ready, seq, respawned, warnings, request });
        if let Some(word) = slot.last_word() {
            self.answer_spawn(name, &word);
            self.finish_stopped(name);
        }
    }
}

impl Slot {
    /// Whether what the client of a new worker waits for has been.
    fn is_there(&self, until_ready: bool) -> bool {
        let has_begun = self.engine.ralph().is_some_and(|ralph| ralph.iteration > 0);
        match self.engine.phase() {
            Phase::Idle => false,
            Phase::Spawning { .. } if self.engine.run() > Run(1) => true,
            // Its base line may take minutes.
            Phase::Spawning { .. } => !until_ready && self.spec.is_gated() && has_begun,
            Phase::Starting { .. } => !until_ready || self.engine.is_ready(),
            Phase::Stopped { reason: StopReason::SpawnFailed(_) | StopReason::Prompt(_) } => false,
            Phase::Stopped { .. } => !until_ready,
            _ => true,
        }
    }

    /// What was told last to those who wait for a new worker, when nothing more will be.
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
