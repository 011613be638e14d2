//! Seeded bugs, and that the walks and the worlds catch each one.
//!
//! A bug is put in from outside: the event is bent before the step, the effects or the worker after it.

use super::walk::seeded_walk;
use super::world::{CRASHING, FAULTY, TRUTHFUL, random_world, restarting_world};
use super::*;
use crate::engine::Why;
use crate::notice::StopReason;

/// A bug to put into a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// Takes news of any run for news of the current one.
    NoGenerations,
    /// Is stopped at once by a kill while spawning.
    StopsWhileSpawning,
    /// Forgets a kill that comes while spawning.
    ForgetsDoom,
    /// Waits for ever when a doomed spawn fails.
    SwallowsSpawnFailed,
    ForgetsPersist,
    /// Spawns, then writes.
    SpawnsFirst,
    SpawnsTwice,
    RespawnsAdopted,
    UnknownIsSuccess,
    /// Takes silence without any output for the end of a turn.
    SilenceIsSuccess,
    /// Counts an iteration whose agent never had its prompt as a success.
    UndeliveredIsSuccess,
    /// Ends an agent that asks a question, as if it were silent.
    EndsWhileAsked,
    ForgetsThatAllFailed,
    IgnoresPause,
    /// Ends a silent agent of a paused loop.
    EndsWhilePaused,
    /// Has no iteration limit.
    ForgetsMaximum,
    /// Counts a run that never started twice.
    CountsTwice,
    /// Backs off without a deadline.
    BacksOffForEver,
    NeverForces,
    StaleTimer,
    ForgetsJudge,
    /// Asks again and again whether the agent computes.
    ProbesAlways,
    /// Forgets the failures before, so that a worker is started again for ever.
    ForgetsFailures,
    /// Starts a worker again whose command ended well and was to run once.
    RestartsSuccess,
    ForgetsBackoff,
    /// Lets a kill pass while it waits to start again.
    OutlivesKill,
    /// Takes a restart that the daemon's death interrupted for one that is to come yet.
    ForgetsRun,
    /// Takes a pattern that matched for the whole of a loop that has other gates.
    BelievesThePattern,
    OutageIsFailure,
    ForgetsCost,
    IgnoresHold,
}

/// A worker, and what is wrong with it.
pub(super) struct Machine {
    pub(super) worker: Worker,
    bug: Option<Bug>,
}

impl Machine {
    /// The engine as it is.
    pub(super) fn true_one(worker: Worker) -> Self {
        Self { worker, bug: None }
    }

    pub(super) fn with(bug: Bug, worker: Worker) -> Self {
        Self { worker, bug: Some(bug) }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        let waits = matches!(self.worker.phase, Phase::BackingOff { .. });
        self.worker.deadline().filter(|_| !(waits && self.bug == Some(Bug::BacksOffForEver)))
    }

    pub(super) fn rebase(&mut self, now: Now) {
        self.worker.rebase(now);
    }

    pub(super) fn step(&mut self, event: Event, now: Now) -> Vec<Effect> {
        match self.bug {
            None => self.worker.step(event, now),
            Some(bug) => self.wrong(bug, event, now),
        }
    }

    fn wrong(&mut self, bug: Bug, event: Event, now: Now) -> Vec<Effect> {
        let was = self.worker.clone();
        let event = self.bend(bug, event);
        let mut effects = self.worker.step(event.clone(), now);
        self.restore(bug, &was, &event);
        match bug {
            Bug::StopsWhileSpawning if matches!(self.worker.phase, Phase::Spawning { doomed: true }) => {
                self.worker.phase = Phase::Stopped { reason: StopReason::Killed };
            }
            Bug::ForgetsDoom => {
                if let Phase::Spawning { doomed } = &mut self.worker.phase {
                    *doomed = false;
                }
            }
            Bug::SwallowsSpawnFailed
                if matches!(was.phase, Phase::Spawning { doomed: true })
                    && matches!(event, Event::SpawnFailed(..) | Event::NeverStarted(_)) =>
            {
                self.worker = was;
                effects.clear();
            }
            Bug::ForgetsPersist => effects.retain(|e| *e != Effect::Persist),
            Bug::SpawnsFirst => effects.sort_by_key(|e| !matches!(e, Effect::Spawn(_))),
            Bug::SpawnsTwice => {
                effects.extend(effects.clone().into_iter().filter(|e| matches!(e, Effect::Spawn(_))))
            }
            Bug::RespawnsAdopted
                if matches!(event, Event::Adopted(_)) && was.phase == (Phase::Spawning { doomed: false }) =>
            {
                self.worker = was;
                effects = vec![Effect::Persist, Effect::Spawn(self.worker.run)];
            }
            Bug::OutlivesKill if event == Event::Kill && matches!(was.phase, Phase::BackingOff { .. }) => {
                self.worker = was;
                effects.clear();
            }
            Bug::ForgetsRun
                if matches!(event, Event::Adopted(_)) && matches!(was.phase, Phase::Running { .. }) =>
            {
                self.worker.phase = Phase::BackingOff { until: now.mono, delay: Duration::ZERO };
                effects = vec![Effect::Persist];
            }
            Bug::NeverForces => effects.retain(|e| !matches!(e, Effect::ForceKill(_))),
            Bug::ForgetsJudge => effects.retain(|e| !matches!(e, Effect::Evaluate(_))),
            _ => {}
        }
        effects
    }

