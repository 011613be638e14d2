//! The notice stream: `subscribe`, its first answer, and the notices.
//!
//! Part of [the protocol](super), which says what may change.

use serde::{Deserialize, Serialize};
use swarm_state::model::{Status, is_default};
use swarm_state::notice::Entry;

use super::workers::WorkerView;

/// The parameters of `subscribe`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeParams {
    /// Only this worker's notices.
    pub worker: Option<String>,
    /// Also send the stored notices after this number; absent: only new notices.
    pub since: Option<u64>,
}

/// The answer to `subscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The number of the last notice; it also grows over restarts of the daemon.
    pub seq: u64,
    /// Some notices after `since` are no longer stored.
    pub gap: bool,
    /// The workers, or only the requested one.
    pub workers: Vec<WorkerView>,
    /// `since` is from another daemon, whose notices are not stored: what happened between that number and this
    /// daemon's start is unknown. Absent for no.
    #[serde(default, skip_serializing_if = "is_default")]
    pub foreign: bool,
    /// How many stored notices follow this answer. Absent for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replayed: usize,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Its number.
    pub seq: u64,
    /// The worker.
    pub worker: String,
    /// When: RFC 3339 with offset.
    pub at: String,
    /// The worker's status after it.
    pub status: Status,
    /// The event's kind and data; they are serialized next to the other fields.
    #[serde(flatten)]
    pub entry: Entry,
}
