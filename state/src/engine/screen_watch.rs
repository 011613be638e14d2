//! How long a screen has been still, and the observations of it.
//!
//! The still time is accumulated from look to look, and a gap between two looks counts at most [`MAX_LOOK_GAP`]. So
//! time without looks (a suspended machine, a tmux that did not answer) is never silence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::hook_signals::TurnEnd;
use crate::model::is_default;
use crate::screen::Reading;

/// The most that the time between two looks adds to stillness.
const MAX_LOOK_GAP: Duration = Duration::from_secs(6);

/// How long a ready screen must be still before the turn counts as over: a box may show briefly between tool calls.
const IDLE_QUIET: Duration = Duration::from_secs(4);

/// How long after a change of size a redraw is not activity.
const RESIZE_SETTLE_TIME: Duration = Duration::from_secs(4);

/// The observations of one run's screen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watch {
    print: Option<[u8; 16]>,
    #[serde(default)]
    calm_print: [u8; 16],
    #[serde(default)]
    rows: (usize, u64),
    /// Only a clock or a spinner moved since the screen was last active.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ticked: bool,
    size: (u16, u16),
    stable: Duration,
    seen: Option<Duration>,
    settled: Option<Duration>,
    /// Timeouts that did not count because the agent was computing.
    pub(super) extensions: u32,
    /// The CPU time of its processes is being checked.
    pub(super) probing: bool,
    /// The agent printed something besides its prompt and earlier text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    printed: bool,
    /// The agent's hooks reported work, and no end of the turn since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_turn: bool,
    pub(super) working: bool,
    /// The last look saw its input box.
    #[serde(default)]
    pub(super) ready: bool,
    /// The end of the turn was reported since the last change of the screen.
    #[serde(default, rename = "idle_told")]
    pub(super) idle_reported: bool,
    /// The agent's hook reported the end of the turn, and nothing has happened since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) rests: bool,
    /// The agent's hook last reported that a background task will continue the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) held: bool,
    /// The percentage of the agent's context that was used at its last report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<u8>,
    /// How many texts of a person are being typed. The next daemon types none of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) typing: u32,
    /// The reported end of a turn that is being verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<TurnEnd>,
}

impl Watch {
    /// How long the screen has been still.
    pub fn stable(&self) -> Duration {
        self.stable
    }

    /// True if the still time can reach this limit by the next look.
    pub(super) fn is_nearly_still_for(&self, limit: Duration) -> bool {
        self.stable.saturating_add(MAX_LOOK_GAP) >= limit
    }

    /// Records a look; `None` if the pane printed nothing since the last one. Returns whether the screen has changed
    /// since then; the first look returns false.
    pub(super) fn look(&mut self, reading: Option<&Reading>, now: Duration) -> bool {
        let gap = self.seen.map_or(Duration::ZERO, |seen| now.saturating_sub(seen)).min(MAX_LOOK_GAP);
        self.seen = Some(now);
        self.stable = self.stable.saturating_add(gap);
        let Some(reading) = reading else { return false };
        self.working = reading.working;
        self.rests &= !reading.working;
        self.ready = reading.ready && reading.blocked.is_none();
        self.printed |= reading.printed;
        let resized = self.print.is_some() && self.size != reading.size;
        if resized {
            self.settled = Some(now.saturating_add(RESIZE_SETTLE_TIME));
        }
        let settling = self.settled.is_some_and(|at| now < at);
        let differs = self.print != Some(reading.fingerprint) && !resized && !settling;
        // An agent that shows its mark of work may wait long for its model, while only its timer moves.
        let ticks = self.print.is_some()
            && (self.calm_print, self.rows) == (reading.calm_fingerprint, reading.rows)
            && !reading.working;
        if differs && ticks {
            self.ticked = true;
        } else if differs {
            self.restart();
        }
        let changed = differs && !ticks && self.print.is_some();
        self.print = Some(reading.fingerprint);
        (self.calm_print, self.rows) = (reading.calm_fingerprint, reading.rows);
        self.size = reading.size;
        changed
    }

    /// True if no screen was read since the run began to wait for one.
    pub(super) fn is_unread(&self) -> bool {
        self.print.is_none()
    }

    pub(super) fn has_printed(&self) -> bool {
        self.printed
    }

