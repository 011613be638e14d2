//! Decides which panes to capture after a list: those that printed.
//!
//! Pure. The daemon's tick uses it. A tick in which nothing changed allocates nothing. tmux stores the time of a
//! window's last output in whole seconds, so an unchanged time does not prove silence: output in the same second as
//! the list leaves the time as it was. A pane is therefore dirty if its time changed, or if its time is not older
//! than the second of the list before this one. A resize does not change that time, so sizes are compared too. The
//! end of a process is found by waiting for it.

use std::collections::HashMap;

use super::types::Glance;

/// How often each pane is captured even if it did not print, in seconds.
///
/// The gate is exact for a program's output. This interval covers changes that tmux makes without a program, such as
/// a reset by another client, and unknown faults of a version. If a decision depends on the screen, the watcher
/// always captures it.
pub const FULL_CAPTURE_INTERVAL_SECONDS: i64 = 300;

/// The state of the panes at the last lists.
#[derive(Debug, Default)]
pub struct ChangeFilter {
    seen: HashMap<u32, LastGlance>,
    /// The second in which the list before this one was requested.
    sent: Option<i64>,
    /// Distinguishes this list from the one before.
    round: u64,
}

#[derive(Debug)]
struct LastGlance {
    activity: i64,
    round: u64,
    size: (u16, u16),
    history: u64,
    dirty: bool,
}

/// The change of a pane, according to the last list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaneChange {
    /// The pane is not listed.
    Absent,
    /// The pane may have printed since it was captured, or has another size (this one).
    Dirty((u16, u16)),
    /// The pane has not printed since, and still has this size.
    Quiet((u16, u16)),
}

impl ChangeFilter {
    /// Reads one whole list. `sent_at` is the wall clock in whole Unix seconds, rounded down, read **before** the
    /// list was requested. Panes that are no longer listed are forgotten. The caller captures every dirty pane, or
    /// calls [`ChangeFilter::forget`] for those it could not capture.
    pub fn take(&mut self, panes: &[Glance], sent_at: i64) {
        let before = self.sent.replace(sent_at);
        self.round += 1;
        let round = self.round;
        for pane in panes {
            let Glance { activity, size, history, .. } = *pane;
            let Some(seen) = self.seen.get_mut(&pane.pane) else {
                let seen = LastGlance { activity, round, size, history, dirty: true };
                self.seen.insert(pane.pane, seen);
                continue;
            };
            if seen.round == round {
                // A pane is listed once for each of its sessions.
                continue;
            }
            // A pane that was absent in between counts as new.
            seen.history = history;
            let known = std::mem::replace(&mut seen.round, round) + 1 == round;
            seen.dirty = !known
                || activity != seen.activity
                || before.is_none_or(|sent| activity >= sent)
                || size != seen.size
                // Also after a clock step, when activity times are less reliable.
                || before.is_none_or(|sent| turn(pane.pane, sent) != turn(pane.pane, sent_at));
            if seen.dirty {
                (seen.activity, seen.size) = (activity, size);
            }
        }
        if self.seen.len() > panes.len() {
            self.seen.retain(|_, seen| seen.round == round);
        }
    }

    /// The change of a pane, according to the last list.
    pub fn said(&self, pane: u32) -> PaneChange {
        match self.seen.get(&pane).filter(|seen| seen.round == self.round) {
            None => PaneChange::Absent,
            Some(seen) if seen.dirty => PaneChange::Dirty(seen.size),
            Some(seen) => PaneChange::Quiet(seen.size),
        }
    }

    /// The pane's rows of scrollback in the last list.
    pub fn history(&self, pane: u32) -> u64 {
        self.seen.get(&pane).map_or(0, |seen| seen.history)
    }

    /// Makes the pane dirty at the next list.
    pub fn forget(&mut self, pane: u32) {
        self.seen.remove(&pane);
    }
}

