//! Process trees: which processes are below a process, their CPU time, and signals that reach all of them.
//!
//! The wrapper and the daemon use it to end a run completely. The daemon also uses it to see whether an agent uses
//! CPU, and which worker a caller belongs to. A process belongs to a tree if it descends from the root, or if the
//! root or a descendant created its session; so orphans are found too. Linux has `/proc`. On other systems a tree is
//! unknown, functions return nothing where they cannot answer, and signals go to the process group.

mod process;
#[cfg_attr(target_os = "linux", path = "procs/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "procs/other.rs")]
mod system;

use std::collections::HashSet;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub use process::{Proc, arguments, cwd, program, swarm_variables};
use system::{Stat, stat, ticks_per_second};
pub use system::{load, signal_same};

impl From<Stat> for Proc {
    fn from(stat: Stat) -> Self {
        let Stat { pid, ppid, starttime: start_time, comm, .. } = stat;
        Self { pid, ppid, start_time, comm }
    }
}

/// How often to look whether a process has ended, where the system offers nothing to wait on.
const GONE_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often to look for processes that were started while others were being ended.
const MAX_KILL_ROUNDS: usize = 16;

/// Waits until a process has ended, reaped or not. Returns at once for a pid that does not exist. On Linux, waiting
/// costs one descriptor and no CPU; without a free descriptor this polls.
pub async fn wait_gone(pid: i32) {
    if pid <= 0 || system::wait_end(pid).await {
        return;
    }
    while is_alive(pid) {
        tokio::time::sleep(GONE_POLL_INTERVAL).await;
    }
}

/// Whether a process exists and is not a zombie.
pub fn is_alive(pid: i32) -> bool {
    if pid <= 0 {
        return false;
    }
    if let Some(stat) = stat(pid) {
        return !is_dead(&stat);
    }
    !matches!(kill(Pid::from_raw(pid), None), Err(nix::errno::Errno::ESRCH))
}

/// The memory pressure of the machine in percent, rounded up, as the kernel reports it (PSI). `None` if it does not.
/// `SWARM_PRESSURE_FILE` names another file, for tests.
pub(crate) fn memory_pressure() -> Option<u32> {
    let path = std::env::var_os("SWARM_PRESSURE_FILE").unwrap_or_else(|| "/proc/pressure/memory".into());
    let percent = swarm_state::caps::pressure(&std::fs::read_to_string(path).ok()?)?;
    Some(percent.ceil() as u32)
}

/// The start time of a process, as in [`Proc`]. `None` if the process does not exist.
pub fn start_time(pid: i32) -> Option<u64> {
    stat(pid).map(|stat| stat.starttime)
}

/// The time since a process was started; may be one clock tick too much. `None` if the process does not exist.
pub fn age(pid: i32) -> Option<Duration> {
    let ticks = system::now()?.checked_sub(stat(pid)?.starttime)?;
    Some(Duration::from_millis(ticks.saturating_mul(1000).checked_div(ticks_per_second())?))
}

/// A process's name, at most 15 bytes.
pub fn name(pid: i32) -> Option<String> {
    stat(pid).map(|stat| stat.comm)
}

/// All processes below `root`, parents before children, without `root` and without zombies. Also works after `root`
/// has ended, as long as its session has members.
pub fn tree(root: i32) -> Vec<Proc> {
    stats_below(root).into_iter().map(Into::into).collect()
}

fn stats_below(root: i32) -> Vec<Stat> {
    if root <= 1 { Vec::new() } else { pick(root, stats()) }
}

/// The members of `rest` that belong to the tree of `root`, nearest first.
fn pick(root: i32, mut rest: Vec<Stat>) -> Vec<Stat> {
    let mut members: HashSet<i32> = [root].into();
    let mut tree = Vec::new();
    rest.retain(|stat| stat.pid > 1 && stat.pid != root);
    loop {
        let belongs = |stat: &Stat| members.contains(&stat.ppid) || members.contains(&stat.session);
        let (found, left): (Vec<_>, Vec<_>) = rest.into_iter().partition(belongs);
        if found.is_empty() {
            return tree;
        }
        members.extend(found.iter().map(|stat| stat.pid));
        tree.extend(found);
        rest = left;
    }
}

/// All processes that this user can see, without zombies.
fn stats() -> Vec<Stat> {
    pids().into_iter().filter_map(live).collect()
}

