//! The files between the daemon and the wrapper.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{sync_dir, write_unsynced};
use crate::procs::{self, Proc};

const LAUNCH: &str = "launch.json";
const STARTED: &str = "started";
const FORCED: &str = "forced";
const EXIT: &str = "exit.json";
/// Room for the record, taken while there is some: a full disk must not swallow how a run ended.
const RESERVED: &str = "exit.json.part";
const ROOM: usize = 1024;

/// What the wrapper is to run (`launch.json`, 0600). An older or newer wrapper may read it, so each new field needs
/// a default.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// The agent's argv; not empty. A program without `/` is looked for in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Its directory, absolute.
    pub cwd: PathBuf,
    /// A file that is its standard input, which ends after it; the terminal when absent.
    pub stdin: Option<PathBuf>,
    /// End what the agent leaves running, once it has ended.
    pub end_leftovers: bool,
}

impl fmt::Debug for LaunchSpec {
    /// Leaves the environment and the arguments out: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchSpec")
            .field("program", &self.argv.first())
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl LaunchSpec {
    /// Writes it into `dir`, readable by this user alone. Not durable: no pane outlives the machine.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        write_unsynced(&dir.join(LAUNCH), &serde_json::to_vec(self)?)
    }

    /// Reads and unlinks it.
    pub(super) fn take(dir: &Path) -> io::Result<Self> {
        let path = dir.join(LAUNCH);
        let text = std::fs::read(&path)?;
        std::fs::remove_file(&path)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// How the agent ended (`exit.json`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Its exit status; 127 with an `error` when it could not be started.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The pane was closed under it, and the wrapper ended it.
    #[serde(default)]
    pub hup: bool,
    /// When, in milliseconds of Unix time.
    #[serde(default)]
    pub ended: Option<i64>,
    /// Why it could not be started, one sentence.
    #[serde(default)]
    pub error: Option<String>,
    /// The wrapper itself failed, before it tried to start the agent.
    #[serde(default)]
    pub helper: bool,
}

impl ExitRecord {
    /// The status as a shell would give it.
    pub(super) fn status(&self) -> u8 {
        let status = self.code.or(self.signal.map(|signal| signal.saturating_add(128))).unwrap_or(1);
        u8::try_from(status & 0xff).unwrap_or(1)
    }
}

/// The word that makes this program the wrapper.
const PANE: &str = "__pane";

/// The argv that tmux is given to run the agent of `dir`; `swarm` is this program's absolute path.
pub fn pane_argv(swarm: &Path, dir: &Path) -> Vec<OsString> {
    vec![swarm.into(), PANE.into(), dir.into()]
}

/// Whether a process is the wrapper of a pane.
pub fn is_pane(pid: i32) -> bool {
    procs::arguments(pid).get(1).is_some_and(|word| word == PANE.as_bytes())
}

/// How the agent of `dir` ended. None when there is no (readable) record: it still runs, or the wrapper was
/// killed.
pub fn read_exit(dir: &Path) -> Option<ExitRecord> {
    serde_json::from_slice(&std::fs::read(dir.join(EXIT)).ok()?).ok()
}

/// Whether the wrapper has read what to run. False when it never began, or has only just been started.
pub fn has_begun(dir: &Path) -> bool {
    !dir.join(LAUNCH).exists()
}

/// The agent's pid, once it was started.
pub fn started(dir: &Path) -> Option<i32> {
    std::fs::read_to_string(dir.join(STARTED)).ok()?.trim().parse().ok()
}

/// The processes, as `PID NAME`, that the wrapper had to end by SIGKILL when the agent had ended.
pub fn read_forced(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join(FORCED)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Writes down who had to be killed. Nothing but a message depends on it.
pub(super) fn write_forced(dir: &Path, forced: &[Proc]) {
    if forced.is_empty() {
        return;
    }
    // A process may give itself a name of several lines.
    let line = |proc: &Proc| format!("{} {}\n", proc.pid, proc.comm.replace(char::is_control, "?"));
    let _ = write_unsynced(&dir.join(FORCED), forced.iter().map(line).collect::<String>().as_bytes());
}

/// Takes the room for the record. On a disk that is full already there is none, and the record is tried all
/// the same.
pub(super) fn reserve(dir: &Path) {
    let _ = write_unsynced(&dir.join(RESERVED), &[b' '; ROOM]);
}

/// Writes the agent's pid. Nothing depends on it being durable.
pub(super) fn write_started(dir: &Path, pid: i32) {
    let _ = write_unsynced(&dir.join(STARTED), format!("{pid}\n").as_bytes());
}

/// Writes the record into the reserved room and makes it durable, in one step for whoever reads it.
pub(super) fn write_exit(dir: &Path, record: &ExitRecord) -> io::Result<()> {
    let mut text = serde_json::to_vec(record)?;
    // White space to the end of the room: the same blocks are written again, none are asked for.
    text.resize(text.len().max(ROOM - 1), b' ');
    text.push(b'\n');
    let part = dir.join(RESERVED);
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&part)?;
    file.write_all(&text)?;
    file.set_len(text.len().try_into().unwrap_or(u64::MAX))?;
    file.sync_all()?;
    // Not `files::replace`: that takes new blocks, which a full disk does not have.
    std::fs::rename(&part, dir.join(EXIT))?;
    sync_dir(dir)
}
