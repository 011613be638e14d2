//! One process: its identity, and what it was started with.

use std::path::PathBuf;

use memchr::memmem;

/// A process at the time the tree was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proc {
    /// Its process id.
    pub pid: i32,
    /// Its parent's process id.
    pub ppid: i32,
    /// When it was started, in clock ticks since boot. Together with the pid, this identifies a process forever.
    pub start_time: u64,
    /// The program's name, at most 15 bytes.
    pub comm: String,
}

/// The lines `SWARM_NAME=VALUE` in the initial environment of a process, by which swarm recognizes its own processes.
pub fn swarm_variables(pid: i32) -> Vec<Vec<u8>> {
    let text = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    // Each check reads the environment of every process, and most have no such variable: no other line is copied.
    let starts = memmem::find_iter(&text, b"SWARM_").filter(|at| *at == 0 || text[at - 1] == 0);
    starts.filter_map(|at| text[at..].split(|byte| *byte == 0).next()).map(<[u8]>::to_vec).collect()
}

/// The initial arguments of a process, the program first.
pub fn arguments(pid: i32) -> Vec<Vec<u8>> {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.strip_suffix(b"\0").unwrap_or(&text).split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// The current directory of a process.
pub fn cwd(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// The file that a process executes, with ` (deleted)` behind its name if it is gone.
pub fn program(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}
