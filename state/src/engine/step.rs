//! Transitions for requests of people and for deadlines; and the dispatch of all events.

use super::{Edits, Effect, Event, KILL_DELAY, Now, PROMPT_TIMEOUT, Phase, TroubleKind, Why, Worker};
use crate::model::Exit;
use crate::notice::{Entry, PauseBy, StopReason};

impl Worker {
    /// Applies one event and returns its effects, in order.
    pub fn step(&mut self, event: Event, now: Now) -> Vec<Effect> {
        let effects = self.take(event, now);
        self.count_time(now);
        saved_first(effects)
    }

    pub(super) fn take(&mut self, event: Event, now: Now) -> Vec<Effect> {
        match event {
            Event::Start => self.start(now),
            Event::Pause(by) => self.pause(by),
            Event::Resume => self.resume(now),
            Event::Kill => self.kill(now),
            Event::Hold => self.hold(now),
            Event::Release => self.release(now),
            Event::Present(presence) => self.present(presence, now),
            Event::Edited(edits) => self.edited(edits),
            Event::Tick => self.tick(now),
            Event::Quota(park) => self.quota(park, now),
            Event::Reachable(reachable) => self.reached(reachable, now),
            Event::Up(run) if run == self.run => self.up(now),
            Event::SpawnFailed(run, error) if run == self.run => self.spawn_failed(error, now),
            Event::Adopted(run) if run == self.run => self.adopted(now),
            Event::NeverStarted(run) if run == self.run => self.never_started(now),
            Event::Screen(run, reading) if run == self.run => self.look(Some(reading), now),
            Event::Quiet(run) if run == self.run => self.look(None, now),
            Event::PromptSent(run) if run == self.run => self.prompt_over(None, now),
            Event::PromptFailed(run, message) if run == self.run => self.prompt_over(Some(message), now),
            Event::PromptBlocked(run, dialog) if run == self.run => self.prompt_blocked(dialog, now),
            Event::Typing(run) if run == self.run => self.typing(true),
            Event::Typed(run) if run == self.run => self.typing(false),
            Event::Hook(run, signal) if run == self.run => self.hook_signal(signal, now),
            Event::Grew(run, ago) if run == self.run => self.transcript_grew(ago),
            Event::Probed(run, busy) if run == self.run => self.probed(busy, now),
            Event::Exited(run, exit) if run == self.run => self.exited(exit, now),
            Event::PaneLost(run) if run == self.run => self.exited(Exit::Lost, now),
            Event::ServerLost(run) if run == self.run => self.server_lost(now),
            Event::Evaluated(run, verdict) if run == self.run => self.evaluated(verdict, now),
            // Rule 2: a report about another run is dropped.
            Event::Up(_)
            | Event::SpawnFailed(..)
            | Event::Adopted(_)
            | Event::NeverStarted(_)
            | Event::Screen(..)
            | Event::Quiet(_)
            | Event::PromptSent(_)
            | Event::PromptFailed(..)
            | Event::PromptBlocked(..)
            | Event::Typing(_)
            | Event::Typed(_)
            | Event::Hook(..)
            | Event::Grew(..)
            | Event::Probed(..)
            | Event::Exited(..)
            | Event::PaneLost(_)
            | Event::ServerLost(_)
            | Event::Evaluated(..) => vec![],
        }
    }

    /// tmux answers, or no longer does. When it answers again, the agent's state is reported to new subscribers.
    fn reached(&mut self, reachable: bool, now: Now) -> Vec<Effect> {
        let before = std::mem::replace(&mut self.reachable, reachable);
        if before || !reachable {
            return vec![];
        }
        self.restart_question_timer(now);
        if let Phase::Running { watch } = &mut self.phase {
            watch.idle_reported = false;
        }
        let trouble = self.trouble.as_ref().filter(|_| self.has_pane());
        let waits = trouble.map(|t| Entry::Waiting { run: self.run.0, reason: t.what.clone() });
        waits.map(Effect::Notify).into_iter().collect()
    }

    pub(super) fn start(&mut self, now: Now) -> Vec<Effect> {
        if self.phase == Phase::Idle { self.start_next(now) } else { vec![] }
    }

    pub(super) fn pause(&mut self, by: PauseBy) -> Vec<Effect> {
        let stopped = self.is_stopped();
        let Some(ralph) = self.ralph.as_mut().filter(|l| l.paused.is_none() && !stopped) else {
            return vec![];
        };
        ralph.paused = Some(by);
        if let Phase::BackingOff { .. } = self.phase {
            self.phase = Phase::Parked;
        }
        vec![Effect::Persist, Effect::Notify(Entry::Paused { by })]
    }

