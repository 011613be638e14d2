//! How workers are, and what is done to one: `ls`, `status`, `attach`, `send`, `kill`, `clean`.
//!
//! Part of [the protocol](super), which says what may change.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use swarm_state::ignored::IgnoredFiles;
use swarm_state::model::{Outcome, RestartWhen, Status, Worktree};
use swarm_state::removal::Permission;

use super::is_no;
use crate::error::Error;

/// The answer to `ls`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// All workers, by name.
    pub workers: Vec<WorkerView>,
    /// What is wrong on disk (records set aside, written by a newer swarm), as sentences.
    pub problems: Vec<String>,
}

/// The key of a worker's metadata that is true where an earlier swarm made it.
pub const EARLIER_SWARM: &str = "earlier_swarm";

/// One worker, as `status --format json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its name.
    pub name: String,
    /// How it is.
    pub status: Status,
    /// Why it is so, where there is something to say.
    pub reason: Option<String>,
    /// The same as data; absent where there is nothing to say, or a later daemon's cause is unknown here.
    #[serde(
        default,
        deserialize_with = "swarm_state::cause::known",
        skip_serializing_if = "Option::is_none"
    )]
    pub cause: Option<swarm_state::cause::Cause>,
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
    /// Why swarm ended the last run; absent when the agent exited by itself or a run is alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What kind of outage the loop waits for; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<swarm_state::outage::OutageKind>,
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

/// What `send` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendParams {
    /// The worker.
    pub name: String,
    /// The text, literal.
    pub text: String,
    /// Press Enter after it and see that it was taken.
    pub enter: bool,
    /// Type it key by key instead of pasting it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keys: bool,
    /// Never answer a dialog with it: it goes to several workers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_answer: bool,
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
    /// Remove the worktree even if it holds ignored files outside caches.
    #[serde(default, skip_serializing_if = "is_no")]
    pub discard_ignored: bool,
}

impl KillParams {
    /// What may be lost with the worktree.
    pub fn permission(&self) -> Permission {
        Permission { force_dirty: self.force_dirty, discard_ignored: self.discard_ignored }
    }
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
    /// The ignored files that went with the worktree.
    #[serde(default, skip_serializing_if = "IgnoredFiles::is_empty")]
    pub ignored_removed: IgnoredFiles,
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
    /// Remove the worktree even if it holds ignored files outside caches.
    #[serde(default, skip_serializing_if = "is_no")]
    pub discard_ignored: bool,
}

impl CleanParams {
    /// What may be lost with the worktree.
    pub fn permission(&self) -> Permission {
        Permission { force_dirty: self.force_dirty, discard_ignored: self.discard_ignored }
    }
}

/// The answer to `clean`: nothing of the worker is known any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// The worktree's path, when it was removed.
    pub worktree_removed: Option<PathBuf>,
    /// The worktree's path, when it was left.
    pub worktree_kept: Option<PathBuf>,
    /// The ignored files that went with the worktree.
    #[serde(default, skip_serializing_if = "IgnoredFiles::is_empty")]
    pub ignored_removed: IgnoredFiles,
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
