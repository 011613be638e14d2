//! Workers and the requests about them: `ls`, `status`, `attach`, `send`, `kill`, `clean`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarm_state::answer::{AgentRequest, RequestAnswer};
use swarm_state::caps::{Caps, CapsInForce};
use swarm_state::cause::{Cause, known};
use swarm_state::host::HostName;
use swarm_state::ignored::IgnoredFiles;
use swarm_state::model::{LoopStatus, RestartWhen, Status, WorkerName, Worktree, is_default};
use swarm_state::network::AllowedHost;
use swarm_state::notice::{HoldBy, PauseBy};
use swarm_state::sandbox::{SandboxKind, SandboxNet};
use swarm_state::tasks::IterationMode;

use crate::error::Error;

/// The answer to `ls`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// All workers, by name.
    pub workers: Vec<WorkerView>,
    /// Problems on the disk (records set aside, or written by a newer swarm), one sentence each.
    pub problems: Vec<String>,
}

/// One worker, as `status --format json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: Status,
    /// The reason for the status, if there is one.
    pub reason: Option<String>,
    /// The same as data; absent without a reason, or if this version does not know the cause.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The last run's exit status, 128 + N for a signal; null while it runs or when unknown.
    pub exit_code: Option<i32>,
    /// The signal that ended the last run.
    pub signal: Option<i32>,
    /// How many times swarm has restarted the command.
    pub restarts: u64,
    /// The agent's process id while it lives.
    pub pid: Option<i32>,
    /// Its argv.
    pub cmd: Vec<String>,
    /// The directory it runs in.
    pub cwd: PathBuf,
    /// Labels.
    pub tags: Vec<String>,
    /// Names that `--env` set; the values are masked.
    pub env: BTreeMap<String, String>,
    /// When it was spawned: RFC 3339 with offset.
    pub started: String,
    /// Its tmux window.
    pub tmux: TmuxView,
    /// Its worktree.
    pub worktree: Option<Worktree>,
    /// The requests of its agent that `answer` can answer, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<AgentRequestView>,
    /// The person's hold on it; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldView>,
    /// The last lines of its screen, while it waits for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub screen: Vec<String>,
    /// Its restart policy, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartView>,
    /// `{"ralph":true,"ralph_iteration":5,…}` for a loop, `{}` otherwise.
    pub metadata: Value,
    /// The agent shows its input box; absent for no.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ready: bool,
    /// The agent's turn has ended, according to its screen; absent for no.
    #[serde(default, skip_serializing_if = "is_default")]
    pub idle: bool,
    /// How full the agent's context is, in percent, as its hook last reported it; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u8>,
    /// Why swarm ended the last run; absent if the agent exited by itself or a run is alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The outage that the loop waits for; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<swarm_state::outage::OutageKind>,
    /// The limits to raise before a loop that ended at a limit can continue, as `ralph.set` accepts them, `KEY=VALUE`.
    /// Absent if it cannot continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<Vec<String>>,
    /// The worker that coordinates this one; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<WorkerName>,
    /// The sandbox that it runs in; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxKind>,
    /// The network of the sandbox; absent without one, and from an older daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<SandboxNet>,
    /// The hosts that the sandbox may reach with [`SandboxNet::Allow`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<AllowedHost>,
    /// The task list that the loop works on; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskListView>,
    /// Its resource caps; absent without any.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caps: Caps,
    /// The mechanism of each cap that is in force; absent while no run is alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps_in_force: Option<CapsInForce>,
    /// A person has looked at the finished worker; absent for no.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seen: bool,
    /// Since when it has its status: RFC 3339 with offset; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The host that the client got it from; absent for this machine. Not on the wire.
    #[serde(skip)]
    pub host: Option<WorkerHost>,
}

/// A person's hold on a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldView {
    /// How.
    pub by: HoldBy,
    /// Since when: RFC 3339 with offset.
    pub since: String,
}

/// The remote host of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerHost {
    /// Its name in the client's settings.
    pub name: HostName,
    /// For how long the host has not answered, as text; `None` if it answers. The rest of the view is older then.
    pub silent_for: Option<String>,
}

/// The task list of a loop, and its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskListView {
    /// Its directory, relative to the worker's.
    pub dir: String,
    /// The kind of work of the current (or last) iteration; null before the first.
    pub mode: Option<IterationMode>,
    /// The story of that iteration.
    pub story: Option<String>,
    /// The number of stories that need no further iteration; null before the first iteration.
    pub done: Option<u64>,
    /// The number of all stories.
    pub total: Option<u64>,
}

/// The fields of a worker's metadata. Fields that this version does not know are ignored.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WorkerMetadata<'a> {
    /// The worker is a loop.
    #[serde(rename = "ralph")]
    pub is_loop: bool,
    /// The loop's current iteration.
    #[serde(rename = "ralph_iteration")]
    pub iteration: Option<u64>,
    /// The loop's maximum number of iterations.
    pub max_iterations: Option<u64>,
    /// When the current iteration started: RFC 3339 with offset.
    pub iteration_started: Option<&'a str>,
    /// The loop's cost so far, in US dollars; `None` while no iteration reported a cost.
    pub cost_usd: Option<f64>,
    /// The loop's status; `None` also for one that only a later swarm has.
    #[serde(deserialize_with = "known")]
    pub status: Option<LoopStatus>,
    /// The origin of the loop's last pause; `None` also for one that only a later swarm has.
    #[serde(deserialize_with = "known")]
    pub paused_by: Option<PauseBy>,
    /// Failures in a row.
    pub consecutive_failures: Option<u64>,
    /// All failures.
    pub total_failures: Option<u64>,
    /// Why the loop ended or is paused, one word.
    pub reason: Option<&'a str>,
    /// An earlier swarm made it.
    pub earlier_swarm: bool,
}

