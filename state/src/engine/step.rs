//! The transitions: one function an event, each a full match over the phases.

use std::time::Duration;

use super::{
    DONE_QUIET, Edits, Effect, Event, GRACE, Kind, Loop, MAX_TIMEOUTS, Now, PROMPT_TIMEOUT, Phase,
    SpawnError, Trouble, Watch, Why, Worker,
};
use crate::budget;
use crate::gates::Verdict;
use crate::model::Exit;
use crate::notice::{Entry, IterationExit, PauseBy, StopReason};
use crate::screen::Reading;

impl Worker {
    /// Takes one event and says what must be done, in order.
    pub fn step(&mut self, event: Event, now: Now) -> Vec<Effect> {
        saved_first(self.take(event, now))
    }

    fn take(&mut self, event: Event, now: Now) -> Vec<Effect> {
        match event {
            Event::Start => self.start(now),
            Event::Pause(by) => self.pause(by),
            Event::Resume => self.resume(now),
            Event::Kill => self.kill(now),
            Event::Edited(edits) => self.edited(edits),
            Event::Tick => self.tick(now),
            Event::Reachable(reachable) => {
                self.reachable = reachable;
                vec![]
            }
            Event::Up(run) if run == self.run => self.up(now),
            Event::SpawnFailed(run, error) if run == self.run => self.spawn_failed(error, now),
            Event::Adopted(run) if run == self.run => self.adopted(now),
            Event::NeverStarted(run) if run == self.run => self.never_started(now),
            Event::Screen(run, reading) if run == self.run => self.look(Some(reading), now),
            Event::Quiet(run) if run == self.run => self.look(None, now),
            Event::PromptSent(run) if run == self.run => self.prompt_over(None),
            Event::PromptFailed(run, message) if run == self.run => self.prompt_over(Some(message)),
            Event::TurnOver(run) if run == self.run => self.turn_over(now),
            Event::Probed(run, busy) if run == self.run => self.probed(busy, now),
            Event::Exited(run, exit) if run == self.run => self.exited(exit),
            Event::PaneLost(run) if run == self.run => self.exited(Exit::Lost),
            Event::ServerLost(run) if run == self.run => self.server_lost(),
            Event::Judged(run, verdict) if run == self.run => self.judged(verdict, now),
            // Rule 2: news of another run is dropped at the door.
            Event::Up(_)
            | Event::SpawnFailed(..)
            | Event::Adopted(_)
            | Event::NeverStarted(_)
            | Event::Screen(..)
            | Event::Quiet(_)
            | Event::PromptSent(_)
            | Event::PromptFailed(..)
            | Event::TurnOver(_)
            | Event::Probed(..)
            | Event::Exited(..)
            | Event::PaneLost(_)
            | Event::ServerLost(_)
            | Event::Judged(..) => vec![],
        }
    }

    // ---- people ----

    fn start(&mut self, now: Now) -> Vec<Effect> {
        match self.phase {
            Phase::Idle => self.go_on(now),
            Phase::Spawning { .. }
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => vec![],
        }
    }

    fn pause(&mut self, by: PauseBy) -> Vec<Effect> {
        let stopped = self.is_stopped();
        let Some(ralph) = self.ralph.as_mut().filter(|l| l.paused.is_none() && !stopped) else {
            return vec![];
        };
        ralph.paused = Some(by);
        if let Phase::BackingOff { .. } = self.phase {
            self.phase = Phase::Parked;
        }
        vec![Effect::Persist, Effect::Tell(Entry::Paused { by })]
    }

