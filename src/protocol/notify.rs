//! Notifications for a terminal: `notify.next`.

use serde::{Deserialize, Serialize};
use swarm_state::notify::Notification;

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
