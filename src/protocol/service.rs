//! The daemon itself: `daemon.status` and `daemon.stop`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
    /// tmux's version, if it is known.
    pub tmux: Option<String>,
    /// The number of live workers.
    pub live: usize,
    /// The number of workers.
    pub workers: usize,
    /// Loops that the last shutdown paused.
    pub paused_by_shutdown: Vec<String>,
    /// The last error of each channel of notifications whose last message failed. Absent for none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notify_errors: BTreeMap<String, String>,
}

/// The answer to `daemon.stop`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStopped {
    /// Loops that this paused.
    pub paused: Vec<String>,
    /// Agents that keep running.
    pub agents: usize,
    /// Messages for the user, on stderr.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
