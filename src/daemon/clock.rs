//! The two clocks of the daemon.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, Local};

/// The wall clock with the local offset.
pub(crate) fn local_now() -> DateTime<FixedOffset> {
    Local::now().fixed_offset()
}

/// The monotonic clock since boot, which a new daemon shares with the old one.
pub(crate) fn monotonic() -> Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}
