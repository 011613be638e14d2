//! The result of a loop: the calls behind `loop`, `report`, `why`, `ralph diff`, `ralph restore` and `ralph approve`.
//! The morning view: the calls behind `report` without a name.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swarm_state::budget::Budgets;
use swarm_state::cause::{self, Cause};
use swarm_state::ends::LoopEnd;
use swarm_state::gates::{CheckResult, Gates};
use swarm_state::ignored::IgnoredFiles;
use swarm_state::ledger::Iteration;
use swarm_state::model::{LoopStatus, Status, Worktree, is_default};
use swarm_state::morning::{IterationPoint, PeriodWork, UnmergedWork};
use swarm_state::sandbox::SandboxKind;

/// The parameters of `ralph.report`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportParams {
    /// The worker.
    pub name: String,
    /// The first iteration to return; an answer holds as many as fit a line.
    #[serde(default)]
    pub from: u32,
}

/// A loop, what it used, and the results of its iterations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The worker.
    pub name: String,
    /// The task: its first line.
    pub task: String,
    /// The task's file.
    pub prompt_file: PathBuf,
    /// The loop's status.
    pub status: LoopStatus,
    /// The worker's status.
    pub worker_status: Status,
    /// The reason for the status, if there is one.
    pub reason: Option<String>,
    /// The same as data; absent without a reason, or if this version does not know the cause.
    #[serde(default, deserialize_with = "cause::known", skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The outage that the loop waits for; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<swarm_state::outage::OutageKind>,
    /// The cause of the pause; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<swarm_state::notice::PauseBy>,
    /// The number of outages so far. Absent for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub outages: u32,
    /// Seconds that the loop has lost to them. Absent for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub outage_seconds: f64,
    /// How it ended; null while it has not.
    pub end: Option<LoopEnd>,
    /// When it was spawned: RFC 3339 with offset.
    pub started: String,
    /// The current or last iteration; 0 before the first.
    pub current_iteration: u32,
    /// The maximum number of iterations.
    pub max_iterations: u32,
    /// Failures in a row.
    pub consecutive_failures: u32,
    /// The gates.
    pub gates: Gates,
    /// Another gate.
    pub done_pattern: Option<String>,
    /// The limits other than the iterations.
    pub budgets: Budgets,
    /// Seconds used, while the machine was awake and the loop not paused.
    pub seconds: f64,
    /// Cost so far in US dollars, as far as it was reported.
    pub cost: f64,
    /// Tokens so far, as far as they were reported.
    pub tokens: u64,
    /// The checks before the first iteration.
    pub baseline: Vec<CheckResult>,
    /// The iterations that have ended, starting with the requested one.
    pub iterations: Vec<Iteration>,
    /// The first iteration that did not fit; null if all did.
    pub next: Option<u32>,
    /// The agent's directory.
    pub cwd: PathBuf,
    /// Its worktree.
    pub worktree: Option<Worktree>,
    /// The sandbox that it runs in; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxKind>,
    /// The worktree's ignored files, which would be deleted with it; absent if git could not list them in time.
    #[serde(default, skip_serializing_if = "IgnoredFiles::is_empty")]
    pub ignored: IgnoredFiles,
    /// The ref prefix of the snapshots, one for each iteration.
    pub snapshots: String,
    /// The watched files; absent if they are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
    /// Watched files that changed since the start without approval; the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unapproved: Vec<String>,
    /// The snapshot that a person approved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// Warnings about a loop that started this way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The limits to raise, as `KEY=VALUE`; absent if the loop cannot continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<Vec<String>>,
}

/// The files that no iteration of a loop may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Their number.
    pub count: u64,
    /// The first of them.
    pub files: Vec<String>,
}

/// The parameters of `ralph.diff`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffParams {
    /// The worker.
    pub name: String,
    /// The changes of this iteration; absent: all changes since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
}

/// The answer to `ralph.diff`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffView {
    /// The ref before.
    pub from: String,
    /// The ref after.
    pub to: String,
    /// The diff.
    pub text: String,
    /// The diff was cut at its end to fit a line.
    pub truncated: bool,
}

/// The parameters of `ralph.restore`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreParams {
    /// The worker.
    pub name: String,
    /// The iteration whose tree to check out; 0 is the tree before the first.
    pub iteration: u32,
    /// The new worktree's directory, absolute; next to the repository if absent.
    pub dir: Option<PathBuf>,
    /// Its new branch; `swarm/NAME-ITERATION` when absent.
    pub branch: Option<String>,
}

/// The answer to `ralph.restore`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The new worktree.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The ref that was checked out.
    pub reference: String,
}

/// The answer to `ralph.approve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approved {
    /// The files that had changed and are now accepted, relative to the worker's directory.
    pub files: Vec<String>,
    /// Why the last iteration's tests were refused, as phrases. They are now accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
}

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
