//! Quiet hours: a time of each day in which nothing is sent.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, Timelike};

/// The format of [`QuietHours::parse`], for messages.
pub const QUIET_FORM: &str = "two times of day like \"22:00-07:00\"";

const DAY: u32 = 24 * 3600;

/// A time of each day, in seconds after midnight of the local time. It may contain midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    from: u32,
    to: u32,
}

impl QuietHours {
    /// Reads `22:00-07:00`. `None` if it is not of this form, or both times are equal.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (time_of_day(from)?, time_of_day(to)?);
        (from != to).then_some(Self { from, to })
    }

    /// The time until the quiet hours end; `None` outside of them.
    pub fn left(self, wall: DateTime<FixedOffset>) -> Option<Duration> {
        let now = wall.num_seconds_from_midnight();
        let after_start = (now + DAY - self.from) % DAY;
        let length = (self.to + DAY - self.from) % DAY;
        (after_start < length).then(|| Duration::from_secs(u64::from(length - after_start)))
    }
}

/// Seconds after midnight.
fn time_of_day(text: &str) -> Option<u32> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?;
    let (hours, minutes): (u32, u32) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(hours * 3600 + minutes * 60)
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |seconds: u32| format!("{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
        write!(f, "{}-{}", time(self.from), time(self.to))
    }
}
