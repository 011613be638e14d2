//! The restart policy of a plain worker: what follows the end of a run.
//!
//! The worker waits in the same phase as a failed loop, and the same transition starts the next run.
//! [`crate::budget`] decides whether there is one. Loops do not use this module; a worker without a policy stops.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, Timelike};
use serde::{Deserialize, Serialize};

use super::{Effect, Now, Phase, Policy, Worker};
use crate::budget::{self, AfterRun};
use crate::model::{Exit, RestartSpec, RestartWhen};
use crate::notice::{Entry, IterationExit, StopReason};

/// A restart policy and its counters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restarts {
    /// The policy.
    pub spec: RestartSpec,
    /// Failures in a row. A run that succeeded or lived long resets the count.
    pub failures: u32,
    /// When the current run started, on the monotonic clock.
    pub(super) started_mono: Duration,
    /// This daemon saw the run alive. Otherwise its lifetime is unknown and does not reset the count.
    #[serde(skip)]
    pub(super) watched: bool,
    /// Why and when the next run starts; present between two runs.
    pub(super) next: Option<NextRun>,
    /// How the last run ended, as text; absent in a file of an older release.
    #[serde(default)]
    pub(super) last_end: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NextRun {
    /// How the previous run ended, as text.
    pub(super) why: String,
    /// When it is due, on the wall clock. For people only: the wait itself is monotonic.
    pub(super) at: DateTime<FixedOffset>,
}

impl Restarts {
    /// When the next run is due, on the wall clock; `None` while one lives or when none is to come.
    pub fn next_at(&self) -> Option<DateTime<FixedOffset>> {
        self.next.as_ref().map(|next| next.at)
    }

    pub(super) fn reason(&self) -> Option<String> {
        let NextRun { why, at } = self.next.as_ref()?;
        let at = format!("{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second());
        Some(match self.failures {
            0 => format!("{why}, next run at {at}"),
            n => format!("{why}, restart {n}/{} at {at}", self.spec.max_restarts),
        })
    }
}

impl Worker {
    /// A worker that runs its command again after its end.
    pub fn restarting(policy: Policy, spec: RestartSpec) -> Self {
        let restarts = Restarts {
            spec,
            failures: 0,
            started_mono: Duration::ZERO,
            watched: false,
            next: None,
            last_end: None,
        };
        Self { restarts: Some(restarts), ..Self::plain(policy) }
    }

    /// Its restart policy, if it has one.
    pub fn restarts(&self) -> Option<&Restarts> {
        self.restarts.as_ref()
    }

    pub(super) fn note_up(&mut self, now: Now) {
        if let Some(restarts) = &mut self.restarts {
            (restarts.started_mono, restarts.watched) = (now.mono, true);
        }
    }

    /// Records that a run of an earlier daemon is alive.
    pub(super) fn seen_alive(&mut self) {
        if let Some(restarts) = &mut self.restarts {
            restarts.watched = true;
        }
    }

    pub(super) fn note_launch(&mut self) {
        if let Some(restarts) = &mut self.restarts {
            (restarts.watched, restarts.next) = (false, None);
        }
    }

    /// A run has ended. If it lived long, earlier failures no longer count.
    pub(super) fn count_lifetime(&mut self, now: Now) {
        if let Some(restarts) = &mut self.restarts
            && restarts.watched
            && now.mono.saturating_sub(restarts.started_mono) >= budget::PROVEN_RUN_TIME
        {
            restarts.failures = 0;
        }
    }

    /// A run of a plain worker exited: restarts it, or stops the worker.
    pub(super) fn after_run(&mut self, exit: Exit, now: Now) -> Vec<Effect> {
        self.restart_or_stop(StopReason::Exited(exit), IterationExit::Exit(exit), None, now)
    }

    /// A run of a plain worker could not be started: retries, or stops the worker.
    pub(super) fn after_failed_start(&mut self, end: StopReason, message: String, now: Now) -> Vec<Effect> {
        self.restart_or_stop(end, IterationExit::SpawnFailed, Some(message), now)
    }

    /// `end` is the end reason if the policy permits no restart.
    fn restart_or_stop(
        &mut self,
        end: StopReason,
        exit: IterationExit,
        message: Option<String>,
        now: Now,
    ) -> Vec<Effect> {
        let run = self.run.0;
        let has_status = matches!(exit, IterationExit::Exit(Exit::Code(_)));
        let is_final = |spec: RestartSpec| spec.when == RestartWhen::OnAbnormal && has_status;
        let Some(restarts) = self.restarts.as_mut().filter(|restarts| !is_final(restarts.spec)) else {
            return self.stop(end);
        };
        restarts.failures = if end.is_success() { 0 } else { restarts.failures.saturating_add(1) };
        restarts.last_end = Some(end.text());
        let (attempt, limit) = (restarts.failures, restarts.spec.max_restarts);
        let next = budget::after_run(restarts.spec, attempt);
        let backoff = match next {
            AfterRun::Over | AfterRun::GiveUp(_) => None,
            AfterRun::Again(wait) => {
                let at = now.wall.checked_add_signed(chrono::TimeDelta::from_std(wait).unwrap_or_default());
                restarts.next = Some(NextRun { why: end.text(), at: at.unwrap_or(now.wall) });
                Some(wait.as_secs())
            }
        };
        let ended = Entry::RunEnded { run, exit, attempt, limit, backoff, message };
        let mut effects = vec![Effect::Notify(ended)];
        match next {
            AfterRun::Over => effects.extend(self.stop(end)),
            AfterRun::GiveUp(restarts) => effects.extend(self.stop(StopReason::GaveUp(restarts))),
            AfterRun::Again(wait) => {
                self.phase = Phase::BackingOff { until: now.after(wait), delay: wait };
                effects.push(Effect::Persist);
            }
        }
        effects
    }
}
