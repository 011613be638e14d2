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
        return !matches!(stat.state, b'Z' | b'X');
    }
    !matches!(kill(Pid::from_raw(pid), None), Err(nix::errno::Errno::ESRCH))
}

/// When a process was started, as in [`Proc`]. None when it is not there, or the system does not say.
pub fn start_time(pid: i32) -> Option<u64> {
    #[cfg(target_os = "linux")]
    return linux::stat(pid).map(|stat| stat.start_time);
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
        let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
        let own = linux::stat(root).map_or(0, |stat| stat.ticks);
        let ticks = linux::tree(root).iter().fold(own, |sum, stat| sum.saturating_add(stat.ticks));
        ticks as f64 / per_second.max(1) as f64
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
mod linux {
    //! `/proc`, and signals that cannot hit the wrong process.

    use std::collections::HashSet;
    use std::os::fd::OwnedFd;
    use std::sync::LazyLock;

    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    use tokio::sync::Semaphore;

    use super::{Pid, Proc, Signal, kill};
    use crate::room;

    /// What `/proc/PID/stat` says.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(super) struct Stat {
        pub pid: i32,
        pub comm: String,
        pub state: u8,
        pub ppid: i32,
        pub sid: i32,
        /// User and system, own and reaped children's.
        pub ticks: u64,
        pub start_time: u64,
    }

    impl From<Stat> for Proc {
        fn from(stat: Stat) -> Self {
            let Stat { pid, ppid, start_time, comm, sid, .. } = stat;
            Self { pid, ppid, start_time, comm, sid }
        }
    }

    /// Reads the line. The name may hold anything, also `)`: the fields begin after the last one.
    pub(super) fn parse(line: &[u8]) -> Option<Stat> {
        let text = String::from_utf8_lossy(line);
        let (head, tail) = text.rsplit_once(')')?;
        let (pid, comm) = head.split_once('(')?;
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
        // Numbering: fields[0] is the third of proc(5).
        let ticks = (11..15).try_fold(0u64, |sum, index| {
            Some(sum.saturating_add(u64::try_from(number(index)?).unwrap_or(0)))
        })?;
        Some(Stat {
            pid: pid.trim().parse().ok()?,
            comm: comm.to_owned(),
            state: *fields.first()?.as_bytes().first()?,
            ppid: i32::try_from(number(1)?).ok()?,
            sid: i32::try_from(number(3)?).ok()?,
            ticks,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }

    /// The present, as [`Stat::start_time`] counts it.
    pub(super) fn now() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/uptime").ok()?;
        let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
        let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
        // Two places, as it is written: a product a hair too small must not lose a tick.
        Some((seconds * ticks as f64).round() as u64)
    }

    pub(super) fn stat(pid: i32) -> Option<Stat> {
        parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// As [`super::find_all`].
    pub(super) fn find_all(name: &str, args: &[&[u8]]) -> Vec<Stat> {
        let has_args = |stat: &Stat| {
            let line = std::fs::read(format!("/proc/{}/cmdline", stat.pid)).unwrap_or_default();
            args.iter().all(|arg| line.split(|byte| *byte == 0).any(|word| word == *arg))
        };
        all().into_iter().filter(|stat| stat.comm == name).filter(has_args).collect()
    }

    /// As [`super::marked_in`].
    pub(super) fn marked_in(dir: &std::path::Path, marks: &[Vec<u8>]) -> Vec<Stat> {
        let is_there = |stat: &Stat| {
            std::fs::read_link(format!("/proc/{}/cwd", stat.pid)).is_ok_and(|cwd| cwd.starts_with(dir))
        };
        let is_marked = |stat: &Stat| {
            let text = std::fs::read(format!("/proc/{}/environ", stat.pid)).unwrap_or_default();
            let lines: HashSet<&[u8]> = text.split(|byte| *byte == 0).collect();
            marks.iter().all(|mark| lines.contains(mark.as_slice()))
        };
        let own = Pid::this().as_raw();
        all().into_iter().filter(|stat| stat.pid != own && is_there(stat) && is_marked(stat)).collect()
    }

    /// Those with a line in their environment that begins so; never this one.
    pub(super) fn marked(mark: &[u8]) -> Vec<Stat> {
        let own = Pid::this().as_raw();
        let is_marked = |stat: &Stat| super::environment(stat.pid).iter().any(|line| line.starts_with(mark));
        all().into_iter().filter(|stat| stat.pid > 1 && stat.pid != own && is_marked(stat)).collect()
    }

    /// All processes that this user can see.
    fn all() -> Vec<Stat> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(stat).filter(|stat| !matches!(stat.state, b'Z' | b'X')).collect()
    }

    pub(super) fn tree(root: i32) -> Vec<Stat> {
        if root <= 1 {
            return Vec::new();
        }
        pick(root, all())
    }

    /// Those of `rest` that belong to `root`, nearest first.
    pub(super) fn pick(root: i32, mut rest: Vec<Stat>) -> Vec<Stat> {
        let mut members: HashSet<i32> = [root].into();
        let mut tree = Vec::new();
        rest.retain(|stat| stat.pid > 1 && stat.pid != root);
        loop {
            let belongs = |stat: &Stat| members.contains(&stat.ppid) || members.contains(&stat.sid);
            let (found, left): (Vec<_>, Vec<_>) = rest.into_iter().partition(belongs);
            if found.is_empty() {
                return tree;
            }
            members.extend(found.iter().map(|stat| stat.pid));
            tree.extend(found);
            rest = left;
        }
    }

    pub(super) fn pidfd(pid: i32) -> Option<OwnedFd> {
        pidfd_open(rustix::process::Pid::from_raw(pid)?, PidfdFlags::NONBLOCK).ok()
    }

    /// Waits on a pidfd. False when there is none to be had.
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe; an OwnedFd, which is open and the same for life, keeps its contract"
    )]
    pub(super) async fn wait_end(pid: i32) -> bool {
        static SHARE: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(room::share()));
        let Ok(_taken) = SHARE.try_acquire() else { return false };
        let Some(fd) = pidfd(pid) else { return false };
        let fd = tokio::io::unix::AsyncFd::with_interest(fd, tokio::io::Interest::READABLE);
        match fd {
            Ok(fd) => fd.readable().await.is_ok(),
            Err(_) => false,
        }
    }

    /// Sends the signal if that very process still lives. A pidfd holds on to it from before the comparison;
    /// where there is none (Linux before 5.3) the gap is some microseconds.
    pub(super) fn send(proc: &Proc, signal: Signal) -> bool {
        if proc.pid <= 1 || proc.pid == Pid::this().as_raw() {
            return false;
        }
        let held = pidfd(proc.pid);
        if stat(proc.pid).is_none_or(|stat| stat.start_time != proc.start_time) {
            return false;
        }
        if let Some(fd) = held
            && let Some(number) = rustix::process::Signal::from_named_raw(signal as i32)
        {
            return pidfd_send_signal(fd, number).is_ok();
        }
        kill(Pid::from_raw(proc.pid), signal).is_ok()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Child, Command};

    use proptest::prelude::*;

    use super::*;

    /// Ends its process however the test ends.
    struct Guard(Child);

    impl Drop for Guard {
        fn drop(&mut self) {
            signal_tree(self.0.id() as i32, Signal::SIGKILL);
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A shell with children; says when they are there.
    fn family(script: &str) -> Guard {
        use std::io::Read;
        let mut child =
            Command::new("sh").args(["-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut byte = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        Guard(child)
    }

    fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !done() {
            assert!(std::time::Instant::now() < until, "waited in vain: {what}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn a_tree_holds_children_and_what_made_itself_a_session() {
        let family = family("sleep 1000 & setsid sh -c 'sleep 1001 & sleep 1002; :' & echo; wait");
        let root = family.0.id() as i32;
        wait_until("all five", || tree(root).iter().filter(|proc| proc.comm == "sleep").count() == 3);
        let members = tree(root);
        assert!(members.iter().all(|proc| proc.pid != root));
        let deepest =
            members.iter().find(|proc| proc.sid != nix::unistd::getsid(None).unwrap().as_raw()).unwrap();
        assert!(ancestors(deepest.pid).contains(&root));
        assert!(ancestors(root).contains(&Pid::this().as_raw()));
        let hit = signal_tree(root, Signal::SIGKILL);
        assert!(hit.len() >= 3 && hit.iter().all(|proc| proc.pid != root), "{hit:?}");
        wait_until("nobody is left", || tree(root).is_empty());
    }

    #[test]
    fn a_pid_that_was_reused_is_not_hit() {
        let family = family("echo; exec sleep 1000");
        let pid = family.0.id() as i32;
        let real = Proc { pid, ppid: 0, start_time: start_time(pid).unwrap(), comm: "sh".into(), sid: 0 };
        assert!(!linux::send(&Proc { start_time: real.start_time + 1, ..real.clone() }, Signal::SIGKILL));
        assert!(is_alive(pid));
        assert!(!linux::send(&Proc { pid: 1, ..real.clone() }, Signal::SIGCONT));
        assert!(!linux::send(&Proc { pid: Pid::this().as_raw(), ..real.clone() }, Signal::SIGCONT));
        assert!(linux::send(&real, Signal::SIGKILL));
        wait_until("it is dead", || !is_alive(pid));
        assert!(signal_tree(1, Signal::SIGCONT).is_empty() && signal_tree(-1, Signal::SIGCONT).is_empty());
    }

    #[test]
    fn who_is_asked_to_end_may_start_what_it_needs_for_that() {
        let dir = tempfile::tempdir().unwrap();
        let saved = dir.path().join("saved");
        for _ in 0..10 {
            let script = format!(
                "(trap 'sleep 0.02; mkdir {}; exit' TERM; sleep 1000 & echo; wait) & wait",
                saved.display()
            );
            let family = family(&script);
            let root = family.0.id() as i32;
            wait_until("all are there", || tree(root).iter().any(|proc| proc.comm == "sleep"));
            assert!(tree(root).iter().all(|proc| proc.start_time <= linux::now().unwrap()));
            signal_tree(root, Signal::SIGTERM);
            wait_until("they have ended", || tree(root).is_empty());
            assert!(saved.is_dir(), "the agent was ended in the middle of its end");
            std::fs::remove_dir(&saved).unwrap();
        }
    }

    #[test]
    fn work_is_counted() {
        let family = family("echo; while :; do :; done");
        wait_until("it worked", || cpu_seconds(family.0.id() as i32) > 0.05);
        assert_eq!(cpu_seconds(-1), 0.0);
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_waited_for() {
        let mut family = family("echo; exec sleep 1000");
        let pid = family.0.id() as i32;
        let early = tokio::time::timeout(std::time::Duration::from_millis(20), wait_gone(pid)).await;
        assert!(early.is_err(), "it still lives");
        family.0.kill().unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(20), wait_gone(pid)).await.unwrap();
        family.0.wait().unwrap();
        wait_gone(pid).await;
        wait_gone(0).await;
        wait_gone(-5).await;
    }

    #[test]
    fn a_name_may_hold_anything() {
        let line = b"42 (a) b (c)) S 1 42 7 0 -1 4 0 0 0 0 1 2 3 4 20 0 1 0 777 0 0";
        let stat = linux::parse(line).unwrap();
        assert_eq!((stat.pid, stat.ppid, stat.sid, stat.start_time, stat.ticks), (42, 1, 7, 777, 10));
        assert_eq!(stat.comm, "a) b (c)");
    }

    #[test]
    fn a_root_that_ended_is_known_by_its_session() {
        let stat = |pid: i32, ppid, sid| {
            let line = format!("{pid} (x) S {ppid} 0 {sid} 0 -1 4 0 0 0 0 1 2 3 4 20 0 1 0 777 0 0");
            linux::parse(line.as_bytes()).unwrap()
        };
        let all = vec![stat(1, 0, 1), stat(60, 1, 60), stat(51, 1, 50), stat(70, 51, 70), stat(71, 1, 70)];
        let picked: Vec<i32> = linux::pick(50, all).iter().map(|stat| stat.pid).collect();
        assert_eq!(picked, [51, 70, 71]);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in prop::collection::vec(any::<u8>(), 0..100), text in "[0-9() SZ-]{0,80}") {
            let _ = (linux::parse(&line), linux::parse(text.as_bytes()));
        }
    }
}