/// All processes except pid 1 and this process.
fn other_pids() -> impl Iterator<Item = i32> {
    let own = Pid::this().as_raw();
    pids().into_iter().filter(move |pid| *pid > 1 && *pid != own)
}

fn pids() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// As [`stat`], without zombies.
fn live(pid: i32) -> Option<Stat> {
    stat(pid).filter(|stat| !is_dead(stat))
}

/// Whether a process has ended and waits to be reaped.
fn is_dead(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X')
}

/// Sends a signal to all processes below `root`, not to `root` itself, and returns those that received it. Never
/// signals pid 1, this process, or a process that reused a pid. Repeats a few times for processes that are started
/// meanwhile. Only SIGKILL goes to those: after other signals, agents clean up with new processes.
pub fn signal_tree(root: i32, signal: Signal) -> Vec<Proc> {
    if root <= 1 {
        return Vec::new();
    }
    #[cfg(not(target_os = "linux"))]
    if let Ok(group) = nix::unistd::getpgid(Some(Pid::from_raw(root)))
        && group.as_raw() > 1
        && group != nix::unistd::getpgrp()
    {
        let _ = nix::sys::signal::killpg(group, signal);
    }
    let mut hit: Vec<Proc> = Vec::new();
    let until = if signal == Signal::SIGKILL { u64::MAX } else { system::now().unwrap_or(0) };
    for pass in 0..4 {
        // The rest of an entry changes while a process exits.
        let is_hit =
            |proc: &Proc| hit.iter().any(|of| (of.pid, of.start_time) == (proc.pid, proc.start_time));
        let mut fresh: Vec<Proc> = tree(root).into_iter().filter(|proc| !is_hit(proc)).collect();
        // All processes of the first list existed before the request.
        fresh.retain(|proc| pass == 0 || proc.start_time < until);
        if fresh.is_empty() {
            break;
        }
        hit.extend(fresh.into_iter().filter(|proc| signal_same(proc.pid, proc.start_time, signal)));
    }
    hit
}

/// Sends a signal to one process, if it exists, and returns the process. Never signals pid 1 or this process.
pub fn signal_one(pid: i32, signal: Signal) -> Option<Proc> {
    if pid <= 1 || pid == std::process::id() as i32 {
        return None;
    }
    let proc = Proc { pid, ppid: 0, start_time: start_time(pid).unwrap_or(0), comm: name(pid)? };
    kill(Pid::from_raw(pid), signal).ok().map(|()| proc)
}

/// Whether a process has the controlling side of a terminal open. A tmux server has one open for each live pane.
pub fn holds_terminals(pid: i32) -> Option<bool> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let mut holds = false;
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).ok()? {
        let target = std::fs::read_link(entry.ok()?.path());
        holds |= target.is_ok_and(|target| target.ends_with("ptmx"));
    }
    Some(holds)
}

/// Fails with the reason if a program cannot be executed, as on a file system that is mounted `noexec`.
pub fn can_execute(path: &std::path::Path) -> std::io::Result<()> {
    nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).map_err(std::io::Error::from)
}

/// Whether a process was stopped by a signal (SIGSTOP) and waits for SIGCONT.
pub fn is_stopped(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| matches!(stat.state, 'T' | 't'))
}

/// The first process with this name and all these arguments.
pub fn find(name: &str, args: &[&[u8]]) -> Option<i32> {
    find_all(name, args).first().map(|proc| proc.pid)
}

/// All processes with this name and all these arguments.
pub fn find_all(name: &str, args: &[&[u8]]) -> Vec<Proc> {
    let has_args = |stat: &Stat| {
        let line = std::fs::read(format!("/proc/{}/cmdline", stat.pid)).unwrap_or_default();
        args.iter().all(|arg| line.split(|byte| *byte == 0).any(|word| word == *arg))
    };
    // The name alone costs the kernel less than the state of each process.
    let is_named = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_ascii_end() == name.as_bytes())
    };
    pids().into_iter().filter(is_named).filter_map(live).filter(has_args).map(Into::into).collect()
}

/// All processes that this user can see, except this one.
pub fn all() -> Vec<Proc> {
    other_pids().filter_map(live).map(Into::into).collect()
}