impl WorkerView {
    /// The fields of [`Self::metadata`]; none if it is not an object as this version writes it.
    pub fn metadata(&self) -> WorkerMetadata<'_> {
        WorkerMetadata::deserialize(&self.metadata).unwrap_or_default()
    }
}

/// A restart policy and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartView {
    /// After which exits the command is restarted.
    pub when: RestartWhen,
    /// The maximum number of restarts in a row.
    pub max_restarts: u32,
    /// Failures in a row. Exit status 0, or a run of ten minutes, resets it.
    pub failures: u32,
    /// When the next run starts: RFC 3339 with offset; null if a run is alive or none will follow.
    pub next: Option<String>,
}

/// The tmux window of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TmuxView {
    /// The server's socket, absolute.
    pub socket: PathBuf,
    /// The session's name.
    pub session: String,
    /// The window's name.
    pub window: String,
    /// The pane's id, while there is one.
    pub pane: Option<String>,
}

/// The parameters of `send`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendParams {
    /// The worker.
    pub name: String,
    /// The text, literal.
    pub text: String,
    /// Press Enter afterwards and check that the agent accepted it.
    pub enter: bool,
    /// Type it key by key instead of pasting it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keys: bool,
    /// Do not answer a dialog with it, because it goes to several workers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_answer: bool,
}

/// The tmux window and pane to attach to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachView {
    /// The server's socket, absolute.
    pub socket: PathBuf,
    /// The session's name.
    pub session: String,
    /// The window's id, `@3`.
    pub window: String,
    /// The pane's id, `%7`.
    pub pane: String,
    /// Columns and rows to restore after the last client detaches.
    pub size: (u16, u16),
}

/// The parameters of `kill`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillParams {
    /// The worker.
    pub name: String,
    /// Also remove its worktree, if nothing in it would be lost.
    pub rm_worktree: bool,
    /// Remove it even if it holds uncommitted work.
    pub force_dirty: bool,
    /// Remove the worktree even if it holds ignored files outside caches.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discard_ignored: bool,
}

/// The answer to `kill`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killed {
    /// The worker had ended already.
    pub already: bool,
    /// Processes that had to be killed with SIGKILL, as `PID NAME`.
    pub forced: Vec<String>,
    /// The worktree's path, if it was removed.
    pub worktree_removed: Option<PathBuf>,
    /// Messages for the user, on stderr.
    pub warnings: Vec<String>,
    /// The ignored files that were deleted with the worktree.
    #[serde(default, skip_serializing_if = "IgnoredFiles::is_empty")]
    pub ignored_removed: IgnoredFiles,
    /// Why the worktree was not removed although that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_error: Option<Error>,
}

/// The parameters of `clean`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanParams {
    /// The worker.
    pub name: String,
    /// Keep its worktree and its branch.
    pub keep_worktree: bool,
    /// Remove the worktree even if it holds uncommitted work.
    pub force_dirty: bool,
    /// Remove the worktree even if it holds ignored files outside caches.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discard_ignored: bool,
    /// Delete snapshots of its loops that are in no branch.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discard: bool,
}

/// The snapshots of one loop whose files are deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearedSnapshots {
    /// The repository.
    pub repo: PathBuf,
    /// The refs that are below it: `refs/swarm/NAME/LOOP`.
    pub reference: String,
    /// Their number.
    pub count: usize,
    /// They were kept, since no branch of the user's has the last one.
    pub kept: bool,
}

/// The answer to `clean`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// The worktree's path, if it was removed.
    pub worktree_removed: Option<PathBuf>,
    /// The worktree's path, if it was kept.
    pub worktree_kept: Option<PathBuf>,
    /// The ignored files that were deleted with the worktree.
    #[serde(default, skip_serializing_if = "IgnoredFiles::is_empty")]
    pub ignored_removed: IgnoredFiles,
    /// The snapshots of its loops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<ClearedSnapshots>,
    /// Messages for the user, on stderr.
    pub warnings: Vec<String>,
}

/// The answer to `send`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Messages for the user, on stderr.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A request of an agent that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRequestView {
    /// The request.
    #[serde(flatten)]
    pub request: AgentRequest,
    /// Since when it waits: RFC 3339 with offset.
    pub since: String,
}

/// The parameters of `answer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerParams {
    /// The worker.
    pub name: String,
    /// The id of the request; without one, the oldest open request is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The answer.
    pub answer: RequestAnswer,
}

/// The answer to `answer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The request that was answered.
    pub request: AgentRequest,
}

/// The parameters of `allow`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowParams {
    /// The worker.
    pub name: String,
    /// The hosts to add to its list.
    pub hosts: Vec<AllowedHost>,
}
