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
            Ok(course_of(slot))
        });
        match found {
            Err(error) => reply.refuse(error),
            Ok(loop_run) => {
                tokio::spawn(async move {
                    reply.answer(loop_run.approve().await.map(|files| Approved { files }));
                });
            }
        }
    }
}