    /// Bends the event, or what the engine knows when it takes it.
    fn bend(&mut self, bug: Bug, event: Event) -> Event {
        let worker = &mut self.worker;
        let looks = matches!(event, Event::Quiet(_) | Event::Screen(..) | Event::Probed(..));
        match (bug, &mut worker.phase, &mut worker.ralph) {
            (Bug::NoGenerations, ..) => return of_run(event, worker.run),
            (Bug::IgnoresPause, ..) if matches!(event, Event::Pause(_)) => return Event::Reachable(true),
            (Bug::IgnoresHold, ..) if matches!(event, Event::Hold) => return Event::Reachable(true),
            (Bug::UnknownIsSuccess, Phase::Evaluating { exit, .. }, _) if *exit == Exit::Unknown => {
                *exit = Exit::Code(0);
            }
            (Bug::SilenceIsSuccess, Phase::Evaluating { why, .. }, _) if *why == Some(Why::Silent) => {
                *why = Some(Why::TurnOver);
            }
            (Bug::UndeliveredIsSuccess, Phase::Evaluating { why, .. }, _)
                if *why == Some(Why::Undelivered) =>
            {
                *why = Some(Why::TurnOver);
            }
            (Bug::EndsWhileAsked, ..) if looks => worker.trouble = None,
            (Bug::ForgetsThatAllFailed, _, Some(ralph)) => ralph.succeeded = true,
            (Bug::EndsWhilePaused, _, Some(ralph)) if looks => ralph.paused = None,
            (Bug::BelievesThePattern, _, Some(ralph)) => ralph.gated = false,
            (Bug::OutageIsFailure, ..) => {
                if let Event::Evaluated(run, verdict) = event {
                    return Event::Evaluated(run, Verdict { outage: None, ..verdict });
                }
            }
            (Bug::ForgetsCost, _, Some(ralph)) => ralph.spent.cost = 0,
            (Bug::ForgetsMaximum, _, Some(ralph)) => ralph.max_iterations = u32::MAX,
            (Bug::CountsTwice, Phase::Spawning { .. }, Some(ralph))
                if matches!(event, Event::NeverStarted(_)) =>
            {
                ralph.iteration += 1;
            }
            (Bug::RestartsSuccess, Phase::Evaluating { exit, .. }, None) if *exit == Exit::Code(0) => {
                *exit = Exit::Code(1);
            }
            (Bug::ForgetsFailures, Phase::Evaluating { .. }, None) => {
                if let Some(restarts) = &mut worker.restarts {
                    restarts.failures = 0;
                }
            }
            (Bug::ProbesAlways, Phase::Running { watch }, _) if !matches!(event, Event::Probed(..)) => {
                watch.probing = false;
            }
            _ => {}
        }
        event
    }

    /// Takes back what was bent, and bends what stays.
    fn restore(&mut self, bug: Bug, was: &Worker, event: &Event) {
        if let (Bug::ForgetsBackoff, Phase::BackingOff { until, .. }) = (bug, &mut self.worker.phase) {
            *until = Duration::ZERO;
        }
        let (Some(ralph), Some(before)) = (&mut self.worker.ralph, &was.ralph) else { return };
        let paused = before.paused.filter(|_| !matches!(event, Event::Resume));
        match bug {
            Bug::EndsWhilePaused => ralph.paused = ralph.paused.or(paused),
            Bug::BelievesThePattern => ralph.gated = before.gated,
            Bug::ForgetsCost => ralph.spent.cost += before.spent.cost,
            Bug::ForgetsMaximum if !matches!(event, Event::Edited(_)) => {
                ralph.max_iterations = before.max_iterations
            }
            Bug::StaleTimer => {
                if let (Phase::Ending { kill_at, .. }, Phase::Ending { kill_at: old, .. }) =
                    (&mut self.worker.phase, &was.phase)
                {
                    *kill_at = *old;
                }
            }
            _ => {}
        }
    }
}

