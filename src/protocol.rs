//! The wire: JSON, one object a line, over a Unix socket (DESIGN section 7, `swarm-protocol(7)`).
//!
//! Client and daemon share these types and nothing else. Deliberately absent: anything of the disk
//! (`store` and `swarm_state::format` are another contract) and any path, pid or socket in the meaning of
//! a call, so that a daemon behind ssh can serve the same lines.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarm_state::budget::Budgets;
use swarm_state::gates::Gates;
use swarm_state::model::{
    LoopStatus, Outcome, Prompt, PromptVia, RestartSpec, RestartWhen, Status, Worktree, WorktreeSpec,
};
use swarm_state::notice::{Entry, PauseBy};
use swarm_state::profiles::Profile;

use crate::error::Error;

mod report;

pub use report::{Approved, DiffParams, DiffView, Report, ReportParams, RestoreParams, Restored};

/// The version of the protocol; bumped only for a breaking change.
pub const VERSION: u32 = 1;

/// The longest line either side accepts, bytes, line end included.
pub const MAX_LINE: usize = 1 << 20;

/// The client's first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    /// The protocol's version.
    pub swarm: u32,
    /// The client's release.
    pub client: String,
}

/// The daemon's first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonHello {
    /// The protocol's version.
    pub swarm: u32,
    /// The daemon's release.
    pub daemon: String,
    /// The daemon's process id.
    pub pid: u32,
}

/// A call: `{"id":1,"method":"ralph.pause","params":{"name":"agent"}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the client, repeated in the answer.
    pub id: u64,
    /// The method's name.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
}

/// What the daemon sends: an answer, or a notice of a subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The request it belongs to.
    pub id: u64,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    /// The refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub err: Option<Error>,
    /// A notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<Notice>,
}

/// Every method. Names and fields are append-only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params")]
pub enum Call {
    /// Makes a worker; answers [`Spawned`] when its first run is up.
    #[serde(rename = "spawn")]
    Spawn(Box<SpawnParams>),
    /// All workers; answers [`Listing`].
    #[serde(rename = "ls")]
    Ls(Empty),
    /// One worker; answers [`WorkerView`].
    #[serde(rename = "status")]
    Status(Named),
    /// What is on a worker's screen; answers [`Peeked`].
    #[serde(rename = "peek")]
    Peek(PeekParams),
    /// What a worker printed; answers [`Lines`].
    #[serde(rename = "logs")]
    Logs(LogsParams),
    /// Types text into a worker; answers [`Sent`] when it was taken.
    #[serde(rename = "send")]
    Send(SendParams),
    /// Sends Ctrl-C to a worker's terminal; answers [`Empty`].
    #[serde(rename = "interrupt")]
    Interrupt(Named),
    /// Tells an agent that reads its terminal that there is no more; answers [`Empty`].
    #[serde(rename = "eof")]
    Eof(Named),
    /// Where a worker's window is; answers [`AttachView`].
    #[serde(rename = "attach")]
    Attach(Named),
    /// Ends a worker; answers [`Killed`] when nothing of it runs any more.
    #[serde(rename = "kill")]
    Kill(KillParams),
    /// Spawns a worker again as it was spawned, ended first if it lives; answers [`Spawned`].
    #[serde(rename = "respawn")]
    Respawn(RespawnParams),
    /// Removes what is left of a worker that is over; answers [`Forgotten`].
    #[serde(rename = "clean")]
    Clean(CleanParams),
    /// Pauses a loop; answers [`Changed`].
    #[serde(rename = "ralph.pause")]
    RalphPause(Named),
    /// Resumes a loop; answers [`Changed`].
    #[serde(rename = "ralph.resume")]
    RalphResume(Named),
    /// A loop's numbers; answers [`RalphView`].
    #[serde(rename = "ralph.status")]
    RalphStatus(Named),
    /// Changes a loop's settings; answers [`RalphView`].
    #[serde(rename = "ralph.set")]
    RalphSet(RalphSetParams),
    /// The lines of `iterations.log`; answers [`Lines`].
    #[serde(rename = "ralph.logs")]
    RalphLogs(LogsParams),
    /// Removes the state of loops that are over; answers [`Cleaned`].
    #[serde(rename = "ralph.clean")]
    RalphClean(RalphCleanParams),
    /// What a loop came to; answers [`Report`].
    #[serde(rename = "ralph.report")]
    RalphReport(ReportParams),
    /// What an iteration changed; answers [`DiffView`].
    #[serde(rename = "ralph.diff")]
    RalphDiff(DiffParams),
    /// Checks an iteration's tree out into a new worktree; answers [`Restored`].
    #[serde(rename = "ralph.restore")]
    RalphRestore(RestoreParams),
    /// Takes protected files as they are now; answers [`Approved`]. Refused from inside the worker.
    #[serde(rename = "ralph.approve")]
    RalphApprove(Named),
    /// Follows notices; answers [`Snapshot`], then notices until the connection ends.
    #[serde(rename = "subscribe")]
    Subscribe(SubscribeParams),
    /// The daemon itself; answers [`DaemonView`].
    #[serde(rename = "daemon.status")]
    DaemonStatus(Empty),
    /// Pauses the loops and ends the daemon; answers [`DaemonStopped`]. Agents go on.
    #[serde(rename = "daemon.stop")]
    DaemonStop(Empty),
    /// Ends the daemon so that a new one takes over; answers [`Empty`]. Nothing is paused.
    #[serde(rename = "daemon.handover")]
    DaemonHandover(Empty),
}

