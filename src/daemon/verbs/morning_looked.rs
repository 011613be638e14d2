//! `morning.looked`: records that a person was shown the morning view: when, and which finished workers by name.
//!
//! The next view starts there, for all clients. The clients decide who is a person. A request of any worker's agent
//! has no effect. The time is in a file, without which the next view covers everything.

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

use crate::daemon::caller::workers_of;
use crate::daemon::clock::local_now;
use crate::daemon::supervisor::Supervisor;
use crate::error::Result;
use crate::paths::Paths;
use crate::protocol::{Empty, LookedParams};
use crate::store::{read_bounded, write_unsynced};

use super::morning::time;

const LOOKED_FORMAT: u32 = 1;

const MAX_LOOKED_BYTES: u64 = 1 << 12;

#[derive(Serialize, Deserialize)]
struct LookedFile {
    format: u32,
    until: DateTime<FixedOffset>,
}

impl Supervisor {
    /// The time of the last view. A time in the future does not count: the clock was wrong then.
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
            write(self.store.paths(), until);
        }
        Ok(Empty {})
    }
}

/// Reads the time; `None` without a file that this version can read.
pub(crate) fn read(paths: &Paths) -> Option<DateTime<FixedOffset>> {
    let bytes = read_bounded(&paths.looked(), MAX_LOOKED_BYTES).ok()?;
    let file: LookedFile = serde_json::from_slice(&bytes).ok()?;
    (file.format <= LOOKED_FORMAT).then_some(file.until)
}

/// Writes the time. An error is logged.
fn write(paths: &Paths, until: DateTime<FixedOffset>) {
    let file = LookedFile { format: LOOKED_FORMAT, until };
    let bytes = serde_json::to_vec(&file).map_err(Into::into);
    if let Err(error) = bytes.and_then(|bytes| write_unsynced(&paths.looked(), &bytes)) {
        tracing::warn!(%error, "the time of the morning view cannot be written");
    }
}
