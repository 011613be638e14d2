//! The files with which the daemon and the wrapper communicate.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use swarm_state::caps::{Caps, CapsInForce};
use swarm_state::model::is_default;

use crate::files::{sync_dir, write_unsynced};
use crate::procs::{self, Proc};
use crate::sandbox::hosts::PaneProxy;

const LAUNCH_FILE: &str = "launch.json";
/// The launch file after a wrapper took it. A rename gives it to one wrapper or to [`withdraw_launch`]. The
/// empty file stays.
const TAKEN_FILE: &str = "launch.json.taken";
const STARTED_FILE: &str = "started";
const FORCED_FILE: &str = "forced";
const CAPS_FILE: &str = "caps.json";
const EXIT_FILE: &str = "exit.json";
/// Reserves space for the exit record early: a full disk must not lose how a run ended.
const RESERVED_FILE: &str = "exit.json.part";
const EXIT_RECORD_BYTES: usize = 1024;

/// The command that the wrapper runs, and its settings (`launch.json`, 0600). A wrapper of another version may read the
/// file, so each new field needs a default.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// The agent's argv; not empty. A program without `/` is searched in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// Its complete environment.
    pub env: BTreeMap<String, String>,
    /// Its directory, absolute.
    pub cwd: PathBuf,
    /// The file that is its standard input; the terminal if absent.
    pub stdin: Option<PathBuf>,
    /// Kill the processes that the agent leaves behind.
    pub end_leftovers: bool,
    /// The agent runs in a sandbox. It gets a copy of its standard input, because it could write the file.
    #[serde(default)]
    pub sandboxed: bool,
    /// The proxy of the sandbox.
    #[serde(default)]
    pub proxy: Option<PaneProxy>,
    /// Files that exist only for the sandbox, and are deleted at the end.
    #[serde(default)]
    pub placeholders: Vec<PathBuf>,
    /// The caps of all its processes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caps: Caps,
}

impl fmt::Debug for LaunchSpec {
    /// Omits environment and arguments, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchSpec")
            .field("program", &self.argv.first())
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl LaunchSpec {
    /// Writes it into `dir`, readable by this user only. Not durable: a pane does not survive a power cut.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        write_unsynced(&dir.join(LAUNCH_FILE), &serde_json::to_vec(self)?)
    }

    /// The caps in a launch file that no wrapper has taken yet; `None` without one.
    pub(super) fn caps(dir: &Path) -> Option<Caps> {
        Some(serde_json::from_slice::<Self>(&std::fs::read(dir.join(LAUNCH_FILE)).ok()?).ok()?.caps)
    }

    /// Reads the file and empties it. Fails with `NotFound` if another wrapper took it or the daemon withdrew it.
    pub(super) fn take(dir: &Path) -> io::Result<Self> {
        let taken = dir.join(TAKEN_FILE);
        std::fs::rename(dir.join(LAUNCH_FILE), &taken)?;
        let text = std::fs::read(&taken)?;
        // The file holds secrets.
        OpenOptions::new().write(true).open(&taken)?.set_len(0)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// A copy of a file that has no name.
pub(super) fn copy(path: &Path) -> io::Result<std::fs::File> {
    use std::io::Seek;
    let name = path.with_extension("copy");
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&name)?;
    std::fs::remove_file(&name)?;
    io::copy(&mut std::fs::File::open(path)?, &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// How the agent ended (`exit.json`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Its exit status; 127 with an `error` if it could not be started.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The pane was closed, and the wrapper ended the agent.
    #[serde(default)]
    pub hup: bool,
    /// When, in milliseconds of Unix time.
    #[serde(default)]
    pub ended: Option<i64>,
    /// Why it could not be started, in one sentence.
    #[serde(default)]
    pub error: Option<String>,
    /// How many processes of the run the kernel killed because its memory reached the cap.
    #[serde(default, skip_serializing_if = "is_default")]
    pub oom_kills: u64,
    /// That cap, in bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub memory_cap: u64,
    /// The wrapper itself failed before it started the agent.
    #[serde(default)]
    pub helper: bool,
}

impl ExitRecord {
    /// The exit status in a shell's notation.
    pub(super) fn status(&self) -> u8 {
        let status = self.code.or(self.signal.map(|signal| signal.saturating_add(128))).unwrap_or(1);
        u8::try_from(status & 0xff).unwrap_or(1)
    }
}

/// The argument that turns this program into the wrapper.
const PANE_ARGUMENT: &str = "__pane";

/// The argument that turns this program into the recorder of a pane's output.
const RECORD_ARGUMENT: &str = "__record";

/// The argv for tmux that runs the agent of `dir`; `swarm` is this program's absolute path.
pub fn pane_argv(swarm: &Path, dir: &Path) -> Vec<OsString> {
    vec![swarm.into(), PANE_ARGUMENT.into(), dir.into()]
}

/// Whether a process is the wrapper of a pane.
pub fn is_pane(pid: i32) -> bool {
    runs_as(pid, PANE_ARGUMENT)
}

/// Whether swarm started a process in its tmux server: the wrapper or the recorder of a pane.
pub(crate) fn is_helper(pid: i32) -> bool {
    // The recorder starts in a shell, which replaces itself.
    let starts_recorder = |text: &Vec<u8>| text.starts_with(b"umask 077; exec ");
    is_pane(pid) || runs_as(pid, RECORD_ARGUMENT) || procs::arguments(pid).get(2).is_some_and(starts_recorder)
}

/// Whether a process is this program with this first argument. Another program can have the argument.
fn runs_as(pid: i32, argument: &str) -> bool {
    let is_swarm = |path: PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"swarm"));
    procs::arguments(pid).get(1).is_some_and(|word| word == argument.as_bytes())
        && (cfg!(not(target_os = "linux")) || procs::program(pid).is_some_and(is_swarm))
}

