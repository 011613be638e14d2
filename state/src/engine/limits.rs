//! The limits of a loop beyond its iterations: time, money, progress; and outages, which use up nothing.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::{Effect, Loop, Now, Phase, SpawnError, Why, Worker};
use crate::budget::{self, Spent};
use crate::gates::Verdict;
use crate::notice::{Entry, IterationExit, PauseBy, StopReason};
use crate::outage::{Outage, OutageKind};

impl Loop {
    /// The loop's cost so far, in US dollars; `None` while no iteration reported a cost.
    pub fn cost_usd(&self) -> Option<f64> {
        (self.spent.cost > 0).then(|| self.spent.cost as f64 / 1e6)
    }

    /// The time, cost and tokens used until now.
    pub fn spent(&self, now: Now) -> Spent {
        let running = self.since.map_or(Duration::ZERO, |since| now.mono.saturating_sub(since));
        Spent { time: self.spent.time.saturating_add(running), ..self.spent }
    }

    /// How much of the loop's time is left; `None` without a limit.
    pub fn time_left(&self, now: Now) -> Option<Duration> {
        let limit = self.budgets.max_time.filter(|_| self.paused.is_none())?;
        Some(Duration::from_secs(limit).saturating_sub(self.spent(now).time))
    }

    pub(super) fn exhausted(&self, now: Now) -> Option<StopReason> {
        self.reached_limits(now).next()
    }

    /// The limits that are reached, as end reasons.
    pub fn reached_limits(&self, now: Now) -> impl Iterator<Item = StopReason> {
        let count = (self.iteration, self.max_iterations);
        budget::exhausted(&self.budgets, self.spent(now), self.failures, count, self.out_of_iterations())
    }

    /// The changes that raise all limits that are reached, as `ralph set` accepts them. For a loop that has ended.
    pub fn raised_limits(&self) -> Vec<String> {
        let (count, time) = ((self.iteration, self.max_iterations), self.spent.time.as_secs());
        let reached =
            budget::exhausted(&self.budgets, self.spent, self.failures, count, self.out_of_iterations());
        reached.filter_map(|reason| reason.raised(self.iteration, time)).collect()
    }

    /// All outages, and the seconds that the loop has lost to them: the iterations that they ended, and the waits.
    pub fn outages(&self, now: DateTime<FixedOffset>) -> (u32, u64) {
        let current = self.outage_since.map_or(0, |since| (now - since).num_seconds());
        (self.total_outages, self.outage_seconds + u64::try_from(current).unwrap_or(0))
    }

    fn is_stalled(&self) -> bool {
        self.budgets.no_progress.is_some_and(|limit| self.stalls >= limit.max(1))
    }

    pub(super) fn must_pause(&self) -> Option<PauseBy> {
        let causes = [
            (self.unseen, PauseBy::BudgetUnseen),
            (self.cannot_check.is_some(), PauseBy::CannotCheck),
            (self.tries_spent, PauseBy::HeldOut),
            (self.story_stuck.is_some(), PauseBy::StoryStuck),
            (self.is_stalled(), PauseBy::NoProgress),
        ];
        let found = causes.into_iter().find(|(holds, _)| *holds && self.paused.is_none());
        found.map(|(_, by)| by)
    }
}

impl Worker {
    /// The outage that the loop waits out.
    pub fn outage(&self) -> Option<&Outage> {
        self.ralph.as_ref()?.outage.as_ref()
    }

    /// Starts the time of the current iteration now: until now, its start was held.
    pub fn restart_iteration_time(&mut self, now: Now) {
        if let Some(ralph) = &mut self.ralph {
            (ralph.iteration_started, ralph.started_mono) = (Some(now.wall), now.mono);
        }
    }

    pub(super) fn note_agent(&mut self) {
        if let Some(ralph) = &mut self.ralph {
            ralph.worked = true;
        }
    }

    /// Counts time while the worker is active. A held, paused, lost or stopped loop uses none.
    pub(super) fn count_time(&mut self, now: Now) {
        let is_active = self.has_pane() || matches!(self.phase, Phase::BackingOff { .. });
        let counts = is_active && !self.is_held();
        let waits = matches!(self.phase, Phase::BackingOff { .. });
        let Some(ralph) = &mut self.ralph else { return };
        if !waits || ralph.outage.is_none() {
            (_, ralph.outage_seconds) = ralph.outages(now.wall);
            ralph.outage_since = None;
        }
        if counts {
            ralph.since.get_or_insert(now.mono);
        } else {
            ralph.spent = ralph.spent(now);
            ralph.since = None;
        }
    }