/// How many times a pane's turn had come by this second. Each pane has its own offset, so one tick captures few.
fn turn(pane: u32, at: i64) -> i64 {
    at.saturating_add(i64::from(pane).saturating_mul(37)).div_euclid(FULL_CAPTURE_INTERVAL_SECONDS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: (u16, u16) = (200, 50);
    const DIRTY: PaneChange = PaneChange::Dirty(SIZE);
    const QUIET: PaneChange = PaneChange::Quiet(SIZE);

    fn pane(activity: i64) -> Glance {
        Glance { pane: 1, activity, size: SIZE, history: 0 }
    }

    /// Adds a list that was requested at this second, and returns the change of pane 1.
    fn said(filter: &mut ChangeFilter, panes: &[Glance], sent_at: i64) -> PaneChange {
        filter.take(panes, sent_at);
        filter.said(1)
    }

    #[test]
    fn unchanged_pane_is_captured_once_and_then_every_five_minutes() {
        let mut filter = ChangeFilter::default();
        let is_dirty = |now: &i64| said(&mut filter, &[pane(50)], *now) == DIRTY;
        let hits: Vec<i64> = (100..1000).step_by(2).filter(is_dirty).collect();
        assert_eq!(hits, [100, 264, 564, 864]);
    }

    #[test]
    fn quiet_panes_are_not_captured_all_at_once() {
        let mut filter = ChangeFilter::default();
        let panes: Vec<_> = (0..300).map(|number| Glance { pane: number, ..pane(50) }).collect();
        filter.take(&panes, 100);
        let mut hits = [0; 300];
        for now in (102..=400).step_by(2) {
            filter.take(&panes, now);
            let dirty: Vec<_> =
                (0..300).filter(|pane| matches!(filter.said(*pane), PaneChange::Dirty(_))).collect();
            assert!(dirty.len() <= 2, "{dirty:?} at {now}");
            dirty.into_iter().for_each(|pane| hits[pane as usize] += 1);
        }
        assert_eq!(hits, [1; 300]);
    }

    #[test]
    fn output_in_the_same_second_as_a_list_is_captured_later() {
        let mut filter = ChangeFilter::default();
        assert_eq!(said(&mut filter, &[pane(100)], 100), DIRTY);
        // The time stands still, but the pane may have printed after the list, in second 100.
        assert_eq!(said(&mut filter, &[pane(100)], 102), DIRTY);
        assert_eq!(said(&mut filter, &[pane(100)], 104), QUIET);
    }

    #[test]
    fn resized_closed_and_uncaptured_panes_are_reported() {
        let mut filter = ChangeFilter::default();
        filter.take(&[pane(1)], 100);
        assert_eq!(said(&mut filter, &[pane(1)], 102), QUIET);
        assert_eq!(said(&mut filter, &[pane(1)], 108), QUIET);
        let small = Glance { size: (80, 24), ..pane(1) };
        assert_eq!(said(&mut filter, &[small], 109), PaneChange::Dirty((80, 24)));
        assert_eq!(said(&mut filter, &[small], 109), PaneChange::Quiet((80, 24)));
        filter.take(&[pane(1)], 109);
        filter.forget(1);
        assert_eq!(said(&mut filter, &[pane(1)], 110), DIRTY);
        assert_eq!(said(&mut filter, &[], 112), PaneChange::Absent);
        assert_eq!(said(&mut filter, &[pane(1)], 114), DIRTY, "a pane that came back is new");
    }

    #[test]
    fn pane_in_two_sessions_counts_once_and_closed_panes_are_forgotten() {
        let mut filter = ChangeFilter::default();
        let other = Glance { pane: 2, ..pane(1) };
        filter.take(&[pane(1), other, pane(1)], 100);
        assert_eq!((filter.said(1), filter.said(2)), (DIRTY, DIRTY));
        // As many rows as there were panes, but one of the panes is gone.
        assert_eq!(said(&mut filter, &[pane(1), pane(1)], 102), QUIET);
        assert_eq!(filter.said(2), PaneChange::Absent);
        filter.take(&[pane(1), other], 104);
        assert_eq!(filter.said(2), DIRTY);
    }

    #[test]
    fn clock_set_back_causes_another_capture() {
        let mut filter = ChangeFilter::default();
        filter.take(&[pane(1000)], 1002);
        assert_eq!(said(&mut filter, &[pane(1000)], 1004), QUIET);
        assert_eq!(said(&mut filter, &[pane(1000)], 500), DIRTY);
        assert_eq!(said(&mut filter, &[pane(501)], 502), DIRTY);
    }

    proptest! {
        /// A writer that prints at random moments (milliseconds) against a watcher with random ticks: after
        /// the last output, two more ticks have captured all of it.
        #[test]
        fn all_output_is_captured_within_two_ticks(
            mut writes in prop::collection::vec(0i64..20_000, 0..40),
            steps in prop::collection::vec((1i64..3_000, 0i64..400), 10..40),
        ) {
            writes.sort_unstable();
            let (mut filter, mut now, mut captured_until) = (ChangeFilter::default(), 20, -1);
            let printed = |until: i64| writes.iter().copied().filter(|at| *at <= until).max();
            let mut steps = steps;
            steps.extend([(25_000, 0), (2_000, 0), (2_000, 0)]);
            for (step, delay) in steps {
                now += step;
                let activity = printed(now).map_or(0, |at| at.div_euclid(1000));
                if said(&mut filter, &[pane(activity)], now.div_euclid(1000)) == DIRTY {
                    captured_until = now + delay;
                }
                now += delay;
            }
            prop_assert!(printed(i64::MAX).unwrap_or(-1) <= captured_until);
        }
    }
}