/// No parameters, or nothing to answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

/// A worker's name. It is text here: the daemon parses it and refuses what is no name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The name.
    pub name: String,
}

/// What `spawn` takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpawnParams {
    /// The wanted name; made from the directory, and made unique, when absent.
    pub name: Option<String>,
    /// The agent's argv.
    pub cmd: Vec<String>,
    /// The directory, absolute.
    pub cwd: PathBuf,
    /// The whole environment of the agent.
    pub env: BTreeMap<String, String>,
    /// Which of it the user set on purpose.
    pub env_names: Vec<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// A worktree of its own.
    pub worktree: Option<WorktreeSpec>,
    /// What the agent is told.
    pub prompt: Prompt,
    /// How; `auto` lets the profile decide.
    pub prompt_via: PromptVia,
    /// What is known of the agent, settings merged in.
    pub profile: Profile,
    /// Answer only when the agent is ready.
    pub ready_wait: bool,
    /// Seconds to wait for that.
    pub ready_timeout: u64,
    /// Ends the worker when it matches.
    pub done_pattern: Option<String>,
    /// End a live worker of the same name first.
    pub replace: bool,
    /// Keep everything the pane prints.
    pub record: bool,
    /// The tmux socket: a path or a `-L` name.
    pub tmux_socket: Option<String>,
    /// Columns and rows of the window.
    pub size: Option<(u16, u16)>,
    /// Makes it a loop.
    pub ralph: Option<RalphParams>,
    /// Starts it again after its end; not for a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartSpec>,
}

/// What makes it a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RalphParams {
    /// The prompt file, absolute.
    pub prompt_file: PathBuf,
    /// At least 1.
    pub max_iterations: u32,
    /// Seconds, at least 1.
    pub inactivity_timeout: u64,
    /// The task in words; the daemon keeps it in a file of its own, and `prompt_file` is of no account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What has to hold before it is complete; absent for nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gates: Gates,
    /// Its limits beside the iterations; absent for the usual ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budgets: Budgets,
}

impl RalphParams {
    /// A loop without gates and without limits beside its iterations.
    pub fn new(prompt_file: PathBuf, max_iterations: u32, inactivity_timeout: u64) -> Self {
        let (gates, budgets) = (Gates::default(), Budgets::default());
        Self { prompt_file, max_iterations, inactivity_timeout, task: None, gates, budgets }
    }
}

/// What `respawn` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RespawnParams {
    /// The worker.
    pub name: String,
    /// Remove its worktree first, if nothing in it would be lost, and make it again.
    pub clean_first: bool,
}

