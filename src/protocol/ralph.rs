//! Loops: the calls `ralph.pause`, `ralph.resume`, `ralph.status`, `ralph.set` and `ralph.clean`. Holds of a person:
//! `hold` and `release`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swarm_state::cause::{self, Cause};
use swarm_state::model::{LoopStatus, Status, is_default};
use swarm_state::notice::PauseBy;

use super::workers::{ClearedSnapshots, TaskListView};

/// The answer to `hold` and `release`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldChanged {
    /// False if the worker was so before.
    pub changed: bool,
    /// Messages for the user, on stderr.
    pub warnings: Vec<String>,
}

/// The answer to `ralph.pause` and `ralph.resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// False if the loop was in that state already (a warning, exit 0).
    pub changed: bool,
    /// The loop's previous status.
    pub before: LoopStatus,
    /// Messages for the user, on stderr.
    pub warnings: Vec<String>,
}

/// The parameters of `ralph.resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeParams {
    /// The worker.
    pub name: String,
    /// Environment variables for its agent, from the next run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// A loop's state, as `ralph status` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RalphView {
    /// The worker.
    pub worker_name: String,
    /// The loop's status.
    pub status: LoopStatus,
    /// The worker's status.
    pub worker_status: Status,
    /// The reason for the status, if there is one.
    pub reason: Option<String>,
    /// The same as data; absent without a reason, or if this version does not know the cause.
    #[serde(default, deserialize_with = "cause::known", skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The prompt file.
    pub prompt_file: PathBuf,
    /// The maximum number of iterations.
    pub max_iterations: u32,
    /// The current (or last) iteration; 0 before the first.
    pub current_iteration: u32,
    /// Local time without offset, `2024-01-15T10:30:00.000000`.
    pub started: String,
    /// The same; null before the first iteration.
    pub last_iteration_started: Option<String>,
    /// Failures in a row.
    pub consecutive_failures: u32,
    /// All failures.
    pub total_failures: u32,
    /// The done pattern.
    pub done_pattern: Option<String>,
    /// Seconds.
    pub inactivity_timeout: u64,
    /// Seconds; 0: no limit. Absent in an older daemon's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_timeout: Option<u64>,
    /// The cause of the pause.
    pub paused_by: Option<PauseBy>,
    /// The path of `state.json`.
    pub state_file: PathBuf,
    /// The limits to raise, as `KEY=VALUE`; absent if the loop cannot continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<Vec<String>>,
    /// The task list; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskListView>,
}

/// The parameters of `ralph.set`: the settings that may change while a loop runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RalphSetParams {
    /// The worker.
    pub name: String,
    /// `max_iterations`, `max_time`, `max_cost`, `max_tokens`, `max_failures`, `no_progress`, `max_context`,
    /// `inactivity_timeout`, `question_timeout`, `done_pattern` or `prompt_file`.
    pub key: String,
    /// The value as text. Durations are seconds and `max_cost` is millionths of a US dollar. The words `none`
    /// and `null` remove the done pattern or a limit that is optional.
    pub value: String,
}

/// The parameters of `ralph.clean`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RalphCleanParams {
    /// One loop, or all finished loops.
    pub name: Option<String>,
    /// Delete snapshots that are in no branch.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discard: bool,
}

/// The answer to `ralph.clean`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Names whose loop state was removed (`agent`, `agent.1`, …).
    pub removed: Vec<String>,
    /// Live loops, which were not removed.
    pub kept: Vec<String>,
    /// The snapshots of the loops whose state was removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<ClearedSnapshots>,
    /// Messages for the user, on stderr.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
