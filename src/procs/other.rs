//! Systems without `/proc`: no process is known.

use nix::sys::signal::Signal;

/// The fields of a process that are used on Linux.
pub(super) struct Stat {
    pub(super) pid: i32,
    pub(super) ppid: i32,
    pub(super) session: i32,
    pub(super) state: char,
    pub(super) comm: String,
    pub(super) starttime: u64,
    pub(super) utime: u64,
    pub(super) stime: u64,
    pub(super) cutime: i64,
    pub(super) cstime: i64,
}

pub(super) fn stat(_pid: i32) -> Option<Stat> {
    None
}

pub(super) fn now() -> Option<u64> {
    None
}

pub(super) fn ticks_per_second() -> u64 {
    1
}

pub(super) async fn wait_end(_pid: i32) -> bool {
    false
}

/// The load is unknown.
pub fn load() -> Option<f32> {
    None
}

/// A later process with the same pid looks the same, so none is signaled.
pub fn signal_same(_pid: i32, _start_time: u64, _signal: Signal) -> bool {
    false
}
