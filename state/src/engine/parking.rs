//! Parks a loop while the usage limits of its agent's account are nearly used up.
//!
//! A park begins before an iteration and uses none up. A running iteration continues. Deliberately absent: the figures,
//! and the decision when an account is parked ([`crate::quota`]).

use std::time::Duration;

use super::{Effect, Now, Phase, Worker};
use crate::notice::Entry;
use crate::quota::Park;

/// The time after the reset until the next iteration. A clock that is a little off must not cost a run.
const RESET_MARGIN: Duration = Duration::from_secs(5);

impl Worker {
    /// Whether the loop waits for the reset of its account's limit.
    pub fn is_parked(&self) -> bool {
        let has_park = self.ralph.as_ref().is_some_and(|ralph| ralph.park.is_some());
        has_park && matches!(self.phase, Phase::BackingOff { .. })
    }

    /// Whether [`super::Event::Quota`] with this park would change anything.
    pub fn is_news(&self, park: Option<&Park>) -> bool {
        self.ralph.is_some() && (self.account_park.as_ref() != park || self.is_parked() && park.is_none())
    }

    /// The park of the account has begun, changed or ended.
    pub(super) fn quota(&mut self, park: Option<Park>, now: Now) -> Vec<Effect> {
        let is_parked = self.is_parked();
        self.account_park = park;
        if !is_parked {
            return vec![];
        }
        let Some((park, wait)) = self.due_park(now) else {
            return if self.is_just_reset(now) { vec![] } else { self.start_next(now) };
        };
        let Some(ralph) = self.ralph.as_mut() else { return vec![] };
        if ralph.park.as_ref() == Some(&park) {
            return vec![];
        }
        (ralph.outage, ralph.park) = (Some(park.outage()), Some(park));
        self.phase = Phase::BackingOff { until: now.after(wait), delay: wait };
        vec![Effect::Persist]
    }

    /// Whether the loop's park has just ended at its reset: the loop continues at its deadline.
    fn is_just_reset(&self, now: Now) -> bool {
        let park = self.ralph.as_ref().and_then(|ralph| ralph.park.as_ref());
        let ago = park.and_then(|park| (now.wall - park.until).to_std().ok());
        ago.is_some_and(|ago| ago < RESET_MARGIN)
    }

    /// The effects that replace the next iteration while the account is parked; `None` while it is not.
    pub(super) fn park(&mut self, now: Now) -> Option<Vec<Effect>> {
        let (park, wait) = self.due_park(now)?;
        let ralph = self.ralph.as_mut()?;
        let (iteration, message) = (ralph.iteration.saturating_add(1), park.reason());
        (ralph.outage, ralph.park) = (Some(park.outage()), Some(park));
        ralph.outage_since = Some(now.wall);
        self.phase = Phase::BackingOff { until: now.after(wait), delay: wait };
        let entry = Entry::Outage { iteration, message, wait: wait.as_secs(), parked: true };
        Some(vec![Effect::Persist, Effect::Notify(entry)])
    }

    /// The park that holds for the loop, and how long it lasts.
    fn due_park(&self, now: Now) -> Option<(Park, Duration)> {
        let park = self.account_park.as_ref()?;
        let is_lifted = self.ralph.as_ref()?.lifted_until.is_some_and(|until| park.until <= until);
        let wait = (park.until - now.wall).to_std().ok().filter(|wait| !wait.is_zero() && !is_lifted)?;
        Some((park.clone(), wait.saturating_add(RESET_MARGIN)))
    }
}