/// The answer to `spawn` and `respawn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spawned {
    /// The new worker.
    pub worker: WorkerView,
    /// The sequence number to subscribe from, so that no notice of this worker is missed.
    pub seq: u64,
    /// Things to tell the user on stderr.
    pub warnings: Vec<String>,
}

/// The answer to `ls`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// All workers, by name.
    pub workers: Vec<WorkerView>,
    /// What is wrong on disk (records set aside, written by a newer swarm), as sentences.
    pub problems: Vec<String>,
}

/// One worker, as `status --format json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its name.
    pub name: String,
    /// How it is.
    pub status: Status,
    /// Why it is so, where there is something to say.
    pub reason: Option<String>,
    /// The last run's exit status, 128 + N for a signal; null while it runs or when unknown.
    pub exit_code: Option<i32>,
    /// The signal that ended the last run.
    pub signal: Option<i32>,
    /// How often swarm has started the command again.
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
    /// Where its window is.
    pub tmux: TmuxView,
    /// Its worktree.
    pub worktree: Option<Worktree>,
    /// The last lines of its screen, while it waits for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub screen: Vec<String>,
    /// Its restart policy, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartView>,
    /// `{"ralph":true,"ralph_iteration":5,…}` for a loop, `{}` otherwise.
    pub metadata: Value,
    /// How it has ended; absent while it is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The agent shows its input box; absent for no.
    #[serde(default, skip_serializing_if = "is_no")]
    pub ready: bool,
    /// The agent's turn is over, as far as its screen tells; absent for no.
    #[serde(default, skip_serializing_if = "is_no")]
    pub idle: bool,
}

/// Whether a mark that is left out when it is not set can be left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_no(mark: &bool) -> bool {
    !mark
}

/// For what is left out where it is as usual.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A restart policy, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartView {
    /// After which ends the command is started again.
    pub when: RestartWhen,
    /// The most restarts in a row.
    pub max_restarts: u32,
    /// Failures in a row; exit status 0 and a run of ten minutes start the count anew.
    pub failures: u32,
    /// When the next run is due: RFC 3339 with offset; null while one lives or when none is to come.
    pub next: Option<String>,
}

/// Where a worker's window is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// What `peek` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeekParams {
    /// The worker.
    pub name: String,
    /// How many lines, from the end of what is there (history included).
    pub lines: u32,
}

/// The answer to `peek`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peeked {
    /// The run they belong to.
    pub run: u64,
    /// The number of the first line, counted from the start of the run (0 on an alternate screen).
    pub first: u64,
    /// The lines, blank ones at the end trimmed, escapes stripped.
    pub lines: Vec<String>,
    /// The agent draws on the alternate screen: lines are a picture, not a stream.
    pub alternate: bool,
    /// False when the run is over and this is what it left.
    pub live: bool,
}

/// What `logs` and `ralph.logs` take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsParams {
    /// The worker.
    pub name: String,
    /// How many lines from the end; all (within the size of an answer) when absent.
    pub lines: Option<u32>,
    /// Runs before the current one too.
    pub history: bool,
    /// Only this iteration of a loop, or this run of a plain worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
}

/// The line above what the run that lives has printed, in an answer to `logs` that has all runs.
pub const RUNNING: &str = "=== running ===";

/// Whether a line of a worker's log stands above what a run printed that is over.
pub fn is_run_header(line: &str) -> bool {
    line.starts_with("=== ") && line.contains(", ended ") && line.contains(", exit ")
}

/// Lines of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The lines, without their ends.
    pub lines: Vec<String>,
    /// Earlier lines were left out because the answer would be too long.
    pub truncated: bool,
    /// How many lines there are in all, over all runs that are kept; a follower asks again and prints what
    /// is beyond what it saw.
    pub total: u64,
    /// The last lines are a picture that changes in place: the agent draws on the alternate screen.
    #[serde(default)]
    pub picture: bool,
}

/// What `send` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendParams {
    /// The worker.
    pub name: String,
    /// The text, literal.
    pub text: String,
    /// Press Enter after it and see that it was taken.
    pub enter: bool,
}

/// Where to attach.
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
    /// Columns and rows to go back to after the last one detached.
    pub size: (u16, u16),
}

