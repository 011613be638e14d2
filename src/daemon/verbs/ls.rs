//! `ls`: all workers, and the problems that the daemon has found.

use crate::daemon::supervisor::Supervisor;
use crate::daemon::views;
use crate::protocol::Listing;

impl Supervisor {
    pub(crate) fn listing(&self) -> Listing {
        Listing {
            workers: views::workers(self.slots.values()),
            problems: self
                .problems
                .iter()
                .map(|p| p.message.clone())
                .chain(views::unsaved(self.slots.values()))
                .collect(),
        }
    }
}