/// How the agent of `dir` ended. `None` without a readable record: the agent still runs, or the wrapper was killed.
pub fn read_exit(dir: &Path) -> Option<ExitRecord> {
    serde_json::from_slice(&std::fs::read(dir.join(EXIT_FILE)).ok()?).ok()
}

/// Whether the wrapper has read `launch.json`. False if it was never started, or just now.
pub fn has_read_launch(dir: &Path) -> bool {
    !dir.join(LAUNCH_FILE).exists()
}

/// Deletes `launch.json`, so that no wrapper can start the agent from it any more. False if a wrapper has taken it.
pub fn withdraw_launch(dir: &Path) -> bool {
    std::fs::remove_file(dir.join(LAUNCH_FILE)).is_ok() || !dir.join(TAKEN_FILE).exists()
}

/// The agent's pid, once it was started.
pub fn started(dir: &Path) -> Option<i32> {
    std::fs::read_to_string(dir.join(STARTED_FILE)).ok()?.trim().parse().ok()
}

/// The mechanism of each cap of the run of `dir`. `None` for a run without caps, or before its wrapper has started.
pub fn caps_in_force(dir: &Path) -> Option<CapsInForce> {
    serde_json::from_slice(&std::fs::read(dir.join(CAPS_FILE)).ok()?).ok()
}

/// Records the mechanism of each cap. Only messages depend on it.
pub(super) fn write_caps(dir: &Path, in_force: &CapsInForce) {
    let text = serde_json::to_vec(in_force).unwrap_or_default();
    let _ = write_unsynced(&dir.join(CAPS_FILE), &text);
}

/// The processes, as `PID NAME`, that the wrapper had to kill after the agent's end.
pub fn read_forced(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join(FORCED_FILE)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Records which processes had to be killed. Only a message depends on it.
pub(super) fn write_forced(dir: &Path, forced: &[Proc]) {
    if forced.is_empty() {
        return;
    }
    // A process may give itself a name of several lines.
    let line = |proc: &Proc| format!("{} {}\n", proc.pid, proc.comm.replace(char::is_control, "?"));
    let _ = write_unsynced(&dir.join(FORCED_FILE), forced.iter().map(line).collect::<String>().as_bytes());
}

/// Reserves the space for the exit record. On a full disk there is none; the record is still written if possible.
pub(super) fn reserve(dir: &Path) {
    let _ = write_unsynced(&dir.join(RESERVED_FILE), &[b' '; EXIT_RECORD_BYTES]);
}

/// Writes the agent's pid. Nothing depends on it being durable.
pub(super) fn write_started(dir: &Path, pid: i32) {
    let _ = write_unsynced(&dir.join(STARTED_FILE), format!("{pid}\n").as_bytes());
}

/// Overwrites the reserved file with the record, makes it durable and renames it.
pub(super) fn write_exit(dir: &Path, record: &ExitRecord) -> io::Result<()> {
    let mut text = serde_json::to_vec(record)?;
    // Fills the reserved space with spaces, so that the write needs no new blocks.
    text.resize(text.len().max(EXIT_RECORD_BYTES - 1), b' ');
    text.push(b'\n');
    let part = dir.join(RESERVED_FILE);
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&part)?;
    file.write_all(&text)?;
    file.set_len(text.len().try_into().unwrap_or(u64::MAX))?;
    file.sync_all()?;
    // Not `files::replace`: that needs new blocks, which a full disk does not have.
    std::fs::rename(&part, dir.join(EXIT_FILE))?;
    sync_dir(dir)
}
