//! `status`: one worker.

use crate::daemon::supervisor::Supervisor;
use crate::daemon::views;
use crate::error::Result;
use crate::protocol::WorkerView;

impl Supervisor {
    pub(crate) fn status(&mut self, name: &str) -> Result<WorkerView> {
        self.find(name).map(|(_, slot)| views::whole(slot))
    }
}
