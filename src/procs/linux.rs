//! What `/proc` says. Used by [`super`] alone.

//! `/proc`, and signals that cannot hit the wrong process.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::LazyLock;
use std::time::Duration;

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
    let ticks = (11..15)
        .try_fold(0u64, |sum, index| Some(sum.saturating_add(u64::try_from(number(index)?).unwrap_or(0))))?;
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

/// How long ago a process was started; it may be a tick more.
pub(super) fn age(pid: i32) -> Option<Duration> {
    let ticks = now()?.checked_sub(stat(pid)?.start_time)?;
    let per_second = u64::try_from(nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??).ok()?;
    Some(Duration::from_millis(ticks.saturating_mul(1000).checked_div(per_second)?))
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
