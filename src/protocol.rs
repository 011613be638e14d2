//! The protocol between client and daemon: JSON, one object per line, over a Unix socket; see `swarm-protocol(7)`.
//!
//! Client and daemon share only these types. They contain nothing of the disk, and no path, pid or socket has a meaning
//! for a call, so that a daemon behind ssh can serve the same lines. This file has the lines' common parts and the list
//! of methods; the modules have the parameters and answers by topic.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;

mod events;
mod hook;
mod output;
mod quota;
mod ralph;
mod report;
mod service;
mod spawn;
mod workers;

pub use events::{
    MissingNotices, MissingReason, NextNotification, Notice, NotifyNextParams, Snapshot, SubscribeParams,
};
pub use hook::{HeldAnswer, HookAnswer, HookNews, HookParams};
pub use output::{Lines, LogsParams, PeekParams, Peeked, RUNNING, is_run_header};
pub use quota::{QuotaAccountView, QuotaFigureView, QuotaLifted, QuotaView};
pub use ralph::{Changed, Cleaned, HoldChanged, RalphCleanParams, RalphSetParams, RalphView, ResumeParams};
pub use report::{
    Approved, DiffParams, DiffView, LookedParams, MorningParams, MorningView, Report, ReportParams,
    RestoreParams, Restored, Watched, WorkerWork,
};
pub use service::{DaemonStopped, DaemonView};
pub use spawn::{RespawnParams, SpawnParams, Spawned, StoriesPlan};
pub use workers::{
    AgentRequestView, AllowParams, AnswerParams, Answered, AttachView, CleanParams, ClearedSnapshots,
    Forgotten, HeldView, KillParams, Killed, Listing, RestartView, SendParams, Sent, TaskListView, TmuxView,
    WorkerHost, WorkerView,
};

/// The protocol version; raised only for a breaking change.
pub const VERSION: u32 = 1;

/// This program's version, with the commit and its date if the build had them.
pub const RELEASE: &str = env!("SWARM_RELEASE");

/// The longest line that either side accepts, line end included.
pub const MAX_LINE_BYTES: usize = 1 << 20;

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

