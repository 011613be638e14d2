//! Processes below a process: who they are, how much they worked, and signals that reach all of them.
//!
//! The wrapper and the daemon use it to end a run without leaving anything behind, the daemon to see whether
//! an agent burns CPU, and which worker a caller belongs to. A process belongs to a tree when it descends
//! from the root, or when its session was made by the root or a descendant (so what outlived its parents is
//! still found). Linux reads `/proc`; elsewhere a tree is unknown and signals go to the process group. What
//! is deliberately absent: any search by name.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process, as it was when the tree was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proc {
    /// Its number.
    pub pid: i32,
    /// Its parent's.
    pub ppid: i32,
    /// When it was started, in clock ticks since boot: with the pid, this names one process for ever.
    pub start_time: u64,
    /// The program's name, at most 15 bytes.
    pub comm: String,
    /// Its session.
    pub sid: i32,
}

/// The polls of those systems and cases that have nothing to wait on.
const POLL: std::time::Duration = std::time::Duration::from_millis(100);

/// How often it is looked for what was started while others were ended.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 16;

/// Waits until a process has ended (it may still be waiting to be reaped). Returns at once for a pid that is
/// not there. Costs nothing while it waits, on Linux, but a descriptor; those that get none are polled.
pub async fn wait_gone(pid: i32) {
    if pid <= 0 {
        return;
    }
    #[cfg(target_os = "linux")]
    if linux::wait_end(pid).await {
        return;
    }
    while is_alive(pid) {
        tokio::time::sleep(POLL).await;
    }
}

/// Whether there is such a process, and not a dead one that nobody reaped.
pub fn is_alive(pid: i32) -> bool {
    if pid <= 0 {
        return false;
    }
    #[cfg(target_os = "linux")]
    if let Some(stat) = linux::stat(pid) {
        return !linux::is_dead(&stat);
    }
    !matches!(kill(Pid::from_raw(pid), None), Err(nix::errno::Errno::ESRCH))
}

/// When a process was started, as in [`Proc`]. None when it is not there, or the system does not say.
pub fn start_time(pid: i32) -> Option<u64> {
    #[cfg(target_os = "linux")]
    return linux::stat(pid).map(|stat| stat.starttime);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// How long ago a process was started. None when it is not there, or the system does not say.
pub fn age(pid: i32) -> Option<std::time::Duration> {
    #[cfg(target_os = "linux")]
    return linux::age(pid);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// A process's name, at most 15 bytes.
pub fn name(pid: i32) -> Option<String> {
    #[cfg(target_os = "linux")]
    return linux::stat(pid).map(|stat| stat.comm);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// Everything below `root`, parents before children; `root` itself is not in it, nor are dead processes that
/// nobody reaped. Works for a root that has ended, as far as its session still has members.
pub fn tree(root: i32) -> Vec<Proc> {
    #[cfg(target_os = "linux")]
    return linux::tree(root).into_iter().map(Into::into).collect();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = root;
        Vec::new()
    }
}

/// Sends a signal to everything below `root` (not to `root`), and says who got it. Never to pid 1, never to
/// this process, never to a process that took over a number in between. Processes that are started
/// meanwhile are looked for again, a few times; where the signal is a request, those are left out that were
/// started after it was made: they are how an agent cleans up, and not to be ended in the middle of it.
pub fn signal_tree(root: i32, signal: Signal) -> Vec<Proc> {
    if root <= 1 {
        return Vec::new();
    }
    #[cfg(target_os = "linux")]
    {
        let mut hit: Vec<Proc> = Vec::new();
        let until = if signal == Signal::SIGKILL { u64::MAX } else { linux::now().unwrap_or(0) };
        for pass in 0..4 {
            let mut fresh: Vec<Proc> = tree(root).into_iter().filter(|proc| !hit.contains(proc)).collect();
            // What stands in the first list was there before anybody was asked.
            fresh.retain(|proc| pass == 0 || proc.start_time < until);
            if fresh.is_empty() {
                break;
            }
            hit.extend(fresh.into_iter().filter(|proc| linux::send(proc, signal)));
        }
        hit
    }
    #[cfg(not(target_os = "linux"))]
    {
        let group = nix::unistd::getpgid(Some(Pid::from_raw(root)));
        if let Ok(group) = group
            && group.as_raw() > 1
            && group != nix::unistd::getpgrp()
        {
            let _ = nix::sys::signal::killpg(group, signal);
        }
        Vec::new()
    }
}

/// Sends a signal to one process, if it is there, and says who it was. Never to pid 1 or this process.
pub fn signal_one(pid: i32, signal: Signal) -> Option<Proc> {
    if pid <= 1 || pid == std::process::id() as i32 {
        return None;
    }
    let proc = Proc { pid, ppid: 0, start_time: start_time(pid).unwrap_or(0), comm: name(pid)?, sid: 0 };
    kill(Pid::from_raw(pid), signal).ok().map(|()| proc)
}

/// Sends a signal to the process that has this number and was started at this time. False when it is not there.
pub fn signal_same(pid: i32, start_time: u64, signal: Signal) -> bool {
    #[cfg(target_os = "linux")]
    return linux::send(&Proc { pid, ppid: 0, start_time, comm: String::new(), sid: 0 }, signal);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (pid, start_time, signal);
        false
    }
}

/// Whether a process has the controlling side of a terminal open, as a tmux server has for each live pane. None
/// where the system does not say.
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

/// Whether a program can be started from a path: also not from a file system that is mounted `noexec`.
///
/// # Errors
/// Why it cannot.
pub fn can_execute(path: &std::path::Path) -> std::io::Result<()> {
    nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).map_err(std::io::Error::from)
}

