//! `ralph.approve`: accept changes to files that decide whether a loop is complete.

use crate::daemon::caller::refuse_own;
use crate::daemon::reply::Later;
use crate::daemon::slot::loop_run_of;
use crate::daemon::supervisor::Supervisor;
use crate::protocol::Approved;

impl Supervisor {
    pub(crate) fn ralph_approve(&mut self, name: &str, peer: Option<i32>) -> Later<Approved> {
        let (_, slot) = self.find_loop(name)?;
        refuse_own(slot, peer, "approve its own changes")?;
        let (loop_run, last) = (loop_run_of(slot), slot.engine.ralph().map_or(0, |ralph| ralph.iteration));
        Ok(Box::pin(async move {
            let (files, tests) = loop_run.approve(last).await?;
            Ok(Approved { files, tests })
        }))
    }
}
