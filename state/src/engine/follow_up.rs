//! The steps after a run has ended: the next iteration, a wait, a pause, or the end of the worker.

use std::time::Duration;

use super::hold::Hold;
use super::{Effect, Evidence, KILL_DELAY, Loop, Now, Phase, Why, Worker, ended};
use crate::budget;
use crate::gates::Verdict;
use crate::notice::{Counts, Entry, IterationExit, StopReason};

/// How many empty answers in a row are retried without using up an iteration.
const MAX_FREE_EMPTY_ANSWERS: u32 = 3;

impl Worker {
    pub(super) fn end(&mut self, why: Why, now: Now) -> Vec<Effect> {
        self.phase = Phase::Ending { why, kill_at: now.after(KILL_DELAY) };
        self.trouble = None;
        vec![Effect::Persist, Effect::Terminate(self.run)]
    }

    pub(super) fn end_because(&mut self, why: Why, detail: String, now: Now) -> Vec<Effect> {
        if let Some(ralph) = &mut self.ralph {
            ralph.detail = Some(detail);
        }
        self.end(why, now)
    }

    pub(super) fn evaluated(&mut self, verdict: Verdict, now: Now) -> Vec<Effect> {
        let Phase::Evaluating { exit, why } = self.phase else { return vec![] };
        self.count(&verdict);
        // For a loop without other gates, the match of the pattern is enough.
        let gated = self.ralph.as_ref().is_some_and(|l| l.gated);
        // If the agent never received its prompt, passing gates prove nothing.
        let worked = why != Some(Why::Undelivered);
        let complete = (why == Some(Why::Done) && !gated) || (worked && verdict.is_complete());
        if why == Some(Why::Kill) {
            let mut effects = self.report_end(IterationExit::Killed, now);
            effects.extend(self.stop(StopReason::Killed));
            return effects;
        }
        if self.ralph.is_none() {
            // With a restart policy, a run that matched its done pattern and exited with an error has failed.
            let failed = why.is_none() && !exit.is_success() && self.restarts.is_some();
            let done = complete && !failed;
            return if done { self.stop(StopReason::Complete) } else { self.after_run(exit, now) };
        }
        let ended = ended::kind_evaluated(why, exit, &verdict);
        if complete {
            let mut effects = self.report_end(ended, now);
            effects.extend(self.stop(match (gated, verdict.asks_for_checks()) {
                (false, _) => StopReason::Complete,
                (true, _) if verdict.tasks.is_some() => StopReason::StoriesApproved,
                (true, true) => StopReason::Verified,
                (true, false) => StopReason::Promised,
            }));
            return effects;
        }
        if let Some(effects) = self.after_outage(&verdict, why, now) {
            return effects;
        }
        let missed = self.report_missed_gates(&verdict);
        if verdict.is_empty_answer && ended.counts_as() == Counts::Success {
            let failures = self.ralph.as_ref().map_or(0, |ralph| ralph.failures);
            let (counts, why) =
                (failures >= MAX_FREE_EMPTY_ANSWERS, "the agent's answer was empty".to_owned());
            return [missed, self.after_failure(IterationExit::Silent, Some(why), counts, now)].concat();
        }
        if self.count_end(ended) {
            let detail = self.ralph.as_mut().and_then(|l| l.detail.take());
            let message = verdict.api_error.map(String::from).or(detail).or(verdict.trouble);
            return [missed, self.after_failure(ended, message, true, now)].concat();
        }
        let ended = self.report_end(ended, now);
        [ended, missed, self.after_iteration(now)].concat()
    }

