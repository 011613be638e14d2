//! The morning view: the calls behind `report` without a name.

use serde::{Deserialize, Serialize};
use swarm_state::morning::{IterationPoint, PeriodWork, UnmergedWork};

/// The parameters of `morning`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MorningParams {
    /// The start of the period: RFC 3339 with offset. Absent: when a person last looked, else everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Return the workers whose names follow this one; an answer holds a limited number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The answer to `morning`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MorningView {
    /// The start of the period: RFC 3339 with offset; null if it covers everything.
    pub since: Option<String>,
    /// Its end, the daemon's time.
    pub until: String,
    /// The workers, by name.
    pub workers: Vec<WorkerWork>,
    /// Workers that were deleted in the period and have no successor of the same name; absent for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// The last name of this answer, if more follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The work of one worker in the period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerWork {
    /// The worker.
    pub name: String,
    /// The iterations that ended in the period, as sums.
    pub work: PeriodWork,
    /// The last of them, in order; absent for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<IterationPoint>,
    /// The unmerged work of the worktree of a finished worker; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmerged: Option<UnmergedWork>,
}

/// The parameters of `morning.looked`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedParams {
    /// The end of the period that a person was shown: RFC 3339 with offset. Absent: the start of the next period stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The finished workers that the person was shown by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}
