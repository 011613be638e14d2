//! Parks the loops of accounts whose usage limits are nearly used up, and ends the parks.
//!
//! The figures come from hooks of agents ([`super::verbs`]), from transcripts and from the limits that agents ran into.
//! The decision is [`swarm_state::quota`]'s; each loop of an account receives it as an event. Deliberately absent: the
//! figures and their file ([`super::quotas`]).

use std::time::Duration;

use swarm_state::engine::Event;
use swarm_state::gates::Verdict;
use swarm_state::model::WorkerName;
use swarm_state::quota::{Park, QuotaFigure, REACHED, is_account_limit};
use tokio::time::Instant;

use crate::daemon::quotas::{account_of, title_of};
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;

/// Between two looks at the settings file and at figures that have ended.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The most figures of one report, and the longest name of a limit.
const MAX_FIGURES: usize = 8;
const MAX_WINDOW_CHARS: usize = 32;

impl Supervisor {
    /// Parks the loops of each account or ends their park, at most once in [`CHECK_INTERVAL`].
    pub(crate) fn check_quotas(&mut self) {
        let now = Instant::now();
        if self.quotas.checked.is_none_or(|checked| now >= checked + CHECK_INTERVAL) {
            self.apply_quotas();
        }
    }

    /// The same at once.
    pub(crate) fn apply_quotas(&mut self) {
        self.quotas.checked = Some(Instant::now());
        self.quotas.reload(self.store.paths());
        let changed: Vec<(WorkerName, Option<Park>)> = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.origin.legacy.is_none())
            .filter_map(|(name, slot)| {
                let park = self.park_of(slot);
                slot.engine.is_news(park.as_ref()).then(|| (name.clone(), park))
            })
            .collect();
        for (name, park) in changed {
            self.step(&name, Event::Quota(park));
        }
        let now = self.now().wall.timestamp();
        self.quotas.save(self.store.paths(), now);
    }

    pub(crate) fn park_of(&self, slot: &Slot) -> Option<Park> {
        if self.quotas.accounts().is_empty() || slot.spec.ralph.is_none() {
            return None;
        }
        let wall = self.now().wall;
        let account = account_of(slot)?;
        let figure = self.quotas.parking(&account, wall.timestamp())?;
        Park::of(title_of(slot, &account), figure, wall)
    }

    /// Adds the figures that a worker's agent reports or has recorded.
    pub(crate) fn note_figures(&mut self, name: &WorkerName, figures: &[QuotaFigure]) {
        let now = self.now().wall.timestamp();
        let Some(account) = self.slots.get(name).and_then(account_of) else { return };
        let fits = |figure: &&QuotaFigure| {
            figure.window != REACHED && figure.window.len() <= MAX_WINDOW_CHARS && figure.read_at <= now + 60
        };
        let figures: Vec<QuotaFigure> = figures.iter().filter(fits).take(MAX_FIGURES).cloned().collect();
        if self.quotas.change(account, |quota| quota.report(name.as_str(), &figures, now)) {
            self.apply_quotas();
        }
    }

    /// Adds the limit that an agent ran into, by its verdict. A later iteration of the account that works ends it.
    pub(crate) fn note_limits(&mut self, name: &WorkerName, verdict: &Verdict) {
        let now = self.now().wall.timestamp();
        let Some(slot) = self.slots.get(name).filter(|slot| slot.spec.ralph.is_some()) else { return };
        let Some(account) = account_of(slot) else { return };
        let started = slot.engine.ralph().and_then(|ralph| ralph.iteration_started).map(|at| at.timestamp());
        let is_new = self.quotas.change(account, |quota| match &verdict.outage {
            Some(outage) => {
                let reset = outage.until.filter(|_| is_account_limit(outage)).map(|at| at.timestamp());
                reset.is_some_and(|at| quota.add(&QuotaFigure::reached(at, now), true, now))
            }
            None => {
                let is_over = |figure: &QuotaFigure| started.is_some_and(|started| figure.read_at < started);
                let has_worked =
                    verdict.tokens.is_some_and(|tokens| tokens > 0) && verdict.api_error.is_none();
                let is_over = has_worked && quota.figures.get(REACHED).is_some_and(is_over);
                is_over && quota.figures.remove(REACHED).is_some()
            }
        });
        if is_new {
            self.apply_quotas();
        }
    }
}