    /// When the time of the iteration or the loop is up, and which of the two; `None` without a limit.
    pub(super) fn time_limit(&self) -> Option<(Duration, Why)> {
        let ralph = self.ralph.as_ref().filter(|l| l.paused.is_none() && !self.is_held())?;
        let has_agent = self.phase.has_agent();
        let waits = matches!(self.phase, Phase::BackingOff { .. });
        let seconds = Duration::from_secs;
        let of_loop = ralph.budgets.max_time.zip(ralph.since).filter(|_| has_agent || waits);
        let of_loop = of_loop.map(|(limit, since)| {
            let left = seconds(limit).saturating_sub(ralph.spent.time);
            (since.saturating_add(left), Why::OutOfTime)
        });
        let own = ralph.budgets.iteration_timeout.filter(|_| has_agent);
        let own = own.map(|limit| {
            let limit = seconds(limit).saturating_add(ralph.held);
            (ralph.started_mono.saturating_add(limit), Why::Timeout)
        });
        [of_loop, own].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    pub(super) fn out_of_time(&mut self, now: Now) -> Option<Vec<Effect>> {
        let (at, why) = self.time_limit()?;
        if now.mono < at {
            return None;
        }
        let ralph = self.ralph.as_ref()?;
        let whole = why == Why::OutOfTime;
        let limit = if whole { ralph.budgets.max_time } else { ralph.budgets.iteration_timeout }?;
        if let Phase::BackingOff { .. } = self.phase {
            return Some(self.stop(StopReason::OutOfTime(limit)));
        }
        let notify = Effect::Notify(Entry::OutOfTime { iteration: ralph.iteration, limit, whole });
        let mut effects = self.end(why, now);
        effects.push(notify);
        Some(effects)
    }

    /// The loop's time was up before its agent could start: the iteration does not count, and none follows.
    pub(super) fn never_worked(&mut self, now: Now) -> Vec<Effect> {
        let Some((iteration, limit)) =
            self.ralph.as_ref().and_then(|ralph| Some((ralph.iteration, ralph.budgets.max_time?)))
        else {
            return self.spawn_failed(SpawnError::Other("its time was over".into()), now);
        };
        let notify = Effect::Notify(Entry::OutOfTime { iteration, limit, whole: true });
        let ended = self.report_end(IterationExit::OutOfTime, now);
        self.undo_iteration();
        [vec![notify], ended, self.stop(StopReason::OutOfTime(limit))].concat()
    }

    /// No work is left, or none can be done: the iteration does not count, and none follows.
    pub(super) fn without_work(&mut self, reason: StopReason, now: Now) -> Vec<Effect> {
        // A loop with nothing left to do did not fail to start an agent.
        let is_done = reason.is_success();
        let ended = if is_done { vec![] } else { self.report_end(IterationExit::SpawnFailed, now) };
        self.undo_iteration();
        [ended, self.stop(reason)].concat()
    }

    /// Adds the cost and tokens of an iteration.
    pub(super) fn count(&mut self, verdict: &Verdict) {
        let Some(ralph) = &mut self.ralph else { return };
        ralph.spent.cost = ralph.spent.cost.saturating_add(verdict.cost.unwrap_or(0));
        ralph.spent.tokens = ralph.spent.tokens.saturating_add(verdict.tokens.unwrap_or(0));
    }

    /// An iteration that an outage ended: it does not count, and the loop waits. `None` if there was no outage, or if
    /// waiting has not helped for too long: then it is an ordinary failure.
    pub(super) fn after_outage(
        &mut self,
        verdict: &Verdict,
        why: Option<Why>,
        now: Now,
    ) -> Option<Vec<Effect>> {
        let ralph = self.ralph.as_mut()?;
        let Some(outage) = verdict.outage.as_ref().filter(|_| why != Some(Why::OutOfTime)) else {
            ralph.outages = 0;
            return None;
        };
        ralph.outages = ralph.outages.saturating_add(1);
        ralph.total_outages = ralph.total_outages.saturating_add(1);
        ralph.outage_since = ralph.iteration_started;
        let message = outage.message.clone();
        let Some(wait) = outage.wait(ralph.outages, now.wall) else {
            if outage.kind != OutageKind::Forbidden {
                return None;
            }
            let mut effects = self.report_end(IterationExit::Outage, now);
            effects.extend(self.stop(StopReason::Outage(message)));
            return Some(effects);
        };
        let (iteration, paused) = (ralph.iteration, ralph.paused.is_some());
        ralph.outage = Some(outage.clone());
        let mut effects = self.report_end(IterationExit::Outage, now);
        self.undo_iteration();
        // The cost of the undone iteration still counts.
        if let Some(reason) = self.ralph.as_ref().and_then(|l| l.exhausted(now)) {
            effects.extend(self.stop(reason));
            return Some(effects);
        }
        effects.push(Effect::Notify(Entry::Outage {
            iteration,
            message,
            wait: wait.as_secs(),
            parked: false,
        }));
        effects.push(Effect::Persist);
        self.phase =
            if paused { Phase::Parked } else { Phase::BackingOff { until: now.after(wait), delay: wait } };
        Some(effects)
    }

    /// Reports the gates that did not pass, and counts iterations without progress.
    pub(super) fn report_missed_gates(&mut self, verdict: &Verdict) -> Vec<Effect> {
        let Some(ralph) = &mut self.ralph else { return vec![] };
        let stands_still = verdict.moved == Some(false);
        ralph.unseen = verdict.unseen.is_some();
        ralph.tries_spent = verdict.tries_spent;
        ralph.cannot_check = verdict.cannot_check.as_deref().map(str::to_owned);
        ralph.story_stuck = verdict.tasks.as_ref().and_then(|tasks| tasks.stuck());
        ralph.stalls = if stands_still { ralph.stalls.saturating_add(1) } else { 0 };
        if !ralph.gated {
            return vec![];
        }
        let (iteration, missing) = (ralph.iteration, verdict.remarks());
        vec![Effect::Notify(Entry::GatesMissed { iteration, missing })]
    }

    /// Pauses a loop that may not continue by itself.
    pub(super) fn halt(&mut self, by: PauseBy, now: Now) -> Vec<Effect> {
        let mut effects = self.pause(by);
        effects.extend(self.start_next(now));
        effects
    }
}
