//! Which panes have to be captured after a `list`: those that printed, and nothing else.
//!
//! Pure; the daemon's tick uses it. tmux keeps the time of a window's last output in whole seconds, so an
//! unchanged time does not mean silence: what a pane prints in the very second in which the list was taken
//! leaves the time as it was. A pane is therefore dirty when its time changed *or* is not older than the
//! second of the list before this one. Resize and death do not touch that time and are looked at as well.

use std::collections::HashMap;

use super::Row;

/// Seconds after which a pane is captured even when nothing says that it printed.
pub const FULL_CAPTURE_EVERY: i64 = 60;

/// What was seen of the panes so far.
#[derive(Debug, Default)]
pub struct Gate {
    seen: HashMap<String, Seen>,
    /// The second in which the list before this one was sent.
    sent: Option<i64>,
}

#[derive(Debug)]
struct Seen {
    activity: i64,
    size: (u16, u16),
    dead: bool,
    captured: i64,
}

impl Gate {
    /// Takes one whole list and gives the ids of the panes to capture now, in the list's order. `sent_at` is
    /// the wall clock, in whole Unix seconds rounded down, read **before** the list was asked for. Panes that
    /// are no longer listed are forgotten. The caller captures every pane it is given, or calls
    /// [`Gate::forget`] for those it could not capture.
    pub fn dirty(&mut self, rows: &[Row], sent_at: i64) -> Vec<String> {
        let before = self.sent.replace(sent_at);
        let mut old = std::mem::take(&mut self.seen);
        let mut dirty = Vec::new();
        for row in rows {
            let known = old.remove(&row.pane);
            let is_dirty = known.as_ref().is_none_or(|seen| {
                let age = sent_at - seen.captured;
                row.activity != seen.activity
                    || before.is_none_or(|sent| row.activity >= sent)
                    || row.size != seen.size
                    || row.dead != seen.dead
                    // A clock that stepped back makes the age negative: it says nothing then.
                    || !(0..FULL_CAPTURE_EVERY).contains(&age)
            });
            let captured = known.filter(|_| !is_dirty).map_or(sent_at, |seen| seen.captured);
            if is_dirty {
                dirty.push(row.pane.clone());
            }
            let seen = Seen { activity: row.activity, size: row.size, dead: row.dead, captured };
            self.seen.insert(row.pane.clone(), seen);
        }
        dirty
    }

    /// Makes the pane dirty at the next list.
    pub fn forget(&mut self, pane: &str) {
        self.seen.remove(pane);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(activity: i64) -> Row {
        Row { pane: "%1".into(), activity, size: (200, 50), ..Row::default() }
    }

    #[test]
    fn a_quiet_pane_is_captured_once_and_then_once_a_minute() {
        let mut gate = Gate::default();
        let hits: Vec<i64> =
            (100..260).step_by(2).filter(|now| !gate.dirty(&[row(50)], *now).is_empty()).collect();
        assert_eq!(hits, [100, 160, 220]);
    }

    #[test]
    fn output_in_the_second_of_the_list_is_caught_by_the_next() {
        let mut gate = Gate::default();
        assert_eq!(gate.dirty(&[row(100)], 100), ["%1"]);
        // The time stands still, but the pane may have printed after the list, in second 100.
        assert_eq!(gate.dirty(&[row(100)], 102), ["%1"]);
        assert!(gate.dirty(&[row(100)], 104).is_empty());
    }

    #[test]
    fn size_death_and_a_failed_capture_make_dirty() {
        let mut gate = Gate::default();
        gate.dirty(&[row(1)], 100);
        assert!(gate.dirty(&[row(1)], 102).is_empty());
        assert_eq!(gate.dirty(&[Row { size: (80, 24), ..row(1) }], 104).len(), 1);
        assert_eq!(gate.dirty(&[Row { size: (80, 24), dead: true, ..row(1) }], 106).len(), 1);
        assert!(gate.dirty(&[Row { size: (80, 24), dead: true, ..row(1) }], 108).is_empty());
        gate.forget("%1");
        assert_eq!(gate.dirty(&[Row { size: (80, 24), dead: true, ..row(1) }], 110).len(), 1);
        assert!(gate.dirty(&[], 112).is_empty());
        assert_eq!(gate.dirty(&[row(1)], 114).len(), 1, "a pane that came back is new");
    }

    #[test]
    fn a_clock_that_steps_back_costs_a_capture_and_misses_nothing() {
        let mut gate = Gate::default();
        gate.dirty(&[row(1000)], 1002);
        assert!(gate.dirty(&[row(1000)], 1004).is_empty());
        assert_eq!(gate.dirty(&[row(1000)], 500).len(), 1);
        assert_eq!(gate.dirty(&[row(501)], 502).len(), 1);
    }

    proptest! {
        /// A writer that prints at random moments (milliseconds) against a watcher with random ticks: after
        /// the last output, two more ticks have captured all of it.
        #[test]
        fn nothing_is_missed(
            mut writes in prop::collection::vec(0i64..20_000, 0..40),
            steps in prop::collection::vec((1i64..3_000, 0i64..400), 10..40),
        ) {
            writes.sort_unstable();
            let (mut gate, mut now, mut captured_until) = (Gate::default(), 20, -1);
            let printed = |until: i64| writes.iter().copied().filter(|at| *at <= until).max();
            let mut steps = steps;
            steps.extend([(25_000, 0), (2_000, 0), (2_000, 0)]);
            for (step, delay) in steps {
                now += step;
                let activity = printed(now).map_or(0, |at| at.div_euclid(1000));
                if !gate.dirty(&[row(activity)], now.div_euclid(1000)).is_empty() {
                    captured_until = now + delay;
                }
                now += delay;
            }
            prop_assert!(printed(i64::MAX).unwrap_or(-1) <= captured_until);
        }
    }
}
