//! The notice stream: `subscribe`, its first answer, and the notices. Notifications for a terminal: `notify.next`.

use serde::{Deserialize, Serialize};
use swarm_state::model::{Status, is_default};
use swarm_state::notice::Entry;
use swarm_state::notify::Notification;

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
    /// Some notices after `since` are not stored; `missing` has their places.
    pub gap: bool,
    /// The workers, or only the requested one.
    pub workers: Vec<WorkerView>,
    /// `since` is from another event log: this stream has not reached it. All stored notices follow. Absent for no.
    #[serde(default, skip_serializing_if = "is_default")]
    pub foreign: bool,
    /// How many stored notices follow this answer. Absent for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replayed: usize,
    /// The places after `since` where notices are missing, in order. Absent for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingNotices>,
}

/// A place in the stream where notices are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingNotices {
    /// The number before the first notice that follows them.
    pub after: u64,
    /// Why they are missing.
    pub reason: MissingReason,
}

/// Why notices are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingReason {
    /// Only the last notices are stored.
    Dropped,
    /// They could not be written to the event log, most likely because the disk was full.
    Unwritten,
    /// A line of the event log cannot be read.
    Damaged,
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

/// The parameters of `notify.next`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyNextParams {
    /// The number of the last notification that the client has; absent: answer at once with that number.
    pub after: Option<u64>,
}

/// The answer to `notify.next`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextNotification {
    /// The number of the notification; it also grows over restarts of the daemon.
    pub seq: u64,
    /// The notification; null in the answer to a request without a number.
    pub message: Option<Notification>,
}
