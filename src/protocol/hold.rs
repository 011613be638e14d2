//! A person's hold on a worker: `hold` and `release`.

use serde::{Deserialize, Serialize};
use swarm_state::notice::HoldBy;

/// The answer to `hold` and `release`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldChanged {
    /// False if the worker was so before.
    pub changed: bool,
    /// Messages for the user, on stderr.
    pub warnings: Vec<String>,
}

/// A person's hold on a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldView {
    /// How.
    pub by: HoldBy,
    /// Since when: RFC 3339 with offset.
    pub since: String,
}
