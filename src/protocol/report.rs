//! What a loop came to: the calls behind `loop`, `report`, `why`, `ralph diff`, `ralph restore` and `ralph approve`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swarm_state::budget::Budgets;
use swarm_state::ends::LoopEnd;
use swarm_state::gates::{CheckResult, Gates};
use swarm_state::ignored::IgnoredFiles;
use swarm_state::ledger::Iteration;
use swarm_state::model::{LoopStatus, Status, Worktree};

/// What `ralph.report` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportParams {
    /// The worker.
    pub name: String,
    /// The first iteration that is wanted; an answer holds as many as fit a line.
    #[serde(default)]
    pub from: u32,
}

/// A loop, what it used, and what its iterations came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The worker.
    pub name: String,
    /// What was to be done: its first line.
    pub task: String,
    /// The file it stands in.
    pub prompt_file: PathBuf,
    /// The loop's status.
    pub status: LoopStatus,
    /// The worker's status.
    pub worker_status: Status,
    /// Why it is so, where there is something to say.
    pub reason: Option<String>,
    /// The same as data; absent where there is nothing to say, or a later daemon's cause is unknown here.
    #[serde(
        default,
        deserialize_with = "swarm_state::cause::known",
        skip_serializing_if = "Option::is_none"
    )]
    pub cause: Option<swarm_state::cause::Cause>,
    /// What kind of outage the loop waits for; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<swarm_state::outage::OutageKind>,
    /// How it ended; null while it has not.
    pub end: Option<LoopEnd>,
    /// When it was spawned: RFC 3339 with offset.
    pub started: String,
    /// The current or last iteration; 0 before the first.
    pub current_iteration: u32,
    /// The limit.
    pub max_iterations: u32,
    /// Failures in a row.
    pub consecutive_failures: u32,
    /// What has to hold.
    pub gates: Gates,
    /// One more gate.
    pub done_pattern: Option<String>,
    /// The limits beside the iterations.
    pub budgets: Budgets,
    /// Seconds used, while the machine was awake and the loop not paused.
    pub seconds: f64,
    /// Cost so far, US dollars, as far as it was told.
    pub cost: f64,
    /// Tokens so far, as far as they were told.
    pub tokens: u64,
    /// The checks before the first iteration.
    pub baseline: Vec<CheckResult>,
    /// The iterations that have ended, from the one asked for.
    pub iterations: Vec<Iteration>,
    /// The first one that did not fit; null when all did.
    pub next: Option<u32>,
    /// Where the agent works.
    pub cwd: PathBuf,
    /// Its worktree.
    pub worktree: Option<Worktree>,
    /// The ignored files in it, which would go with it; absent where git could not list them in time.
    #[serde(default, skip_serializing_if = "IgnoredFiles::is_empty")]
    pub ignored: IgnoredFiles,
    /// The snapshots stand under this ref, by iteration.
    pub snapshots: String,
    /// What no iteration may change; absent while that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
    /// Those of them that differ from what they were at the start and were not approved, the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unapproved: Vec<String>,
    /// What a person should know of a loop that began so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The files that no iteration of a loop may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub files: Vec<String>,
}

/// What `ralph.diff` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffParams {
    /// The worker.
    pub name: String,
    /// What this iteration changed; absent: everything since the start.
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
    /// It was cut at its end to fit a line.
    pub truncated: bool,
}

/// What `ralph.restore` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreParams {
    /// The worker.
    pub name: String,
    /// Whose tree; 0 is the one before the first iteration.
    pub iteration: u32,
    /// The new worktree's directory, absolute; beside the repository when absent.
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
    /// The ref that it holds.
    pub reference: String,
}

/// The answer to `ralph.approve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approved {
    /// The files that had changed and are now as they should be, relative to the worker's directory.
    pub files: Vec<String>,
}
