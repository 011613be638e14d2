//! `subscribe`: the workers as they are now, and the notices to come.

use swarm_state::model::WorkerName;

use crate::daemon::messages::Subscription;
use crate::daemon::notices::NewSubscriber;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::views;
use crate::error::Result;
use crate::protocol::{Snapshot, SubscribeParams};

impl Supervisor {
    pub(crate) fn subscribe(&mut self, params: SubscribeParams) -> Result<Subscription> {
        if let Some(name) = &params.worker {
            self.find(name)?;
        }
        let wanted = |name: &WorkerName| params.worker.as_deref().is_none_or(|w| w == name.as_str());
        let workers = views::workers(self.slots.iter().filter(|(n, _)| wanted(n)).map(|(_, s)| s));
        let seq = self.notices.seq();
        let NewSubscriber { notices, replayed, missing, foreign } =
            self.notices.subscribe(params.worker, params.since);
        let gap = !missing.is_empty();
        Ok((Snapshot { seq, gap, workers, foreign, replayed, missing }, notices))
    }
}
