//! `morning.looked`: records that a person was shown the morning view: when, and which finished workers by name.
//!
//! The next view starts there, for all clients. The clients decide who is a person. A request of any worker's agent
//! has no effect.

use chrono::{DateTime, FixedOffset};

use crate::daemon::caller::workers_of;
use crate::daemon::clock::local_now;
use crate::daemon::looked;
use crate::daemon::supervisor::Supervisor;
use crate::error::Result;
use crate::protocol::{Empty, LookedParams};

use super::morning::time;

impl Supervisor {
    /// The time of the last view. A time in the future is none: the clock was wrong then.
    pub(crate) fn last_look(&self) -> Option<DateTime<FixedOffset>> {
        self.looked.filter(|looked| *looked <= local_now())
    }

    pub(crate) fn morning_looked(&mut self, params: &LookedParams, peer: Option<i32>) -> Result<Empty> {
        let until = params.until.as_deref().map(time).transpose()?;
        if !workers_of(peer, &self.store).is_empty() {
            return Ok(Empty {});
        }
        for name in &params.names {
            // The worker may have been deleted meanwhile.
            drop(self.seen(name, peer));
        }
        // Of two views that overlap, the later one counts.
        let until = until.map(|until| until.min(local_now()));
        if let Some(until) = until.filter(|until| self.last_look().is_none_or(|looked| looked < *until)) {
            self.looked = Some(until);
            looked::write(self.store.paths(), until);
        }
        Ok(Empty {})
    }
}