    /// Counts and reports a failed iteration, and continues if the budgets permit. One that does not count
    /// as an iteration is still a failure, so that a loop that cannot start any agent ends.
    pub(super) fn after_failure(
        &mut self,
        exit: IterationExit,
        message: Option<String>,
        counts: bool,
        now: Now,
    ) -> Vec<Effect> {
        let Some(iteration) = self.ralph.as_ref().map(|ralph| ralph.iteration) else { return vec![] };
        if !counts {
            self.undo_iteration();
        }
        let Some(ralph) = &mut self.ralph else { return vec![] };
        ralph.failures = ralph.failures.saturating_add(1);
        ralph.total_failures = ralph.total_failures.saturating_add(1);
        let over = ralph.exhausted(now).is_some() || ralph.must_pause().is_some();
        let wait = budget::backoff(ralph.failures);
        let backoff = (!over && ralph.paused.is_none()).then_some(wait.as_secs());
        let entry = Entry::IterationFailed {
            iteration,
            exit,
            seconds: ralph.elapsed(now),
            attempt: ralph.failures,
            limit: ralph.budgets.max_failures,
            backoff,
            message,
        };
        // The loop's number: after an undone iteration, the previous one.
        ralph.last_end = Some((ralph.iteration, entry.clone()));
        let mut effects = vec![Effect::Notify(entry)];
        if backoff.is_some() {
            self.phase = Phase::BackingOff { until: now.after(wait), delay: wait };
            effects.push(Effect::Persist);
        } else {
            effects.extend(self.after_iteration(now));
        }
        effects
    }

    /// After the iteration was counted and reported: stops, pauses, or starts the next one.
    pub(super) fn after_iteration(&mut self, now: Now) -> Vec<Effect> {
        let Some(ralph) = &self.ralph else { return vec![] };
        match (ralph.exhausted(now), ralph.must_pause()) {
            (Some(reason), _) => self.stop(reason),
            (None, Some(by)) => self.halt(by, now),
            (None, None) => self.start_next(now),
        }
    }

    /// Starts the next run, unless the loop is paused or has no iteration left.
    pub(super) fn start_next(&mut self, now: Now) -> Vec<Effect> {
        if let Some(effects) = self.held_back(now) {
            return effects;
        }
        self.run = self.run.next();
        self.launch(now)
    }

    /// The effects that replace a further iteration, if none may start. Checked before every launch: since the last
    /// count, limits may have been lowered, the loop paused, the worker held, or time used.
    pub(super) fn held_back(&mut self, now: Now) -> Option<Vec<Effect>> {
        let Some(ralph) = &self.ralph else { return self.wait_for_release(now) };
        if ralph.iteration >= ralph.max_iterations {
            let reason = ralph.out_of_iterations();
            return Some(self.stop(reason));
        }
        // Time does not count while the loop is paused.
        if let Some(reason) = ralph.exhausted(now).filter(|_| ralph.paused.is_none()) {
            return Some(self.stop(reason));
        }
        if ralph.paused.is_some() {
            self.phase = Phase::Parked;
            return Some(vec![Effect::Persist]);
        }
        self.wait_for_release(now).or_else(|| self.park(now))
    }

    /// A held worker starts its next run when it is released.
    fn wait_for_release(&mut self, now: Now) -> Option<Vec<Effect>> {
        if !self.is_held() {
            return None;
        }
        if let Some(ralph) = self.ralph.as_mut().filter(|ralph| ralph.park.is_some()) {
            // The release decides again whether the account is parked.
            (ralph.outage, ralph.park) = (None, None);
        }
        self.phase = Phase::BackingOff { until: now.mono, delay: Duration::ZERO };
        Some(vec![Effect::Persist])
    }

    /// Uncounts the current iteration, which a new run repeats.
    pub(super) fn undo_iteration(&mut self) {
        if let Some(ralph) = &mut self.ralph {
            ralph.iteration = ralph.iteration.saturating_sub(1);
        }
    }

    pub(super) fn report_end(&mut self, exit: IterationExit, now: Now) -> Vec<Effect> {
        let Some(ralph) = &mut self.ralph else { return vec![] };
        let (iteration, seconds) = (ralph.iteration, ralph.elapsed(now));
        let entry = Entry::IterationEnded { iteration, exit, seconds };
        ralph.last_end = Some((ralph.iteration, entry.clone()));
        vec![Effect::Notify(entry)]
    }