    pub(super) fn resume(&mut self, now: Now) -> Vec<Effect> {
        if !self.can_resume(now) {
            return vec![];
        }
        let Some(ralph) = self.ralph.as_mut() else { return vec![] };
        ralph.paused = None;
        ralph.stalls = 0;
        // The person may know that the outage has ended: the limit is reset, or the login is done.
        ralph.outages = 0;
        // For this loop the limit of the account no longer counts until its reset.
        let park = ralph.park.as_ref().or(self.account_park.as_ref());
        if let (Phase::BackingOff { .. }, Some(park)) = (&self.phase, park) {
            ralph.lifted_until = Some(park.until);
        }
        let over = (ralph.iteration > ralph.max_iterations).then(|| ralph.out_of_iterations());
        let mut effects = vec![Effect::Persist, Effect::Notify(Entry::Resumed)];
        self.restart_question_timer(now);
        if !self.has_pane() {
            // Without an agent, a resume starts one: the person who resumes the loop ends the hold.
            effects.extend(self.release(now));
        }
        if self.phase == Phase::Lost {
            if let Some(reason) = over {
                effects.extend(self.stop(reason));
                return effects;
            }
            self.undo_iteration();
            effects.extend(self.start_next(now));
        } else if matches!(self.phase, Phase::Parked | Phase::BackingOff { .. } | Phase::Stopped { .. }) {
            effects.extend(self.start_next(now));
        } else if let Some(watch) = self.phase.watch_mut() {
            // Silence while the loop was paused does not count.
            watch.restart();
        }
        effects
    }

    /// Whether a resume has an effect: the loop is paused, its tmux server is gone, it waits out an outage or is held
    /// without an agent, or it has ended at a limit that was raised since.
    pub fn can_resume(&self, now: Now) -> bool {
        let Some(ralph) = &self.ralph else { return false };
        match &self.phase {
            Phase::Stopped { .. } => self.ended_at_limit() && ralph.exhausted(now).is_none(),
            Phase::Lost => true,
            Phase::BackingOff { .. } => ralph.paused.is_some() || ralph.outage.is_some() || self.is_held(),
            Phase::Idle | Phase::Spawning { .. } | Phase::Starting { .. } | Phase::Prompting { .. } => {
                ralph.paused.is_some()
            }
            Phase::Running { .. } | Phase::Ending { .. } | Phase::Evaluating { .. } | Phase::Parked => {
                ralph.paused.is_some()
            }
        }
    }

    /// Whether it is a loop that ended at a limit, which a person can raise.
    pub fn ended_at_limit(&self) -> bool {
        let Phase::Stopped { reason } = &self.phase else { return false };
        self.ralph.is_some() && reason.is_limit()
    }

    pub(super) fn kill(&mut self, now: Now) -> Vec<Effect> {
        self.drop_hold(now);
        match &mut self.phase {
            Phase::Idle | Phase::BackingOff { .. } | Phase::Parked | Phase::Lost => {
                return self.stop(StopReason::Killed);
            }
            Phase::Starting { .. } | Phase::Prompting { .. } | Phase::Running { .. } => {
                return self.end(Why::Kill, now);
            }
            Phase::Stopped { .. } => return vec![],
            Phase::Spawning { doomed } => *doomed = true,
            Phase::Ending { why, .. } => *why = Why::Kill,
            Phase::Evaluating { why, .. } => *why = Some(Why::Kill),
        }
        vec![Effect::Persist]
    }

    pub(super) fn edited(&mut self, edits: Edits) -> Vec<Effect> {
        let Some(ralph) = &mut self.ralph else { return vec![] };
        if let Some(max) = edits.max_iterations {
            ralph.max_iterations = max.max(1);
        }
        if let Some(timeout) = edits.inactivity_timeout {
            ralph.inactivity_timeout = timeout.max(1);
        }
        if edits.done_pattern.is_some() {
            self.evidence.done = false;
        }
        if let Some(timeout) = edits.question_timeout {
            ralph.question_timeout = timeout;
        }
        edits.budgets.apply(&mut ralph.budgets);
        vec![Effect::Persist]
    }

    pub(super) fn tick(&mut self, now: Now) -> Vec<Effect> {
        if let Some(mut effects) = self.hold_over(now) {
            // Deadlines that passed meanwhile are due now.
            effects.extend(self.tick(now));
            return effects;
        }
        if let Some(effects) = self.out_of_time(now) {
            return effects;
        }
        if let Some(effects) = self.unanswered(now) {
            return effects;
        }
        if self.phase_deadline().is_none_or(|at| now.mono < at) {
            return vec![];
        }
        match &mut self.phase {
            Phase::Starting { ready_by, .. } => {
                *ready_by = None;
                // A reported dialog is more precise, and must continue to protect the run from the inactivity timeout.
                if self.trouble.is_some() {
                    return vec![];
                }
                let seconds = self.policy.ready_timeout;
                self.need_person(TroubleKind::NotReady, &format!("not ready after {seconds}s"), now)
            }
            // A tmux that does not answer proves nothing about the agent.
            Phase::Prompting { by } if !self.reachable => {
                *by = now.after(PROMPT_TIMEOUT);
                vec![]
            }
            Phase::Prompting { .. } => self.prompt_over(Some("the delivery did not end in time".into()), now),
            Phase::Ending { kill_at, .. } => {
                *kill_at = now.after(KILL_DELAY);
                vec![Effect::ForceKill(self.run)]
            }
            Phase::BackingOff { .. } => self.start_next(now),
            Phase::Running { .. } => self.turn_end_due(now).unwrap_or_default(),
            Phase::Idle | Phase::Spawning { .. } | Phase::Evaluating { .. } => vec![],
            Phase::Parked | Phase::Lost | Phase::Stopped { .. } => vec![],
        }
    }
}

/// Merges all saves into one, before all other effects.
fn saved_first(mut effects: Vec<Effect>) -> Vec<Effect> {
    if effects.contains(&Effect::Persist) {
        effects.retain(|effect| *effect != Effect::Persist);
        effects.insert(0, Effect::Persist);
    }
    effects
}
