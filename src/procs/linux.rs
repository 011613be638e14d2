//! Reads `/proc` and sends signals that cannot reach the wrong process.

use std::os::fd::OwnedFd;
use std::sync::LazyLock;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
pub(super) use procfs::process::Stat;
pub(super) use procfs::ticks_per_second;
use procfs::{Current, FromRead, LoadAverage, Uptime};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use tokio::sync::Semaphore;

use crate::descriptors;

/// The current time in clock ticks since boot, as in [`Proc::start_time`](super::Proc::start_time).
pub(super) fn now() -> Option<u64> {
    // /proc/uptime has two decimals: rounding keeps a product slightly too small from losing a tick.
    Some((Uptime::current().ok()?.uptime * ticks_per_second() as f64).round() as u64)
}

/// The load of this machine in the last minute.
pub fn load() -> Option<f32> {
    LoadAverage::current().ok().map(|load| load.one)
}

/// `None` if the process is gone, also if it ended during the read.
pub(super) fn stat(pid: i32) -> Option<Stat> {
    Stat::from_file(format!("/proc/{pid}/stat")).ok()
}

fn pidfd(pid: i32) -> Option<OwnedFd> {
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

/// Sends a signal to the process with this pid and start time. False if it does not exist, or is pid 1 or this process.
/// The pidfd is opened before the comparison, so the process cannot be confused with another. Linux before 5.3 has no
/// pidfd; there, a gap of some microseconds remains.
pub fn signal_same(pid: i32, start_time: u64, signal: Signal) -> bool {
    if pid <= 1 || pid == Pid::this().as_raw() {
        return false;
    }
    let held = pidfd(pid);
    if stat(pid).is_none_or(|stat| stat.starttime != start_time) {
        return false;
    }
    if let Some(fd) = held
        && let Some(number) = rustix::process::Signal::from_named_raw(signal as i32)
    {
        return pidfd_send_signal(fd, number).is_ok();
    }
    kill(Pid::from_raw(pid), signal).is_ok()
}
