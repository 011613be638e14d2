//! The messages between the daemon's parts, and the data that they carry. Data only.
//!
//! The supervisor receives [`DaemonInput`]s and hands [`Job`]s to the drivers; a driver answers with [`RunReport`]s.
//! Not here: what is sent to clients ([`crate::protocol`]).

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, FixedOffset};
use swarm_state::attached::AttachedClient;
use swarm_state::engine::{Ended, Event, Evidence, SpawnError};
use swarm_state::gates::Verdict;
use swarm_state::model::{Exit, Pane, Run, WorkerName, Worktree};
use swarm_state::notice::Entry;
use swarm_state::quota::QuotaFigure;
use swarm_state::removal::{Permission, RemovalCommand};
use swarm_state::screen::{Blocked, ScreenReader};
use swarm_state::spec::WorkerSpec;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::daemon::busy::Busy;
use crate::daemon::reply::Reply;
use crate::error::{Error, Result};
use crate::git;
use crate::loops::LoopRun;
use crate::protocol::{
    Call, Forgotten, KillParams, Notice, SendParams, Snapshot, SpawnParams, SubscribeParams,
};
use crate::store::DaemonLock;
use crate::tmux::PaneRow;
use crate::tmux::watch::ChangeFilter;

/// The answer to a subscription: the snapshot, and the notices to come.
pub(crate) type Subscription = (Snapshot, mpsc::Receiver<Notice>);

pub(crate) type Inbox = mpsc::UnboundedSender<DaemonInput>;

/// How the daemon ends, and whether another one takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DaemonEnd {
    /// Pause all loops; agents continue.
    Stop,
    /// Another daemon takes over: pause nothing.
    Handover,
    /// The directory was removed, or a daemon of another host took it over: write nothing and end nothing.
    Replaced,
}

pub(crate) struct EndedSupervisor {
    pub(crate) end: DaemonEnd,
    pub(crate) lock: DaemonLock,
    /// The number of agents that continue.
    pub(crate) agents: u32,
}

/// Everything that can wake the supervisor.
pub(crate) enum DaemonInput {
    /// A client's call.
    Call { call: Box<Call>, peer: Option<i32>, reply: Reply },
    /// A client subscribes to notices.
    Subscribe { params: SubscribeParams, reply: oneshot::Sender<Result<Subscription>> },
    /// A driver's report.
    Report { worker: WorkerName, incarnation: u64, report: Box<RunReport> },
    /// A look at screens has ended.
    Looked(Box<LookRound>),
    /// A respawn can continue: the previous step is done.
    Respawn(Box<PendingRespawn>),
    /// A tmux server that did not answer at the start has answered.
    Found { socket: Option<String>, found: ServerPanes, look: Look },
    /// A search for orphaned panes has ended.
    Swept { socket: Option<String>, found: ServerPanes },
    /// The files of a worker that is being deleted are gone, or could not be removed.
    Cleaned(Box<PendingClean>),
    /// The worktree of a worker that failed to start is gone, or could not be removed.
    Discarded(Box<PendingDiscard>),
    /// The check whether a predecessor's loop still runs has ended; an error explains why it cannot be taken over.
    TakeOver { name: WorkerName, peer: Option<i32>, outcome: Result<()>, reply: Reply },
    /// The check whether a worker of the predecessor still runs has ended; an error explains why it stays listed.
    Dismiss { name: WorkerName, outcome: Result<()>, reply: Reply },
    /// Something in the daemon's directory, or its lock file, was removed or changed.
    DirectoryTouched,
    /// Another host may have taken over the directory.
    CheckOwner,
    /// The delay after such a removal has passed.
    RemovalSettled(u64),
    /// The clients of tmux servers were listed; for notifications if `announce` is set.
    Clients { listed: Vec<ServerClients>, announce: bool },
    /// A signal, or the end of a `daemon.stop`.
    End(DaemonEnd),
}

pub(crate) struct ServerClients {
    /// The server's socket, as the workers on it name it.
    pub(crate) socket: Option<String>,
    /// The clients; `None` if the server did not answer.
    pub(crate) clients: Option<Vec<AttachedClient>>,
}

