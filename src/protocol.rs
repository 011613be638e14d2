//! The wire: JSON, one object a line, over a Unix socket (DESIGN section 7, `swarm-protocol(7)`).
//!
//! Client and daemon share these types and nothing else. Deliberately absent: anything of the disk
//! (`store` and `swarm_state::format` are another contract) and any path, pid or socket in the meaning of
//! a call, so that a daemon behind ssh can serve the same lines. Here is what every line has in common and the
//! list of methods; what each takes and answers stands by topic in the modules.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;

mod events;
mod hook;
mod output;
mod ralph;
mod report;
mod service;
mod spawn;
mod workers;

pub use events::{Notice, Snapshot, SubscribeParams};
pub use hook::{HookHeard, HookNews, HookParams};
pub use output::{Lines, LogsParams, PeekParams, Peeked, RUNNING, is_run_header};
pub use ralph::{Changed, Cleaned, RalphCleanParams, RalphSetParams, RalphView, ResumeParams};
pub use report::{Approved, DiffParams, DiffView, Report, ReportParams, RestoreParams, Restored, Watched};
pub use service::{DaemonStopped, DaemonView};
pub use spawn::{RalphParams, RespawnParams, SpawnParams, Spawned};
pub use workers::{
    AttachView, CleanParams, EARLIER_SWARM, Forgotten, KillParams, Killed, Listing, RestartView, SendParams,
    Sent, TmuxView, WorkerView,
};

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
    RalphResume(ResumeParams),
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
    /// What the hooks of a worker's own agent tell; answers [`HookHeard`]. From outside the worker it is no news.
    #[serde(rename = "hook")]
    Hook(Box<HookParams>),
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

/// Whether a mark that is left out when it is not set can be left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_no(mark: &bool) -> bool {
    !mark
}