    /// True if silence can mean that the agent has answered: it printed something, and its hooks report no unfinished
    /// turn. A report can be lost; then the input box shows that the turn has ended.
    pub(super) fn is_answered(&self) -> bool {
        self.printed && (!self.in_turn || self.looks_idle())
    }

    /// Restarts the still time: the screen changed.
    pub(super) fn restart(&mut self) {
        self.stable = Duration::ZERO;
        self.extensions = 0;
        (self.idle_reported, self.ticked) = (false, false);
    }

    /// Other evidence shows that the agent was active this long ago.
    pub(super) fn was_active(&mut self, ago: Duration) {
        if ago < self.stable {
            self.restart();
            self.stable = ago;
        }
    }

    /// True when the agent's turn has ended: its hook reported it, or its input box is shown, it does not work, and
    /// nothing has changed for a few seconds.
    pub(super) fn idle(&self) -> bool {
        self.rests || self.looks_idle()
    }

    /// The same, from the screen alone.
    pub(super) fn looks_idle(&self) -> bool {
        self.ready && !self.working && self.stable >= IDLE_QUIET
    }

    /// Grants another timeout, because the agent is computing.
    pub(super) fn extend(&mut self) {
        self.stable = Duration::ZERO;
        self.extensions = self.extensions.saturating_add(1);
    }

    /// Forgets the last look and open checks, which belong to an earlier daemon.
    pub(super) fn forget_time(&mut self) {
        (self.ready, self.idle_reported, self.rests) = (false, false, false);
        self.seen = None;
        self.settled = None;
        self.probing = false;
        // The agent may have worked meanwhile: the screen decides.
        self.over = self.over.map(|_| TurnEnd::Doubted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(print: u8, size: (u16, u16)) -> Reading {
        Reading { fingerprint: [print; 16], calm_fingerprint: [print; 16], size, ..Reading::default() }
    }

    fn stable_after(looks: &[(u64, Option<Reading>)]) -> u64 {
        let mut watch = Watch::default();
        for (at, look) in looks {
            watch.look(look.as_ref(), Duration::from_secs(*at));
        }
        watch.stable().as_secs()
    }

    #[test]
    fn unchanged_time_accumulates_and_a_change_resets_it() {
        let a = || Some(reading(1, (200, 50)));
        let b = || Some(reading(2, (200, 50)));
        assert_eq!(stable_after(&[(0, a()), (2, a()), (4, None), (6, None)]), 6);
        assert_eq!(stable_after(&[(0, a()), (2, None), (4, b()), (6, None)]), 2);
    }

    #[test]
    fn turn_ends_after_seconds_of_an_unchanged_ready_screen() {
        let idle = |looks: &[(u64, Option<Reading>)]| {
            let mut watch = Watch::default();
            for (at, look) in looks {
                watch.look(look.as_ref(), Duration::from_secs(*at));
            }
            watch.idle()
        };
        let ready = |print| Some(Reading { ready: true, ..reading(print, (200, 50)) });
        let works = Some(Reading { working: true, ..ready(1).unwrap() });
        let blocked = crate::screen::Blocked { startup: false, what: "x".into() };
        let blocked = Some(Reading { blocked: Some(blocked), ..ready(1).unwrap() });
        assert!(idle(&[(0, ready(1)), (2, None), (4, None)]));
        assert!(!idle(&[(0, ready(1)), (2, None)]), "too soon");
        assert!(!idle(&[(0, ready(1)), (2, None), (4, ready(2))]), "it changed");
        assert!(!idle(&[(0, reading(1, (200, 50)).into()), (2, None), (4, None)]), "no input box");
        assert!(!idle(&[(0, works), (2, None), (4, None)]), "at work");
        assert!(!idle(&[(0, blocked), (2, None), (4, None)]), "a dialog");
    }

    #[test]
    fn gap_without_looks_is_not_silence() {
        let a = || Some(reading(1, (200, 50)));
        assert_eq!(stable_after(&[(0, a()), (2, None), (36_000, None)]), 8);
    }

    #[test]
    fn a_resize_and_its_redraw_are_not_activity() {
        let big = |n| Some(reading(n, (200, 50)));
        let small = |n| Some(reading(n, (80, 23)));
        assert_eq!(stable_after(&[(0, big(1)), (2, big(1)), (4, small(2)), (6, small(3)), (8, None)]), 8);
        assert_eq!(stable_after(&[(0, big(1)), (2, small(2)), (8, small(3))]), 0, "later change is");
    }
}