/// An action for when a worker has stopped.
pub(crate) enum AfterStop {
    Killed(KillParams, Reply),
    /// Spawn its successor (`--replace`).
    Replace(Box<SpawnParams>, Reply),
    Respawn(Box<PendingRespawn>),
}

/// The client that waits for a new worker's first run.
pub(crate) struct PendingSpawn {
    pub(crate) reply: Reply,
    pub(crate) until_ready: bool,
    /// The notice to follow from.
    pub(crate) seq: u64,
    /// The worker existed before: it stays even if this run fails to start.
    pub(crate) respawned: bool,
    pub(crate) warnings: Vec<String>,
    /// The id that the client gave to the request.
    pub(crate) request: Option<String>,
    /// The run failed to start because its sandbox cannot be built.
    pub(crate) lacks_sandbox: bool,
}

pub(crate) enum AgentInput {
    Text(SendParams),
    /// Ctrl-D.
    Eof,
}

/// Input that waits until the agent is ready.
pub(crate) struct QueuedInput {
    pub(crate) what: AgentInput,
    pub(crate) reply: Reply,
    /// When it is refused instead.
    pub(crate) until: Instant,
}

/// The reader of one worker's screen, shared by the watcher and the driver.
pub(crate) type SharedReader = Arc<Mutex<ScreenReader>>;

#[derive(Debug)]
pub(crate) enum RunReport {
    WorktreeMade(Worktree),
    WorktreeGone,
    /// tmux does not answer; the run is started when it does.
    Silent,
    /// tmux still does not answer: a client should not wait any longer for the run's start.
    Frozen,
    /// The loop begins, with these warnings.
    Begun(Vec<String>),
    /// The run's pane is up.
    Up(Pane),
    /// The pane of a finished run could not be closed.
    Unclosed,
    /// The sandbox of the run cannot be built.
    NoSandbox,
    /// The run could not be started.
    SpawnFailed(Run, SpawnError),
    /// How the delivery of the prompt ended.
    Prompt(Run, Result<PromptOutcome>),
    /// An event that the engine handles as it is.
    Event(Event),
    /// Processes that had to be killed.
    Forced(Vec<String>),
    /// The output cannot be stored yet; the driver retries.
    Unstored(String),
    /// The output is stored and the gates were tried.
    Evaluated(Run, Verdict),
    /// The used parts of the account's usage limits, as the agent recorded them.
    Limits(Vec<QuotaFigure>),
    /// A warning for the client that waits for a new worker, or for the subscribers.
    AtSpawn(String),
    /// Another notice, which changes no state except the list of running checks.
    Notice(Entry),
}

/// A job for a driver. A driver carries out its jobs in order.
pub(crate) enum Job {
    Spawn(SpawnJob),
    /// Paste the prompt of a run.
    Deliver {
        pane: Pane,
        reader: SharedReader,
    },
    /// Type what a person sent.
    Type {
        pane: Pane,
        reader: SharedReader,
        what: AgentInput,
        /// A hook holds a request open, whose dialog the agent is about to show.
        expects_dialog: bool,
        reply: Reply,
    },
    /// Store the output of a run that ended, close its pane, evaluate the gates.
    Evaluate {
        ended: EndedRun,
        /// Why it ended, if its prompt was delivered.
        end_if_delivered: Option<Ended>,
        spec: Arc<WorkerSpec>,
        reader: SharedReader,
    },
    /// Permit a person to edit the task list of a loop in a Docker sandbox.
    OpenTaskFiles(Box<LoopRun>),
    /// Replace the pid of an earlier daemon in the files of such a loop.
    RenewMarker(Box<LoopRun>),
    RemoveWorktree {
        worktree: Worktree,
        removal: WorktreeRemoval,
        reply: oneshot::Sender<Result<git::Removed>>,
    },
}

pub(crate) struct SpawnJob {
    pub(crate) run: Run,
    pub(crate) iteration: Option<IterationInfo>,
    pub(crate) spec: Arc<WorkerSpec>,
    pub(crate) worktree: Option<Worktree>,
    pub(crate) reader: SharedReader,
}

pub(crate) struct EndedRun {
    pub(crate) run: Run,
    pub(crate) exit: Exit,
    pub(crate) evidence: Evidence,
    /// Why the iteration ended; the driver replaces it where it knows more.
    pub(crate) end: Option<Ended>,
    /// Which iteration it was; `None` for a plain worker.
    pub(crate) iteration: Option<IterationInfo>,
    pub(crate) pane: Option<Pane>,
    pub(crate) cwd: PathBuf,
}

