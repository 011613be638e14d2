//! The notice stream: `subscribe`, the state it begins with, and what follows.
//!
//! Part of [the protocol](super), which says what may change.

use serde::{Deserialize, Serialize};
use swarm_state::model::Status;
use swarm_state::notice::Entry;

use super::WorkerView;
use super::is_no;

/// What `subscribe` takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeParams {
    /// Only this worker's notices.
    pub worker: Option<String>,
    /// Also what came after this number, as far as it is still kept; absent: only what is to come.
    pub since: Option<u64>,
}

/// The answer to `subscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The last notice so far; it grows over restarts of the daemon too.
    pub seq: u64,
    /// Some notices after `since` are no longer kept.
    pub gap: bool,
    /// The workers (only the asked one).
    pub workers: Vec<WorkerView>,
    /// `since` is a number of another daemon, whose notices are not kept: what happened between that number
    /// and the start of this daemon is not known. Absent for no.
    #[serde(default, skip_serializing_if = "is_no")]
    pub foreign: bool,
    /// How many notices follow at once that are older than this answer. Absent for none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub replayed: usize,
}

/// Whether a count that is left out when it is 0 can be left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Its number.
    pub seq: u64,
    /// The worker.
    pub worker: String,
    /// When: RFC 3339 with offset.
    pub at: String,
    /// How the worker is after it.
    pub status: Status,
    /// What; its `kind` and its fields stand beside the others.
    #[serde(flatten)]
    pub entry: Entry,
}
