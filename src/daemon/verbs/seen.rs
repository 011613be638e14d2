//! `seen`: records that a person has looked at a finished worker, so that all clients show the same workers as unseen.
//!
//! The clients decide who is a person. A request from inside any worker has no effect: one agent must not hide the
//! failure of another one.

use crate::daemon::caller::{refuse_own, workers_of};
use crate::daemon::supervisor::Supervisor;
use crate::error::Result;
use crate::protocol::Empty;

impl Supervisor {
    pub(crate) fn seen(&mut self, name: &str, peer: Option<i32>) -> Result<Empty> {
        let is_from_worker = !workers_of(peer, &self.store).is_empty();
        let (name, slot) = self.find(name)?;
        if is_from_worker {
            return Ok(Empty {});
        }
        if slot.engine.is_stopped() && !slot.is_seen() && refuse_own(slot, peer, "see itself").is_ok() {
            slot.seen = Some(slot.engine.run());
            self.save_if_possible(&name);
        }
        Ok(Empty {})
    }
}