#[derive(Debug)]
pub(crate) enum PromptOutcome {
    Accepted,
    /// A dialog, or something unknown, replaced the input box. No key was pressed in it.
    Blocked(Option<Blocked>),
}

pub(crate) struct LookTarget {
    pub(crate) name: WorkerName,
    pub(crate) pane: Pane,
    pub(crate) reader: SharedReader,
    /// A pattern is searched, so the history is read too.
    pub(crate) whole: bool,
    /// Capture the pane even if it printed nothing: this look may end its run.
    pub(crate) anyhow: bool,
}

pub(crate) struct PaneLook {
    pub(crate) pane: Pane,
    pub(crate) event: Event,
    /// The last lines of its screen, when it was captured.
    pub(crate) screen: Option<String>,
}

/// The results of one round of looks at a server.
pub(crate) struct LookRound {
    pub(crate) server: Option<String>,
    /// Which of its panes printed, and when.
    pub(crate) filter: ChangeFilter,
    pub(crate) looks: Vec<(WorkerName, PaneLook)>,
    /// The clients of the server; `None` if it did not list them.
    pub(crate) clients: Option<Vec<AttachedClient>>,
    /// Workers of a tmux that did not answer.
    pub(crate) unreachable: Vec<WorkerName>,
}

/// Which list of a server's panes is compared with the workers. A wrapper may have taken its launch after the first
/// list was made; then its pane is in a later one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    First,
    Later,
}

pub(crate) struct ServerPanes {
    pub(crate) rows: Vec<PaneRow>,
    pub(crate) server: Option<i32>,
    /// The server exists but does not answer: its panes are not known.
    pub(crate) silent: bool,
}

pub(crate) struct PendingRespawn {
    pub(crate) name: WorkerName,
    pub(crate) clean_first: bool,
    pub(crate) permission: Permission,
    pub(crate) reply: Reply,
    pub(crate) warnings: Vec<String>,
    pub(crate) request: Option<String>,
    /// Held until the work has ended: refuses other work on the worker.
    pub(crate) busy: Arc<Busy>,
}

/// A worker that is being deleted. Only its record is left, or something could not be removed.
pub(crate) struct PendingClean {
    pub(crate) name: WorkerName,
    /// Distinguishes workers of the same name.
    pub(crate) incarnation: u64,
    pub(crate) tree_gone: bool,
    pub(crate) outcome: Result<Forgotten>,
    pub(crate) reply: Reply,
    /// Held until the work has ended: refuses other work on the worker.
    pub(crate) busy: Arc<Busy>,
}

/// A worker that failed to start and is discarded. Its record stays until its worktree is gone, so that a daemon that
/// dies meanwhile leaves nothing that no command names.
pub(crate) struct PendingDiscard {
    pub(crate) name: WorkerName,
    /// Distinguishes workers of the same name.
    pub(crate) incarnation: u64,
    /// The client that requested the worker, and why the worker failed to start.
    pub(crate) reply: Reply,
    pub(crate) error: Error,
    /// Held until the work has ended: refuses other work on the worker.
    pub(crate) busy: Arc<Busy>,
}

/// A removal as a user requested it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorktreeRemoval {
    pub(crate) permission: Permission,
    /// The command that requested it, for the hint of a refusal.
    pub(crate) command: RemovalCommand,
}

/// The data about an iteration that a driver needs.
#[derive(Clone, Debug)]
pub(crate) struct IterationInfo {
    /// Its number, from 1.
    pub(crate) number: u32,
    pub(crate) max: u32,
    /// The id of its loop.
    pub(crate) id: String,
    pub(crate) started: Option<DateTime<FixedOffset>>,
    /// An agent of the loop has started at least once.
    pub(crate) worked: bool,
    /// When the loop's time is up; `None` without a limit.
    pub(crate) until: Option<Instant>,
}

/// The memory pressure that holds an iteration, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPressure {
    pub(crate) percent: u32,
    /// The pressure up to which iterations start.
    pub(crate) limit: u32,
}