    fn resume(&mut self, now: Now) -> Vec<Effect> {
        let lost = self.phase == Phase::Lost;
        let stopped = self.is_stopped();
        let Some(ralph) = self.ralph.as_mut().filter(|l| (l.paused.is_some() || lost) && !stopped) else {
            return vec![];
        };
        ralph.paused = None;
        let over = ralph.iteration > ralph.max_iterations;
        let mut effects = vec![Effect::Persist, Effect::Tell(Entry::Resumed)];
        match &mut self.phase {
            Phase::Lost if over => effects.extend(self.stop(StopReason::MaxIterations)),
            Phase::Lost => {
                self.give_back();
                effects.extend(self.go_on(now));
            }
            Phase::Parked => effects.extend(self.go_on(now)),
            // Silence while it was paused is forgiven.
            Phase::Starting { watch, .. } | Phase::Running { watch } => watch.restart(),
            Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Prompting { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Stopped { .. } => {}
        }
        effects
    }

    fn kill(&mut self, now: Now) -> Vec<Effect> {
        match &mut self.phase {
            Phase::Idle | Phase::BackingOff { .. } | Phase::Parked | Phase::Lost => {
                self.stop(StopReason::Killed)
            }
            Phase::Spawning { doomed } => {
                *doomed = true;
                vec![Effect::Persist]
            }
            Phase::Starting { .. } | Phase::Prompting { .. } | Phase::Running { .. } => {
                self.end(Why::Kill, now)
            }
            Phase::Ending { why, .. } => {
                *why = Why::Kill;
                vec![Effect::Persist]
            }
            Phase::Judging { why, .. } => {
                *why = Some(Why::Kill);
                vec![Effect::Persist]
            }
            Phase::Stopped { .. } => vec![],
        }
    }

    fn edited(&mut self, edits: Edits) -> Vec<Effect> {
        let Some(ralph) = &mut self.ralph else { return vec![] };
        if let Some(max) = edits.max_iterations {
            ralph.max_iterations = max.max(1);
        }
        if let Some(timeout) = edits.inactivity_timeout {
            ralph.inactivity_timeout = timeout.max(1);
        }
        vec![Effect::Persist]
    }

    // ---- time ----

    fn tick(&mut self, now: Now) -> Vec<Effect> {
        if self.deadline().is_none_or(|at| now.mono < at) {
            return vec![];
        }
        match &mut self.phase {
            Phase::Starting { ready_by, .. } => {
                *ready_by = None;
                // A dialog that is already told says more, and it must go on to shield from inactivity.
                if self.trouble.is_some() {
                    return vec![];
                }
                let seconds = self.policy.ready_timeout;
                self.troubled(Kind::NotReady, &format!("not ready after {seconds}s"))
            }
            Phase::Prompting { .. } => self.prompt_over(Some("the delivery did not end in time".into())),
            Phase::Ending { kill_at, .. } => {
                *kill_at = now.after(GRACE);
                vec![Effect::ForceKill(self.run)]
            }
            Phase::BackingOff { .. } => self.go_on(now),
            Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Running { .. }
            | Phase::Judging { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => vec![],
        }
    }

    // ---- the world ----

    fn up(&mut self, now: Now) -> Vec<Effect> {
        match self.phase {
            Phase::Spawning { doomed: true } => self.end(Why::Kill, now),
            Phase::Spawning { doomed: false } => {
                let watch = Watch::default();
                self.phase = if self.policy.paste || self.policy.ready_wait {
                    let ready_by = Some(now.after(Duration::from_secs(self.policy.ready_timeout)));
                    Phase::Starting { ready_by, watch }
                } else {
                    Phase::Running { watch }
                };
                vec![Effect::Persist, Effect::Tell(Entry::Started { run: self.run.0 })]
            }
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => vec![],
        }
    }

    fn spawn_failed(&mut self, error: SpawnError, now: Now) -> Vec<Effect> {
        let Phase::Spawning { doomed } = self.phase else { return vec![] };
        if doomed {
            return self.stop(StopReason::Killed);
        }
        match (error, self.ralph.is_some()) {
            (SpawnError::Prompt(message), _) => self.stop(StopReason::Prompt(message)),
            (SpawnError::Other(message), false) => self.stop(StopReason::SpawnFailed(message)),
            (SpawnError::Other(message), true) => {
                self.after_failure(IterationExit::SpawnFailed, Some(message), now)
            }
        }
    }

    fn adopted(&mut self, now: Now) -> Vec<Effect> {
        match &mut self.phase {
            Phase::Spawning { .. } => self.up(now),
            // Whether the prompt went in is not known here; the edge keeps a mark and will not paste twice.
            Phase::Prompting { .. } => {
                self.phase = Phase::Prompting { by: now.after(PROMPT_TIMEOUT) };
                vec![Effect::Deliver(self.run)]
            }
            Phase::Ending { .. } => vec![Effect::Terminate(self.run)],
            Phase::Judging { .. } => vec![Effect::Judge(self.run)],
            // It was taken for lost and is not.
            Phase::Lost => {
                self.phase = Phase::Running { watch: Watch::default() };
                self.last_exit = None;
                vec![Effect::Persist]
            }
            Phase::Starting { .. } | Phase::Running { .. } => vec![],
            // A pane that should not be there any more. Its run is over and judged, so no grace is due; and
            // no deadline would follow a gentler way up.
            Phase::Idle | Phase::BackingOff { .. } | Phase::Parked | Phase::Stopped { .. } => {
                vec![Effect::ForceKill(self.run)]
            }
        }
    }

    fn never_started(&mut self, now: Now) -> Vec<Effect> {
        match self.phase {
            // The iteration was counted but nobody worked on it.
            Phase::Spawning { doomed: false } => {
                self.give_back();
                match self.held_back() {
                    Some(effects) => effects,
                    None => self.launch(now),
                }
            }
            Phase::Spawning { doomed: true } => {
                self.spawn_failed(SpawnError::Other("never started".into()), now)
            }
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => vec![],
        }
    }

    fn exited(&mut self, exit: Exit) -> Vec<Effect> {
        let why = match self.phase {
            Phase::Spawning { doomed } => doomed.then_some(Why::Kill),
            Phase::Starting { .. } | Phase::Prompting { .. } | Phase::Running { .. } => None,
            Phase::Ending { why, .. } => Some(why),
            Phase::Idle
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => return vec![],
        };
        self.phase = Phase::Judging { exit, why };
        self.last_exit = Some(exit);
        self.trouble = None;
        vec![Effect::Persist, Effect::Judge(self.run)]
    }

    fn server_lost(&mut self) -> Vec<Effect> {
        let killed = match self.phase {
            Phase::Spawning { doomed } => doomed,
            Phase::Starting { .. } | Phase::Prompting { .. } | Phase::Running { .. } => false,
            // The pattern had matched: the loop is complete, whatever became of the server.
            Phase::Ending { why: Why::Done, .. } => return self.exited(Exit::Lost),
            Phase::Ending { why, .. } => why == Why::Kill,
            Phase::Idle
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => return vec![],
        };
        self.last_exit = Some(Exit::Unknown);
        self.trouble = None;
        if killed {
            return self.stop(StopReason::Killed);
        }
        self.phase = Phase::Lost;
        vec![Effect::Persist, Effect::Tell(Entry::Lost { reason: "the tmux server went away".into() })]
    }

    fn turn_over(&mut self, now: Now) -> Vec<Effect> {
        match self.phase {
            Phase::Running { .. } if self.ralph.is_some() => self.end(Why::TurnOver, now),
            Phase::Running { .. }
            | Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => vec![],
        }
    }

    fn prompt_over(&mut self, failed: Option<String>) -> Vec<Effect> {
        let Phase::Prompting { .. } = self.phase else { return vec![] };
        self.phase = Phase::Running { watch: Watch::default() };
        let run = self.run.0;
        let entry = match failed {
            None => Entry::PromptSent { run },
            Some(message) => {
                let what = format!("prompt not delivered: {message}");
                self.trouble = Some(Trouble { kind: Kind::Prompt, what });
                Entry::PromptFailed { run, message }
            }
        };
        vec![Effect::Persist, Effect::Tell(entry)]
    }

    // ---- looking ----

    fn look(&mut self, reading: Option<Reading>, now: Now) -> Vec<Effect> {
        let limit = self.silence_limit();
        let (watch, waiting) = match &mut self.phase {
            Phase::Starting { ready_by, watch } => (watch, Some(ready_by.is_some())),
            Phase::Running { watch } => (watch, None),
            Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Prompting { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => return vec![],
        };
        let changed = watch.look(reading.as_ref(), now.mono);
        let (stable, done) = (watch.stable(), watch.done && !watch.working);
        let probe = limit.is_some_and(|limit| stable >= limit) && !watch.probing && waiting != Some(true);
        if let Some(reading) = reading {
            if waiting.is_some() && reading.ready && reading.blocked.is_none() {
                return self.ready(now);
            }
            if let Some(effects) = self.blocked(&reading, changed, now) {
                return effects;
            }
        }
        if waiting.is_none() && done && stable >= DONE_QUIET {
            return self.end(Why::Done, now);
        }
        if probe && let Phase::Starting { watch, .. } | Phase::Running { watch } = &mut self.phase {
            watch.probing = true;
            return vec![Effect::Probe(self.run)];
        }
        vec![]
    }

    /// How much silence ends the run now; `None` while no silence does.
    fn silence_limit(&self) -> Option<Duration> {
        let ralph = self.ralph.as_ref()?;
        let exempt = ralph.paused.is_some() || self.trouble.as_ref().is_some_and(|t| t.kind == Kind::Startup);
        (!exempt).then(|| Duration::from_secs(ralph.inactivity_timeout))
    }

    fn ready(&mut self, now: Now) -> Vec<Effect> {
        self.trouble = None;
        let tell = Effect::Tell(Entry::Ready { run: self.run.0 });
        if self.policy.paste {
            self.phase = Phase::Prompting { by: now.after(PROMPT_TIMEOUT) };
            vec![Effect::Persist, tell, Effect::Deliver(self.run)]
        } else {
            self.phase = Phase::Running { watch: Watch::default() };
            vec![Effect::Persist, tell]
        }
    }

    /// Takes over whether a person is needed; gives effects when that is news.
    fn blocked(&mut self, reading: &Reading, changed: bool, now: Now) -> Option<Vec<Effect>> {
        let known = self.trouble.as_ref();
        if let Some(blocked) = &reading.blocked {
            let kind = if blocked.startup { Kind::Startup } else { Kind::Dialog };
            let news = known.is_none_or(|t| t.kind != kind || t.what != blocked.what);
            return news.then(|| self.troubled(kind, &blocked.what));
        }
        let over = match known?.kind {
            Kind::Startup | Kind::Dialog => true,
            // Both stay told until the agent moves: nobody has helped it yet.
            Kind::NotReady => matches!(self.phase, Phase::Running { .. }),
            Kind::Prompt => changed || reading.working,
        };
        if over {
            self.trouble = None;
            if let Phase::Starting { ready_by, .. } = &mut self.phase {
                // The dialog was answered: from here on the agent has the whole time again.
                *ready_by = Some(now.after(Duration::from_secs(self.policy.ready_timeout)));
            }
        }
        None
    }

    fn troubled(&mut self, kind: Kind, what: &str) -> Vec<Effect> {
        self.trouble = Some(Trouble { kind, what: what.to_owned() });
        vec![Effect::Persist, Effect::Tell(Entry::Waiting { run: self.run.0, reason: what.to_owned() })]
    }

    fn probed(&mut self, busy: bool, now: Now) -> Vec<Effect> {
        let limit = self.silence_limit();
        let Some(ralph) = &self.ralph else { return vec![] };
        let (iteration, timeout) = (ralph.iteration, ralph.inactivity_timeout);
        let restarting = ralph.iteration < ralph.max_iterations;
        match &mut self.phase {
            Phase::Starting { watch, .. } | Phase::Running { watch } if watch.probing => {
                watch.probing = false;
                if limit.is_none_or(|limit| watch.stable() < limit) {
                    return vec![];
                }
                if busy && watch.extensions.saturating_add(1) < MAX_TIMEOUTS {
                    watch.extend();
                    return vec![Effect::Tell(Entry::InactivityExtended { iteration, timeout })];
                }
                let mut effects = self.end(Why::Inactivity, now);
                effects.insert(0, Effect::Tell(Entry::Inactivity { iteration, timeout, restarting }));
                effects
            }
            Phase::Starting { .. }
            | Phase::Running { .. }
            | Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Prompting { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => vec![],
        }
    }

    // ---- the end of a run ----

    fn end(&mut self, why: Why, now: Now) -> Vec<Effect> {
        self.phase = Phase::Ending { why, kill_at: now.after(GRACE) };
        self.trouble = None;
        vec![Effect::Persist, Effect::Terminate(self.run)]
    }

    fn judged(&mut self, verdict: Verdict, now: Now) -> Vec<Effect> {
        let Phase::Judging { exit, why } = self.phase else { return vec![] };
        let complete = why == Some(Why::Done) || verdict.is_complete();
        if why == Some(Why::Kill) {
            let mut effects = self.told_end(IterationExit::Killed, now);
            effects.extend(self.stop(StopReason::Killed));
            return effects;
        }
        if self.ralph.is_none() {
            return self.stop(if complete { StopReason::Complete } else { StopReason::Exited(exit) });
        }
        let ended = match why {
            Some(Why::Inactivity) => IterationExit::Inactivity,
            Some(Why::Done | Why::TurnOver | Why::Kill) => IterationExit::Done,
            None => IterationExit::Exit(exit),
        };
        if complete {
            let mut effects = self.told_end(ended, now);
            effects.extend(self.stop(StopReason::Complete));
            return effects;
        }
        if why.is_none() && !exit.is_success() {
            return self.after_failure(ended, None, now);
        }
        let mut effects = self.told_end(ended, now);
        if let Some(ralph) = self.ralph.as_mut().filter(|_| why != Some(Why::Inactivity)) {
            ralph.failures = 0;
        }
        effects.extend(self.after_iteration(now));
        effects
    }

    /// Counts a failed iteration, tells it, and goes on as the budgets allow.
    fn after_failure(&mut self, exit: IterationExit, message: Option<String>, now: Now) -> Vec<Effect> {
        let Some(ralph) = &mut self.ralph else { return vec![] };
        ralph.failures = ralph.failures.saturating_add(1);
        ralph.total_failures = ralph.total_failures.saturating_add(1);
        let over = budget::exhausted(ralph.failures, ralph.iteration, ralph.max_iterations).is_some();
        let wait = budget::backoff(ralph.failures);
        let backoff = (!over && ralph.paused.is_none()).then_some(wait.as_secs());
        let entry = Entry::IterationFailed {
            iteration: ralph.iteration,
            exit,
            seconds: ralph.elapsed(now),
            attempt: ralph.failures,
            limit: budget::MAX_FAILURES,
            backoff,
            message,
        };
        ralph.last_end = Some((ralph.iteration, entry.clone()));
        let mut effects = vec![Effect::Tell(entry)];
        if backoff.is_some() {
            self.phase = Phase::BackingOff { until: now.after(wait), delay: wait };
            effects.push(Effect::Persist);
        } else {
            effects.extend(self.after_iteration(now));
        }
        effects
    }

    /// The iteration is counted and told: stop, park, or start the next one.
    fn after_iteration(&mut self, now: Now) -> Vec<Effect> {
        let Some(ralph) = &self.ralph else { return vec![] };
        match budget::exhausted(ralph.failures, ralph.iteration, ralph.max_iterations) {
            Some(reason) => self.stop(reason),
            None => self.go_on(now),
        }
    }

    /// Starts the next run, unless the loop is paused or has no iteration left.
    fn go_on(&mut self, now: Now) -> Vec<Effect> {
        if let Some(effects) = self.held_back() {
            return effects;
        }
        self.run = self.run.next();
        self.launch(now)
    }

    /// What happens instead of a further iteration, when none may start. Asked before every launch: the
    /// limit may have been lowered and the loop paused since the last iteration was counted.
    fn held_back(&mut self) -> Option<Vec<Effect>> {
        let ralph = self.ralph.as_ref()?;
        if ralph.iteration >= ralph.max_iterations {
            return Some(self.stop(StopReason::MaxIterations));
        }
        ralph.paused?;
        self.phase = Phase::Parked;
        Some(vec![Effect::Persist])
    }

    /// Takes the current iteration back: it is to be done again, as a new run or by the same one.
    fn give_back(&mut self) {
        if let Some(ralph) = &mut self.ralph {
            ralph.iteration = ralph.iteration.saturating_sub(1);
        }
    }

    fn told_end(&mut self, exit: IterationExit, now: Now) -> Vec<Effect> {
        let Some(ralph) = &mut self.ralph else { return vec![] };
        let (iteration, seconds) = (ralph.iteration, ralph.elapsed(now));
        let entry = Entry::IterationEnded { iteration, exit, seconds };
        ralph.last_end = Some((ralph.iteration, entry.clone()));
        vec![Effect::Tell(entry)]
    }

    /// Starts the current run; for a loop, as its next iteration.
    fn launch(&mut self, now: Now) -> Vec<Effect> {
        self.phase = Phase::Spawning { doomed: false };
        self.last_exit = None;
        self.trouble = None;
        let mut effects = vec![Effect::Persist];
        if let Some(ralph) = &mut self.ralph {
            ralph.iteration = ralph.iteration.saturating_add(1);
            ralph.iteration_started = Some(now.wall);
            ralph.started_mono = now.mono;
            let (iteration, max) = (ralph.iteration, ralph.max_iterations);
            effects.push(Effect::Tell(Entry::IterationStarted { iteration, max }));
        }
        effects.push(Effect::Spawn(self.run));
        effects
    }

    fn stop(&mut self, reason: StopReason) -> Vec<Effect> {
        self.phase = Phase::Stopped { reason: reason.clone() };
        self.trouble = None;
        let mut effects = vec![Effect::Persist];
        if reason == StopReason::Complete {
            let iteration = self.ralph.as_ref().map_or(0, |l| l.iteration);
            effects.push(Effect::Tell(Entry::DonePatternMatched { iteration }));
        }
        effects.extend(self.last_word().map(Effect::Tell));
        effects
    }

    /// What is told at the very end.
    fn last_word(&self) -> Option<Entry> {
        let Phase::Stopped { reason } = &self.phase else { return None };
        let reason = reason.clone();
        Some(match self.ralph.as_ref().map(|l| l.iteration) {
            None => Entry::Stopped { reason },
            Some(iterations) if reason.is_success() => Entry::LoopComplete { iterations, reason },
            Some(iterations) => Entry::LoopFailed { iterations, reason },
        })
    }

    /// What a loop in this state must have told of it, in order. News follow their save, so a daemon that
    /// died between the two told nothing, and the next one has to.
    pub fn told(&self) -> Vec<Entry> {
        let Some(ralph) = &self.ralph else { return vec![] };
        let (iteration, max, timeout) = (ralph.iteration, ralph.max_iterations, ralph.inactivity_timeout);
        let silent = matches!(self.phase, Phase::Ending { why: Why::Inactivity, .. });
        let silence = silent.then_some(Entry::Inactivity { iteration, timeout, restarting: iteration < max });
        let started = (iteration > 0).then_some(Entry::IterationStarted { iteration, max });
        let (before, after) = match &ralph.last_end {
            Some((of, end)) if *of == iteration => (None, Some(end.clone())),
            end => (end.as_ref().map(|(_, end)| end.clone()), None),
        };
        let paused = ralph.paused.map(|by| Entry::Paused { by });
        let told = [before, started, silence, after, paused, self.last_word()];
        told.into_iter().flatten().collect()
    }
}

/// One save, before everything else: the state is final when a step is over.
fn saved_first(mut effects: Vec<Effect>) -> Vec<Effect> {
    if effects.contains(&Effect::Persist) {
        effects.retain(|effect| *effect != Effect::Persist);
        effects.insert(0, Effect::Persist);
    }
    effects
}

impl Loop {
    /// Whole seconds of the current iteration so far.
    fn elapsed(&self, now: Now) -> u64 {
        now.mono.saturating_sub(self.started_mono).as_secs()
    }
}
