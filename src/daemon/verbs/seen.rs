//! `seen`: records that a person has looked at a finished worker, so that all clients show the same workers as unseen.
//!
//! The clients decide who is a person. A request of the worker's own agent counts as none.

use crate::daemon::caller::refuse_own;
use crate::daemon::supervisor::Supervisor;
use crate::error::Result;
use crate::protocol::Empty;

impl Supervisor {
    pub(crate) fn seen(&mut self, name: &str, peer: Option<i32>) -> Result<Empty> {
        let (name, slot) = self.find(name)?;
        if slot.engine.is_stopped() && !slot.is_seen() && refuse_own(slot, peer, "see itself").is_ok() {
            slot.seen = Some(slot.engine.run());
            self.save_if_possible(&name);
        }
        Ok(Empty {})
    }
}