/// The same news, said of another run.
fn of_run(event: Event, run: Run) -> Event {
    match event {
        Event::Start
        | Event::Pause(_)
        | Event::Resume
        | Event::Kill
        | Event::Edited(_)
        | Event::Hold
        | Event::Release
        | Event::Present(_)
        | Event::Tick
        | Event::Quota(_)
        | Event::Reachable(_) => event,
        Event::Up(_) => Event::Up(run),
        Event::SpawnFailed(_, error) => Event::SpawnFailed(run, error),
        Event::Adopted(_) => Event::Adopted(run),
        Event::NeverStarted(_) => Event::NeverStarted(run),
        Event::Screen(_, reading) => Event::Screen(run, reading),
        Event::Quiet(_) => Event::Quiet(run),
        Event::PromptSent(_) => Event::PromptSent(run),
        Event::PromptFailed(_, message) => Event::PromptFailed(run, message),
        Event::PromptBlocked(_, dialog) => Event::PromptBlocked(run, dialog),
        Event::Typing(_) => Event::Typing(run),
        Event::Typed(_) => Event::Typed(run),
        Event::Hook(_, heard) => Event::Hook(run, heard),
        Event::Grew(_, ago) => Event::Grew(run, ago),
        Event::Probed(_, busy) => Event::Probed(run, busy),
        Event::Exited(_, exit) => Event::Exited(run, exit),
        Event::PaneLost(_) => Event::PaneLost(run),
        Event::ServerLost(_) => Event::ServerLost(run),
        Event::Evaluated(_, verdict) => Event::Evaluated(run, verdict),
    }
}

/// Every bug, and whether the walks and the worlds see it.
const BUGS: &[(Bug, bool, bool)] = &[
    (Bug::NoGenerations, true, true),
    (Bug::StopsWhileSpawning, true, true),
    (Bug::ForgetsDoom, true, true),
    (Bug::SwallowsSpawnFailed, true, true),
    (Bug::ForgetsPersist, true, true),
    (Bug::SpawnsFirst, true, false),
    (Bug::SpawnsTwice, true, true),
    (Bug::RespawnsAdopted, true, true),
    (Bug::UnknownIsSuccess, true, true),
    (Bug::SilenceIsSuccess, true, false),
    (Bug::UndeliveredIsSuccess, true, false),
    (Bug::EndsWhileAsked, true, true),
    (Bug::ForgetsThatAllFailed, true, false),
    (Bug::IgnoresPause, true, false),
    (Bug::EndsWhilePaused, true, false),
    (Bug::ForgetsMaximum, true, false),
    (Bug::CountsTwice, true, true),
    (Bug::BacksOffForEver, true, true),
    (Bug::NeverForces, false, true),
    (Bug::StaleTimer, true, false),
    (Bug::ForgetsJudge, true, true),
    (Bug::ProbesAlways, true, false),
    (Bug::ForgetsFailures, true, true),
    (Bug::RestartsSuccess, true, true),
    (Bug::ForgetsBackoff, true, true),
    (Bug::OutlivesKill, true, true),
    (Bug::ForgetsRun, true, true),
    (Bug::BelievesThePattern, true, false),
    (Bug::OutageIsFailure, true, false),
    (Bug::ForgetsCost, true, false),
    (Bug::IgnoresHold, true, false),
];

#[test]
fn every_seeded_bug_is_detected() {
    let mut seen = Vec::new();
    for &(bug, ..) in BUGS {
        let walks = (0..12_000).any(|seed| seeded_walk(|w| Machine::with(bug, w), seed).is_err());
        let machine = |w| Machine::with(bug, w);
        let worlds = (0..60).any(|seed| {
            [TRUTHFUL, CRASHING, FAULTY]
                .into_iter()
                .any(|faults| random_world(machine, seed, faults).is_err())
                || restarting_world(machine, seed, TRUTHFUL).is_err()
                || restarting_world(machine, seed, CRASHING).is_err()
        });
        seen.push((bug, walks, worlds));
    }
    assert_eq!(seen, BUGS, "{seen:#?}");
    assert!(seen.iter().all(|(_, walks, worlds)| *walks || *worlds), "a bug that nobody sees");
}