/// A line from the daemon: an answer, or a notice of a subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The request it belongs to.
    pub id: u64,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    /// The error.
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
    /// Makes a worker; answers [`Spawned`] when its first run has started.
    #[serde(rename = "spawn")]
    Spawn(Box<SpawnParams>),
    /// Lists all workers; answers [`Listing`].
    #[serde(rename = "ls")]
    Ls(Empty),
    /// Shows one worker; answers [`WorkerView`].
    #[serde(rename = "status")]
    Status(Named),
    /// Records that a person has looked at a finished worker; answers [`Empty`]. Has no effect on a live one.
    #[serde(rename = "seen")]
    Seen(Named),
    /// Returns the work of all workers in a period; answers [`MorningView`].
    #[serde(rename = "morning")]
    Morning(MorningParams),
    /// Records that a person was shown the morning view; answers [`Empty`]. Has no effect from inside a worker.
    #[serde(rename = "morning.looked")]
    MorningLooked(LookedParams),
    /// Captures a worker's screen; answers [`Peeked`].
    #[serde(rename = "peek")]
    Peek(PeekParams),
    /// Reads a worker's output; answers [`Lines`].
    #[serde(rename = "logs")]
    Logs(LogsParams),
    /// Types text into a worker; answers [`Sent`] when the agent accepted it.
    #[serde(rename = "send")]
    Send(SendParams),
    /// Answers a request that a hook of the agent holds open; answers [`Answered`]. Refused from inside the worker.
    #[serde(rename = "answer")]
    Answer(AnswerParams),
    /// Leaves a worker to a person until it is released; answers [`HoldChanged`]. Refused from inside the worker.
    #[serde(rename = "hold")]
    Hold(Named),
    /// Ends the hold of a worker; answers [`HoldChanged`]. Refused from inside the worker.
    #[serde(rename = "release")]
    Release(Named),
    /// Allows a sandboxed worker to reach hosts; answers [`Empty`]. Refused from inside the worker.
    #[serde(rename = "allow")]
    Allow(AllowParams),
    /// Sends Ctrl-C to a worker's terminal; answers [`Empty`].
    #[serde(rename = "interrupt")]
    Interrupt(Named),
    /// Sends end-of-input (Ctrl-D) to a worker's terminal; answers [`Empty`].
    #[serde(rename = "eof")]
    Eof(Named),
    /// Locates a worker's window; answers [`AttachView`].
    #[serde(rename = "attach")]
    Attach(Named),
    /// Ends a worker; answers [`Killed`] when none of its processes runs any more.
    #[serde(rename = "kill")]
    Kill(KillParams),
    /// Spawns a worker again with the same settings, and ends it first if it is live; answers [`Spawned`].
    #[serde(rename = "respawn")]
    Respawn(RespawnParams),
    /// Deletes a finished worker and its files; answers [`Forgotten`].
    #[serde(rename = "clean")]
    Clean(CleanParams),
    /// Pauses a loop; answers [`Changed`].
    #[serde(rename = "ralph.pause")]
    RalphPause(Named),
    /// Resumes a loop; answers [`Changed`].
    #[serde(rename = "ralph.resume")]
    RalphResume(ResumeParams),
    /// Shows a loop's state; answers [`RalphView`].
    #[serde(rename = "ralph.status")]
    RalphStatus(Named),
    /// Changes a loop's settings; answers [`RalphView`].
    #[serde(rename = "ralph.set")]
    RalphSet(RalphSetParams),
    /// Reads the lines of `iterations.log`; answers [`Lines`].
    #[serde(rename = "ralph.logs")]
    RalphLogs(LogsParams),
    /// Deletes the state of finished loops; answers [`Cleaned`].
    #[serde(rename = "ralph.clean")]
    RalphClean(RalphCleanParams),
    /// Reports the result of a loop; answers [`Report`].
    #[serde(rename = "ralph.report")]
    RalphReport(ReportParams),
    /// Shows the changes of an iteration; answers [`DiffView`].
    #[serde(rename = "ralph.diff")]
    RalphDiff(DiffParams),
    /// Checks an iteration's tree out into a new worktree; answers [`Restored`].
    #[serde(rename = "ralph.restore")]
    RalphRestore(RestoreParams),
    /// Accepts changes to watched files; answers [`Approved`]. Refused from inside the worker.
    #[serde(rename = "ralph.approve")]
    RalphApprove(Named),
    /// Reports an event of the worker's own agent, from its hooks; answers [`HookAnswer`]. Has no effect from outside
    /// the worker.
    #[serde(rename = "hook")]
    Hook(Box<HookParams>),
    /// Subscribes to notices; answers [`Snapshot`], then notices until the connection ends.
    #[serde(rename = "subscribe")]
    Subscribe(SubscribeParams),
    /// Waits for the next notification; answers [`NextNotification`].
    #[serde(rename = "notify.next")]
    NotifyNext(NotifyNextParams),
    /// Shows the usage limits of accounts; answers [`QuotaView`].
    #[serde(rename = "quota")]
    Quota(Empty),
    /// Lifts the parks of all accounts until their resets; answers [`QuotaLifted`]. Refused from inside a worker.
    #[serde(rename = "quota.lift")]
    QuotaLift(Empty),
    /// Shows the daemon's state; answers [`DaemonView`].
    #[serde(rename = "daemon.status")]
    DaemonStatus(Empty),
    /// Pauses the loops and ends the daemon; answers [`DaemonStopped`]. Agents keep running.
    #[serde(rename = "daemon.stop")]
    DaemonStop(Empty),
    /// Ends the daemon so that a new one can take over; answers [`Empty`]. Pauses nothing.
    #[serde(rename = "daemon.handover")]
    DaemonHandover(Empty),
}

impl Call {
    /// Whether it may be sent twice: the second call has no further effect and returns the same answer. False for calls
    /// that would type a text twice, whose second answer would differ, or that are meant for one daemon only.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Spawn(params) => params.request.is_some(),
            Self::Respawn(params) => params.request.is_some(),
            Self::Kill(_)
            | Self::Allow(_)
            | Self::Ls(_)
            | Self::Status(_)
            | Self::Seen(_)
            | Self::Morning(_)
            | Self::MorningLooked(_)
            | Self::Peek(_)
            | Self::Logs(_)
            | Self::Attach(_)
            | Self::Hold(_)
            | Self::Release(_)
            | Self::RalphPause(_)
            | Self::RalphResume(_)
            | Self::RalphStatus(_)
            | Self::RalphSet(_)
            | Self::RalphLogs(_)
            | Self::RalphReport(_)
            | Self::RalphDiff(_)
            | Self::NotifyNext(_)
            | Self::Quota(_)
            | Self::DaemonStatus(_) => true,
            _ => false,
        }
    }
}

/// No parameters, or an empty answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

/// A worker's name as text. The daemon parses it and refuses an invalid name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The name.
    pub name: String,
}
