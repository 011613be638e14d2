//! `ralph.approve`: accept changes to files that decide whether a loop is complete.

use crate::daemon::caller::refuse_own;
use crate::daemon::reply::Reply;
use crate::daemon::slot::course_of;
use crate::daemon::supervisor::Supervisor;
use crate::protocol::Approved;

impl Supervisor {
    /// Answers `ralph.approve`.
    pub(crate) fn ralph_approve(&mut self, name: &str, peer: Option<i32>, reply: Reply) {
        let found = self.find_loop(name).and_then(|(_, slot)| {
            refuse_own(slot, peer, "approve its own changes")?;
            Ok((course_of(slot), slot.engine.ralph().map_or(0, |ralph| ralph.iteration)))
        });
        match found {
            Err(error) => reply.refuse(error),
            Ok((loop_run, last)) => {
                tokio::spawn(async move {
                    let approved = loop_run.approve(last).await;
                    reply.answer(approved.map(|(files, tests)| Approved { files, tests }));
                });
            }
        }
    }
}