/// What `kill` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillParams {
    /// The worker.
    pub name: String,
    /// Remove its worktree too, if nothing in it would be lost.
    pub rm_worktree: bool,
    /// Remove it even if it holds uncommitted work.
    pub force_dirty: bool,
}

/// The answer to `kill`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Killed {
    /// It had ended before.
    pub already: bool,
    /// Processes that had to be ended by SIGKILL, as `PID NAME`.
    pub forced: Vec<String>,
    /// The worktree's path, when it was removed.
    pub worktree_removed: Option<PathBuf>,
    /// Things to tell the user on stderr.
    pub warnings: Vec<String>,
    /// Why the worktree was not removed, though that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_error: Option<Error>,
}

/// What `clean` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanParams {
    /// The worker.
    pub name: String,
    /// Leave its worktree and its branch where they are.
    pub keep_worktree: bool,
    /// Remove the worktree even if it holds uncommitted work.
    pub force_dirty: bool,
}

/// The answer to `clean`: nothing of the worker is known any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// The worktree's path, when it was removed.
    pub worktree_removed: Option<PathBuf>,
    /// The worktree's path, when it was left.
    pub worktree_kept: Option<PathBuf>,
    /// Things to tell the user on stderr.
    pub warnings: Vec<String>,
}

/// The answer to `send`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Things to tell the user on stderr.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The answer to `ralph.pause` and `ralph.resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// False when it was so already (a warning, exit 0).
    pub changed: bool,
    /// The loop's status before.
    pub before: LoopStatus,
    /// Things to tell the user on stderr.
    pub warnings: Vec<String>,
}

/// A loop's numbers, as `ralph status` shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RalphView {
    /// The worker.
    pub worker_name: String,
    /// The loop's status.
    pub status: LoopStatus,
    /// The worker's status.
    pub worker_status: Status,
    /// Why it is so, where there is something to say.
    pub reason: Option<String>,
    /// The prompt file.
    pub prompt_file: PathBuf,
    /// The limit.
    pub max_iterations: u32,
    /// The current (or last) iteration; 0 before the first.
    pub current_iteration: u32,
    /// Local time without offset, `2024-01-15T10:30:00.000000`.
    pub started: String,
    /// Likewise; null before the first iteration.
    pub last_iteration_started: Option<String>,
    /// In a row.
    pub consecutive_failures: u32,
    /// In all.
    pub total_failures: u32,
    /// The done pattern.
    pub done_pattern: Option<String>,
    /// Seconds.
    pub inactivity_timeout: u64,
    /// Who paused it.
    pub paused_by: Option<PauseBy>,
    /// Where `state.json` is.
    pub state_file: PathBuf,
}

/// What `ralph.set` takes: the settings that may change while a loop runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RalphSetParams {
    /// The worker.
    pub name: String,
    /// `max_iterations`, `inactivity_timeout`, `done_pattern` or `prompt_file`.
    pub key: String,
    /// The value as text; `null` (the word) clears the done pattern.
    pub value: String,
}

/// What `ralph.clean` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RalphCleanParams {
    /// One loop, or all that are over.
    pub name: Option<String>,
}

/// The answer to `ralph.clean`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Names whose ralph state was removed (`agent`, `agent.1`, …).
    pub removed: Vec<String>,
    /// Live loops that were left alone.
    pub kept: Vec<String>,
}

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

/// The daemon, as `daemon status` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonView {
    /// Its process id.
    pub pid: u32,
    /// Its release.
    pub version: String,
    /// The protocol.
    pub protocol: u32,
    /// When it started: RFC 3339 with offset.
    pub started: String,
    /// Its directory.
    pub swarm_dir: PathBuf,
    /// Its socket.
    pub socket: PathBuf,
    /// tmux's version, where a server was asked.
    pub tmux: Option<String>,
    /// How many workers are live.
    pub live: usize,
    /// How many there are.
    pub workers: usize,
    /// Loops that the last shutdown paused.
    pub paused_by_shutdown: Vec<String>,
}

/// The answer to `daemon.stop`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStopped {
    /// Loops that were paused by it.
    pub paused: Vec<String>,
    /// Agents that go on.
    pub agents: usize,
}
