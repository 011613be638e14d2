//! How long a screen has been still, and what was seen on it.
//!
//! Stillness is *accumulated* from one look to the next and a gap between two looks counts for little, so
//! that time in which nobody looked (a suspended machine, a tmux that did not answer) is never silence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::hook_signals::TurnEnd;
use crate::screen::Reading;

/// The most that the time between two looks adds to stillness.
const MAX_GAP: Duration = Duration::from_secs(6);

/// How long a ready screen must be still before the agent's turn counts as over: between two tool calls an
/// agent may show its box for a moment.
const IDLE_QUIET: Duration = Duration::from_secs(4);

/// How long after a change of size a redraw is not activity.
const SETTLE: Duration = Duration::from_secs(4);

/// What was seen of one run's screen.
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
    /// Time-outs that were forgiven because the agent was computing.
    pub(super) extensions: u32,
    /// Whether it is computing is being found out.
    pub(super) probing: bool,
    /// The agent printed something that is neither its prompt nor what stood there before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    printed: bool,
    /// The agent's hooks reported work, and no end of the turn since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_turn: bool,
    /// The agent said that it is at work.
    pub(super) working: bool,
    /// The last look saw its input box.
    #[serde(default)]
    pub(super) ready: bool,
    /// That its turn is over was told since the screen changed last.
    #[serde(default)]
    pub(super) idle_told: bool,
    /// The agent said that its turn is over, and nothing has come of it or after it since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) rests: bool,
    /// It said last that it goes on though its turn would be over: something that runs will wake it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) held: bool,
    /// Texts of a person that are being typed. A daemon that takes over types none of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) typing: u32,
    /// The agent said that its turn is over: what follows is being found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<TurnEnd>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Watch {
    /// How long the screen has been still.
    pub fn stable(&self) -> Duration {
        self.stable
    }

    /// True when one more look can make it still for this long.
    pub(super) fn is_nearly_still_for(&self, limit: Duration) -> bool {
        self.stable.saturating_add(MAX_GAP) >= limit
    }

    /// Takes a look: `None` when the pane printed nothing since the last one. True when the screen differs
    /// from the look before; the first look differs from nothing.
    pub(super) fn look(&mut self, reading: Option<&Reading>, now: Duration) -> bool {
        let gap = self.seen.map_or(Duration::ZERO, |seen| now.saturating_sub(seen)).min(MAX_GAP);
        self.seen = Some(now);
        self.stable = self.stable.saturating_add(gap);
        let Some(reading) = reading else { return false };
        self.working = reading.working;
        self.rests &= !reading.working;
        self.ready = reading.ready && reading.blocked.is_none();
        self.printed |= reading.printed;
        let resized = self.print.is_some() && self.size != reading.size;
        if resized {
            self.settled = Some(now.saturating_add(SETTLE));
        }
        let settling = self.settled.is_some_and(|at| now < at);
        let differs = self.print != Some(reading.fingerprint) && !resized && !settling;
        // An agent whose own mark says that it works may wait long for its model, with nothing but its timer moving.
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

    /// True when the agent printed something.
    pub(super) fn has_printed(&self) -> bool {
        self.printed
    }

    /// True when silence can mean that the agent has answered: it printed something, and no hook reported a turn
    /// that goes on. A report can be lost: then the input box shows that the turn has ended.
    pub(super) fn is_answered(&self) -> bool {
        self.printed && (!self.in_turn || self.looks_idle())
    }

    /// Starts counting anew: the screen changed.
    pub(super) fn restart(&mut self) {
        self.stable = Duration::ZERO;
        self.extensions = 0;
        (self.idle_told, self.ticked) = (false, false);
    }

    /// Something else showed so long ago that the agent is active.
    pub(super) fn was_active(&mut self, ago: Duration) {
        if ago < self.stable {
            self.restart();
            self.stable = ago;
        }
    }

    /// True when the agent's turn is over: it said so, or its input box is there, it does not say that it is at work,
    /// and nothing has changed for a few seconds.
    pub(super) fn idle(&self) -> bool {
        self.rests || self.looks_idle()
    }

    /// The same, as far as the screen tells.
    pub(super) fn looks_idle(&self) -> bool {
        self.ready && !self.working && self.stable >= IDLE_QUIET
    }

    /// Forgives one time-out.
    pub(super) fn extend(&mut self) {
        self.stable = Duration::ZERO;
        self.extensions = self.extensions.saturating_add(1);
    }

    /// Forgets when the last look was, what it saw and what was being found out: another daemon took it.
    pub(super) fn forget_time(&mut self) {
        (self.ready, self.idle_told, self.rests) = (false, false, false);
        self.seen = None;
        self.settled = None;
        self.probing = false;
        // Whatever the agent did meanwhile: the screen tells.
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
    fn stillness_accumulates_and_a_change_resets_it() {
        let a = || Some(reading(1, (200, 50)));
        let b = || Some(reading(2, (200, 50)));
        assert_eq!(stable_after(&[(0, a()), (2, a()), (4, None), (6, None)]), 6);
        assert_eq!(stable_after(&[(0, a()), (2, None), (4, b()), (6, None)]), 2);
    }

    #[test]
    fn a_turn_is_over_when_a_ready_screen_was_still_for_some_seconds() {
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
    fn a_gap_in_which_nobody_looked_is_not_silence() {
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
