//! Seeded bugs, and that the walks and the world catch each.

use super::*;

/// A worker, and what is wrong with it.
pub(super) struct Machine {
    pub(super) worker: Worker,
}

impl Machine {
    /// The engine as it is.
    pub(super) fn true_one(worker: Worker) -> Self {
        Self { worker }
    }

    pub(super) fn step(&mut self, event: Event, now: Now) -> Vec<Effect> {
        self.worker.step(event, now)
    }
}