/// The processes in `dir` or below whose initial environment has all these lines (`SWARM_NAME=value`).
pub fn marked_in(dir: &std::path::Path, marks: &[Vec<u8>]) -> Vec<Proc> {
    let is_marked = |pid: &i32| {
        let lines = swarm_variables(*pid);
        marks.iter().all(|mark| lines.contains(mark))
    };
    let is_there = |pid: &i32| cwd(*pid).is_some_and(|cwd| cwd.starts_with(dir));
    let found = other_pids().filter(is_there).filter(is_marked).filter_map(live);
    // The pid may have another process since then.
    found.filter(|stat| is_marked(&stat.pid)).map(Into::into).collect()
}

/// Kills every process whose initial environment has a line that begins with `mark` (`SWARM_NAME=…`), and everything
/// below it. This finds processes that left their group, session and parents, but not those started with another
/// environment. Returns the killed processes.
pub fn end_marked(mark: &[u8]) -> Vec<Proc> {
    let mut hit: Vec<Proc> = Vec::new();
    // Few processes have the mark: the state of the others is not read.
    let is_marked = |pid: &i32| swarm_variables(*pid).iter().any(|line| line.starts_with(mark));
    // Processes that are started meanwhile have the mark too, so look again a few times.
    for _ in 0..MAX_KILL_ROUNDS {
        let found = other_pids().filter(is_marked).filter_map(live);
        // The pid may have another process since then.
        let found = found.filter(|stat| is_marked(&stat.pid)).map(Proc::from);
        let fresh: Vec<Proc> = found.filter(|proc| !hit.contains(proc)).collect();
        if fresh.is_empty() {
            break;
        }
        for proc in fresh {
            hit.extend(signal_tree(proc.pid, Signal::SIGKILL));
            signal_same(proc.pid, proc.start_time, Signal::SIGKILL);
            hit.push(proc);
        }
    }
    hit
}

/// The first child of a process.
pub fn first_child(root: i32) -> Option<i32> {
    tree(root).into_iter().find(|proc| proc.ppid == root).map(|proc| proc.pid)
}

/// The state of a process's terminal. `None` if it is unknown.
pub fn terminal(pid: i32) -> Option<Terminal> {
    use nix::sys::termios::{LocalFlags, tcgetattr};
    let tty = std::fs::read_link(format!("/proc/{pid}/fd/0")).ok()?;
    if !tty.starts_with("/dev/pts") {
        return None;
    }
    // Without NOCTTY it could become this process's terminal.
    let flags = nix::fcntl::OFlag::O_RDONLY | nix::fcntl::OFlag::O_NOCTTY | nix::fcntl::OFlag::O_NONBLOCK;
    let fd = nix::fcntl::open(&tty, flags, nix::sys::stat::Mode::empty()).ok()?;
    let unread = rustix::io::ioctl_fionread(&fd).ok()?;
    let cooked = tcgetattr(&fd).ok()?.local_flags.contains(LocalFlags::ICANON);
    Some(Terminal { cooked, unread })
}

/// The input state of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// The terminal is in line mode, as for a shell script. It accepts every typed line, even if nothing reads it.
    pub cooked: bool,
    /// Unread bytes: of complete lines if `cooked`, otherwise of everything typed.
    pub unread: u64,
}

/// Whether the terminal of a process is known to be in line mode.
pub fn tty_is_cooked(pid: i32) -> bool {
    terminal(pid).is_some_and(|terminal| terminal.cooked)
}

/// Whether a process below `root` sleeps where a terminal read sleeps. Only a hint: other reads sleep there too.
pub fn seems_to_read(root: i32) -> bool {
    let place = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    tree(root).iter().any(|proc| matches!(place(proc.pid).as_str(), "wait_woken" | "n_tty_read"))
}

/// The CPU seconds, user and system, of `root`, everything below it, and their reaped children. 0 if unknown.
pub fn cpu_seconds(root: i32) -> f64 {
    let ticks = |stat: &Stat| {
        let reaped = [stat.cutime, stat.cstime].map(|ticks| u64::try_from(ticks).unwrap_or(0));
        [stat.utime, stat.stime].into_iter().chain(reaped).fold(0, u64::saturating_add)
    };
    let ticks = stat(root).iter().chain(&stats_below(root)).map(ticks).fold(0, u64::saturating_add);
    ticks as f64 / ticks_per_second().max(1) as f64
}

/// The parents of a process, nearest first, up to pid 1.
pub fn ancestors(pid: i32) -> Vec<i32> {
    let (mut line, mut at) = (Vec::new(), pid);
    while let Some(stat) = stat(at)
        && stat.ppid > 0
        && !line.contains(&stat.ppid)
    {
        line.push(stat.ppid);
        at = stat.ppid;
    }
    line
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