/// Whether a process was stopped by a signal (SIGSTOP), and waits for SIGCONT. False where the system does not say.
pub fn is_stopped(pid: i32) -> bool {
    #[cfg(target_os = "linux")]
    return linux::stat(pid).is_some_and(|stat| matches!(stat.state, 'T' | 't'));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        false
    }
}

/// A process of this name that has all these arguments, if there is one.
pub fn find(name: &str, args: &[&[u8]]) -> Option<i32> {
    find_all(name, args).first().map(|proc| proc.pid)
}

/// All processes of this name that have all these arguments. None where the system does not say.
pub fn find_all(name: &str, args: &[&[u8]]) -> Vec<Proc> {
    #[cfg(target_os = "linux")]
    return linux::find_all(name, args).into_iter().map(Into::into).collect();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (name, args);
        Vec::new()
    }
}

/// The processes that work in `dir` and have all these lines (`NAME=value`) in the environment that they were
/// started with. None where the system does not say.
pub fn marked_in(dir: &std::path::Path, marks: &[Vec<u8>]) -> Vec<Proc> {
    #[cfg(target_os = "linux")]
    return linux::marked_in(dir, marks).into_iter().map(Into::into).collect();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (dir, marks);
        Vec::new()
    }
}

/// Ends, at once, every process that was started with an environment in which some line begins with `mark`, and
/// everything below it. It finds what left its group, its session and its parents; not what was started with
/// another environment. Says whom it ended; nobody where the system does not tell environments.
pub fn end_marked(mark: &[u8]) -> Vec<Proc> {
    #[cfg(target_os = "linux")]
    {
        let mut hit: Vec<Proc> = Vec::new();
        // What is started meanwhile has the mark too: a few looks, then whoever is faster has won.
        for _ in 0..ROUNDS {
            let found: Vec<Proc> = linux::marked(mark).into_iter().map(Into::into).collect();
            let fresh: Vec<Proc> = found.into_iter().filter(|proc| !hit.contains(proc)).collect();
            if fresh.is_empty() {
                break;
            }
            for proc in fresh {
                hit.extend(signal_tree(proc.pid, Signal::SIGKILL));
                linux::send(&proc, Signal::SIGKILL);
                hit.push(proc);
            }
        }
        hit
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = mark;
        Vec::new()
    }
}

/// The environment that a process was started with, line by line. Empty where the system does not say.
pub fn environment(pid: i32) -> Vec<Vec<u8>> {
    let text =
        if cfg!(target_os = "linux") { std::fs::read(format!("/proc/{pid}/environ")) } else { Ok(vec![]) };
    text.unwrap_or_default().split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// The arguments that a process was started with, its program first. Empty where the system does not say.
pub fn arguments(pid: i32) -> Vec<Vec<u8>> {
    let text =
        if cfg!(target_os = "linux") { std::fs::read(format!("/proc/{pid}/cmdline")) } else { Ok(vec![]) };
    let text = text.unwrap_or_default();
    text.strip_suffix(b"\0").unwrap_or(&text).split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// The first child of a process.
pub fn first_child(root: i32) -> Option<i32> {
    tree(root).into_iter().find(|proc| proc.ppid == root).map(|proc| proc.pid)
}

/// How the terminal of a process takes what is typed. `None` when it cannot be told.
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

/// See [`terminal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// It reads whole lines, as a shell script's does: then every line that is typed is taken, and the
    /// program has nothing to say about it.
    pub cooked: bool,
    /// The bytes of typed lines (without `cooked`: of all that was typed) that nobody has read yet.
    pub unread: u64,
}

/// Whether the terminal of a process is known to read whole lines.
pub fn tty_is_cooked(pid: i32) -> bool {
    terminal(pid).is_some_and(|terminal| terminal.cooked)
}

/// Whether a process below `root` sleeps where a read of a terminal sleeps. A hint only: it can be true of
/// another read, and is never true where the system does not say.
pub fn seems_to_read(root: i32) -> bool {
    let place = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    tree(root).iter().any(|proc| matches!(place(proc.pid).as_str(), "wait_woken" | "n_tty_read"))
}

/// The CPU seconds, user and system, that `root` and everything below it have used, with those of children
/// they have reaped. 0 where the system does not say.
pub fn cpu_seconds(root: i32) -> f64 {
    #[cfg(target_os = "linux")]
    {
        let own = linux::stat(root);
        let ticks = own.iter().chain(&linux::tree(root)).map(linux::ticks).fold(0, u64::saturating_add);
        ticks as f64 / procfs::ticks_per_second().max(1) as f64
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = root;
        0.0
    }
}

/// The parents of a process, nearest first, up to pid 1. Empty where the system does not say.
pub fn ancestors(pid: i32) -> Vec<i32> {
    let mut line = Vec::new();
    #[cfg(target_os = "linux")]
    {
        let mut at = pid;
        while let Some(stat) = linux::stat(at)
            && stat.ppid > 0
            && !line.contains(&stat.ppid)
        {
            line.push(stat.ppid);
            at = stat.ppid;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (pid, &mut line);
    line
}

#[cfg(target_os = "linux")]
impl From<procfs::process::Stat> for Proc {
    fn from(stat: procfs::process::Stat) -> Self {
        let procfs::process::Stat { pid, ppid, starttime: start_time, comm, session: sid, .. } = stat;
        Self { pid, ppid, start_time, comm, sid }
    }
}

#[cfg(target_os = "linux")]
mod linux;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