    /// Starts the current run; for a loop, as its next iteration.
    pub(super) fn launch(&mut self, now: Now) -> Vec<Effect> {
        self.phase = Phase::Spawning { doomed: false };
        self.last_exit = None;
        self.trouble = None;
        self.evidence = Evidence::default();
        self.note_launch();
        let mut effects = vec![Effect::Persist];
        if let Some(ralph) = &mut self.ralph {
            ralph.iteration = ralph.iteration.saturating_add(1);
            ralph.iteration_started = Some(now.wall);
            ralph.started_mono = now.mono;
            ralph.held = Duration::ZERO;
            (ralph.outage, ralph.park, ralph.detail) = (None, None, None);
            (ralph.unseen, ralph.tries_spent) = (false, false);
            (ralph.cannot_check, ralph.story_stuck) = (None, None);
            let (iteration, max) = (ralph.iteration, ralph.max_iterations);
            effects.push(Effect::Notify(Entry::IterationStarted { iteration, max }));
        }
        effects.push(Effect::Spawn(self.run));
        effects
    }

    pub(super) fn stop(&mut self, reason: StopReason) -> Vec<Effect> {
        self.phase = Phase::Stopped { reason: reason.clone() };
        self.trouble = None;
        self.hold = Hold::default();
        if let Some(restarts) = &mut self.restarts {
            restarts.next = None;
        }
        let mut effects = vec![Effect::Persist];
        if reason == StopReason::Complete {
            let iteration = self.ralph.as_ref().map_or(0, |l| l.iteration);
            effects.push(Effect::Notify(Entry::DonePatternMatched { iteration }));
        }
        if let (StopReason::Verified | StopReason::Promised | StopReason::StoriesApproved, Some(ralph)) =
            (&reason, &self.ralph)
        {
            effects.push(Effect::Notify(Entry::GatesHeld { iteration: ralph.iteration }));
        }
        effects.extend(self.last_word().map(Effect::Notify));
        effects
    }

    pub(super) fn last_word(&self) -> Option<Entry> {
        let Phase::Stopped { reason } = &self.phase else { return None };
        let reason = reason.clone();
        Some(match self.ralph.as_ref().map(|l| l.iteration) {
            None => Entry::Stopped { reason },
            Some(iterations) if reason.is_success() => Entry::LoopComplete { iterations, reason },
            Some(iterations) => Entry::LoopFailed { iterations, reason },
        })
    }

    /// The notices that a loop in this state must have sent, in order. A notice follows the save of its state, so a
    /// daemon that died in between did not send it, and the next daemon has to.
    pub fn due_entries(&self) -> Vec<Entry> {
        let Some(ralph) = &self.ralph else { return vec![] };
        let (iteration, max, timeout) = (ralph.iteration, ralph.max_iterations, ralph.inactivity_timeout);
        let silent = matches!(self.phase, Phase::Ending { why: Why::Inactivity | Why::Silent, .. });
        let silence = silent.then_some(Entry::Inactivity { iteration, timeout, restarting: iteration < max });
        let started = (iteration > 0).then_some(Entry::IterationStarted { iteration, max });
        let (before, after) = match &ralph.last_end {
            Some((of, end)) if *of == iteration => (None, Some(end.clone())),
            end => (end.as_ref().map(|(_, end)| end.clone()), None),
        };
        let paused = ralph.paused.map(|by| Entry::Paused { by });
        let entries = [before, started, silence, after, paused, self.last_word()];
        entries.into_iter().flatten().collect()
    }
}

impl Loop {
    pub(super) fn out_of_iterations(&self) -> StopReason {
        budget::out_of_iterations(self.gated, self.succeeded)
    }

    /// Whole seconds of the current iteration so far.
    pub(super) fn elapsed(&self, now: Now) -> u64 {
        now.mono.saturating_sub(self.started_mono).as_secs()
    }
}
