//! Reads `/proc` and sends signals that cannot reach the wrong process.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::LazyLock;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::Stat;
use procfs::{Current, FromRead, LoadAverage, Uptime, ticks_per_second};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use tokio::sync::Semaphore;

use super::process::{Proc, environment};
use crate::descriptors;

/// User and system time of a process and of the children it reaped, in clock ticks.
pub(super) fn ticks(stat: &Stat) -> u64 {
    let reaped = [stat.cutime, stat.cstime].map(|ticks| u64::try_from(ticks).unwrap_or(0));
    [stat.utime, stat.stime].into_iter().chain(reaped).fold(0, u64::saturating_add)
}

/// The current time in clock ticks since boot, as in [`Proc::start_time`].
pub(super) fn now() -> Option<u64> {
    // /proc/uptime has two decimals: rounding keeps a product slightly too small from losing a tick.
    Some((Uptime::current().ok()?.uptime * ticks_per_second() as f64).round() as u64)
}

/// The load of the last minute.
pub(super) fn load() -> Option<f32> {
    LoadAverage::current().ok().map(|load| load.one)
}

/// How long ago a process was started; may be one tick too much.
pub(super) fn age(pid: i32) -> Option<Duration> {
    let ticks = now()?.checked_sub(stat(pid)?.starttime)?;
    Some(Duration::from_millis(ticks.saturating_mul(1000).checked_div(ticks_per_second())?))
}

/// `None` if the process is gone, also if it ended during the read.
pub(super) fn stat(pid: i32) -> Option<Stat> {
    Stat::from_file(format!("/proc/{pid}/stat")).ok()
}

/// Whether a process has ended and waits to be reaped.
pub(super) fn is_dead(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X')
}

/// As [`super::find_all`].
pub(super) fn find_all(name: &str, args: &[&[u8]]) -> Vec<Stat> {
    let has_args = |stat: &Stat| {
        let line = std::fs::read(format!("/proc/{}/cmdline", stat.pid)).unwrap_or_default();
        args.iter().all(|arg| line.split(|byte| *byte == 0).any(|word| word == *arg))
    };
    // The name alone costs the kernel less than the state of each process.
    let is_named = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_ascii_end() == name.as_bytes())
    };
    pids().into_iter().filter(is_named).filter_map(live).filter(has_args).collect()
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

/// Processes whose environment has a line that begins with `mark`, without this process.
pub(super) fn marked(mark: &[u8]) -> Vec<Stat> {
    let own = Pid::this().as_raw();
    let is_marked = |stat: &Stat| environment(stat.pid).iter().any(|line| line.starts_with(mark));
    all().into_iter().filter(|stat| stat.pid > 1 && stat.pid != own && is_marked(stat)).collect()
}

/// All processes that this user can see, without zombies.
pub(super) fn all() -> Vec<Stat> {
    pids().into_iter().filter_map(live).collect()
}

/// As [`stat`], without zombies.
fn live(pid: i32) -> Option<Stat> {
    stat(pid).filter(|stat| !is_dead(stat))
}

fn pids() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

pub(super) fn tree(root: i32) -> Vec<Stat> {
    if root <= 1 {
        return Vec::new();
    }
    pick(root, all())
}

/// The members of `rest` that belong to the tree of `root`, nearest first.
pub(super) fn pick(root: i32, mut rest: Vec<Stat>) -> Vec<Stat> {
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

pub(super) fn pidfd(pid: i32) -> Option<OwnedFd> {
    pidfd_open(rustix::process::Pid::from_raw(pid)?, PidfdFlags::NONBLOCK).ok()
}

/// Waits for the end of a process with a pidfd. False if there is none.
#[expect(
    deprecated,
    reason = "what replaces it is unsafe; an OwnedFd, which is open and the same for life, keeps its contract"
)]
pub(super) async fn wait_end(pid: i32) -> bool {
    static SHARE: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(descriptors::share()));
    let Ok(_taken) = SHARE.try_acquire() else { return false };
    let Some(fd) = pidfd(pid) else { return false };
    let fd = tokio::io::unix::AsyncFd::with_interest(fd, tokio::io::Interest::READABLE);
    match fd {
        Ok(fd) => fd.readable().await.is_ok(),
        Err(_) => false,
    }
}

/// Sends the signal if this very process still lives. The pidfd is opened before the comparison, so the process
/// cannot be confused with another. Linux before 5.3 has no pidfd; there, a gap of some microseconds remains.
pub(super) fn send(proc: &Proc, signal: Signal) -> bool {
    if proc.pid <= 1 || proc.pid == Pid::this().as_raw() {
        return false;
    }
    let held = pidfd(proc.pid);
    if stat(proc.pid).is_none_or(|stat| stat.starttime != proc.start_time) {
        return false;
    }
    if let Some(fd) = held
        && let Some(number) = rustix::process::Signal::from_named_raw(signal as i32)
    {
        return pidfd_send_signal(fd, number).is_ok();
    }
    kill(Pid::from_raw(proc.pid), signal).is_ok()
}
