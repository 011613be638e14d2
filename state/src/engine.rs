//! The engine: a worker as a state machine. States x events -> effects.
//!
//! [`Worker::step`] is the only function that changes a worker. [`Worker::deadline`] returns when the next
//! [`Event::Tick`] is due, and the views derive its status. The daemon's supervisor feeds events in and carries the
//! effects out in order. The engine reads no clock and does no IO.
//!
//! Seven rules, each with a test:
//!
//! 1. Timers are derived from the phase. There is no set-timer effect, so no timer can be stale.
//! 2. Every report has the number of its run; a report about another run is dropped.
//! 3. Intent before action: [`Effect::Persist`] comes before [`Effect::Spawn`]. A crash between them is repaired by
//!    [`crate::reconcile`], never by a second agent. Notices come after the save too, so that a reader of a notice
//!    finds its state on disk.
//! 4. Exit status is data; "unknown" is never success.
//! 5. Safety: never two live panes of one worker, never more iterations or restarts in a row than the maximum,
//!    stopped only when no pane is left, no spawn by a paused loop or a killed worker.
//! 6. Liveness: a kill always reaches the end; every phase that waits has a deadline or an outstanding report.
//! 7. No wildcard arm over events or phases: a new one forces a decision in each transition and in each accessor of
//!    [`Phase`].
//!
//! Not here: retries of tmux or git (the daemon), texts ([`crate::notice`]), and what a screen shows
//! ([`crate::screen`]).

mod clock;
mod constructors;
mod context_limit;
mod ended;
mod events;
mod follow_up;
mod hold;
mod hook_signals;
mod limits;
mod parking;
mod phase;
mod questions;
mod reports;
mod restart;
mod screen_looks;
mod screen_watch;
mod step;
mod view;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

pub use clock::{AwakeClock, ClockJump};
pub use ended::Ended;
pub use events::{Effect, Event, SpawnError};
pub use hold::{Presence, RELEASE_DELAY};
pub use hook_signals::HookSignal;
pub use phase::{Phase, Why};
pub use restart::Restarts;
pub use screen_watch::Watch;

use crate::budget::{BudgetEdits, Budgets, Spent};
use crate::model::{Exit, Run, default_question_timeout};
use crate::notice::{Entry, PauseBy};
use crate::outage::Outage;
use crate::quota::Park;

/// The time between SIGTERM and SIGKILL, and between two SIGKILLs.
pub(crate) const KILL_DELAY: Duration = Duration::from_secs(5);

/// How long the screen must be still after the done pattern matched before swarm ends the agent.
pub(crate) const DONE_QUIET_TIME: Duration = Duration::from_secs(4);

/// How long the delivery of a prompt may take before it counts as failed.
pub(crate) const PROMPT_TIMEOUT: Duration = Duration::from_secs(120);

/// How many inactivity timeouts in total an agent may exceed while it is computing.
pub(crate) const MAX_TIMEOUTS: u32 = 10;

/// The current time, as an argument: the engine reads no clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Now {
    /// Monotonic time while the machine was awake.
    pub mono: Duration,
    /// The wall clock, local.
    pub wall: DateTime<FixedOffset>,
}

impl Now {
    /// The time `wait` from now on the monotonic clock; saturates.
    fn after(self, wait: Duration) -> Duration {
        self.mono.saturating_add(wait)
    }
}

/// The part of the spec that the engine uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The prompt is pasted once the agent is ready.
    pub paste: bool,
    /// Wait for a ready screen even with nothing to paste.
    pub ready_wait: bool,
    /// Seconds until a screen that is not ready is reported.
    pub ready_timeout: u64,
    /// The command is known to do one task and exit.
    #[serde(default)]
    pub one_shot: bool,
}

/// A loop's settings and counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loop {
    /// The current or last iteration; 0 before the first.
    pub iteration: u32,
    /// The maximum number of iterations.
    pub max_iterations: u32,
    /// Seconds of an unchanged screen that end an iteration.
    pub inactivity_timeout: u64,
    /// Seconds that a question during work may stay unanswered; 0: no limit.
    #[serde(default = "default_question_timeout")]
    pub question_timeout: u64,
    /// Failures in a row.
    pub failures: u32,
    /// All failures.
    pub total_failures: u32,
    /// When the current iteration started.
    pub iteration_started: Option<DateTime<FixedOffset>>,
    /// The same on the monotonic clock, to measure the duration.
    started_mono: Duration,
    /// The origin of the pause.
    pub paused: Option<PauseBy>,
    /// The limits in addition to the iterations.
    #[serde(default)]
    pub budgets: Budgets,
    /// The loop has gates in addition to a done pattern.
    #[serde(default)]
    pub gated: bool,
    /// An agent of the loop has started at least once. From then on the baseline is known, or lost.
    #[serde(default)]
    pub worked: bool,
    /// The time, cost and tokens used so far; the time up to `since`.
    #[serde(default)]
    spent: Spent,
    /// Since when time counts; `None` while it does not count.
    #[serde(default)]
    since: Option<Duration>,
    /// Outages in a row; and the last one, while the loop waits for its end.
    #[serde(default)]
    outages: u32,
    #[serde(default)]
    outage: Option<Outage>,
    /// The account's park that the loop waits out; and the reset of the last one that a person lifted for this loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    park: Option<Park>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lifted_until: Option<DateTime<FixedOffset>>,
    /// All outages, and the seconds lost to those that have ended.
    #[serde(default)]
    total_outages: u32,
    #[serde(default)]
    outage_seconds: u64,
    /// When the iteration started that the current outage ended; `None` without an outage.
    #[serde(default)]
    outage_since: Option<DateTime<FixedOffset>>,
    /// Iterations in a row without progress.
    #[serde(default)]
    stalls: u32,
    /// The last iteration did not report its cost or tokens, although they are limited.
    #[serde(default)]
    unseen: bool,
    /// The held-out checks failed too often in the last iteration.
    #[serde(default)]
    tries_spent: bool,
    /// Why a check could not run in the last iteration, if the agent cannot fix it.
    #[serde(default)]
    cannot_check: Option<String>,
    /// Why a person has to decide about the story of the last iteration.
    #[serde(default)]
    story_stuck: Option<String>,
    /// At least one iteration succeeded. A record of an older release did not count them.
    #[serde(default = "yes")]
    succeeded: bool,
    /// How long the current iteration was held, without the hold that lasts.
    #[serde(default)]
    held: Duration,
    /// Details about the end of the current iteration.
    #[serde(default)]
    detail: Option<String>,
    /// The last iteration that ended, and its notice.
    #[serde(default)]
    last_end: Option<(u32, Entry)>,
}

/// The settings of a loop that a person changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// A new limit, at least 1. It may be below the current iteration: then that one is the last.
    pub max_iterations: Option<u32>,
    /// A new inactivity timeout in seconds, at least 1.
    pub inactivity_timeout: Option<u64>,
    /// A new limit for unanswered questions, seconds; 0: none.
    pub question_timeout: Option<u64>,
    /// A new done pattern (never empty); `Some(None)` removes it. A match of the old one does not count.
    pub done_pattern: Option<Option<String>>,
    /// A new prompt file, absolute.
    pub prompt_file: Option<PathBuf>,
    /// New limits.
    pub budgets: BudgetEdits,
}

impl Edits {
    /// True when nothing was changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    policy: Policy,
    phase: Phase,
    run: Run,
    /// How many run numbers belong to no agent, because their start failed.
    #[serde(default)]
    unstarted: u64,
    last_exit: Option<Exit>,
    /// Why a person is needed; `None` if none is.
    trouble: Option<Trouble>,
    ralph: Option<Loop>,
    #[serde(default)]
    restarts: Option<Restarts>,
    #[serde(default)]
    evidence: Evidence,
    #[serde(default, skip_serializing_if = "hold::Hold::is_none")]
    hold: hold::Hold,
    /// The last run that was reported as ready.
    #[serde(default)]
    greeted: Run,
    #[serde(skip, default = "yes")]
    reachable: bool,
    /// The present park of the agent's account.
    #[serde(skip)]
    account_park: Option<Park>,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Trouble {
    kind: TroubleKind,
    what: String,
    /// Since when a question has waited for its answer, on the monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Duration>,
}

/// Why a person is needed. The kinds differ in how long they may last and in what ends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TroubleKind {
    /// A dialog at the agent's start, which the next run would show too: no time limit.
    Startup,
    /// A question on the screen during work: limited by the question timeout.
    Dialog,
    /// No ready screen in time: no time limit.
    NotReady,
    /// The prompt was not delivered to a plain worker's agent.
    Prompt,
    /// A question that the agent's hook reported: as for [`TroubleKind::Dialog`].
    Asked,
}

/// The evidence of the current run for its verdict. An agent may leave its alternate screen, close its pane or die with
/// its server before the last capture. So the result of a look is kept in the worker's record until the next run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// New output matched the done pattern.
    pub done: bool,
}

impl Worker {
    /// Its phase.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The current or last run; 0 when there was none.
    pub fn run(&self) -> Run {
        self.run
    }

    /// How often its agent was started after the first time. A failed start does not count.
    pub fn restart_count(&self) -> u64 {
        self.run.0.saturating_sub(self.unstarted).saturating_sub(1)
    }

    /// Its loop, if it is one.
    pub fn ralph(&self) -> Option<&Loop> {
        self.ralph.as_ref()
    }

    /// The evidence of the current or last run.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// How the last run ended; `None` while one lives or when there was none.
    pub fn last_exit(&self) -> Option<Exit> {
        self.last_exit
    }

    /// True while a pane of the current run may exist.
    pub fn has_pane(&self) -> bool {
        self.phase.has_pane()
    }

    /// True if the screen has to be read.
    pub fn wants_screen(&self) -> bool {
        self.phase.watch().is_some()
    }

    /// True when the worker has finished and its name is free.
    pub fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped { .. })
    }

    /// When a [`Event::Tick`] is due, on [`Now::mono`]'s clock.
    pub fn deadline(&self) -> Option<Duration> {
        let time_limit = self.time_limit().map(|(at, _)| at);
        let deadlines = [self.phase_deadline(), time_limit, self.question_deadline(), self.hold_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Adjusts times from an earlier boot or daemon to this clock, so that no wait grows by a restart.
    pub fn rebase(&mut self, now: Now) {
        match &mut self.phase {
            Phase::BackingOff { until, delay } => *until = (*until).min(now.after(*delay)),
            Phase::Starting { ready_by, .. } => {
                *ready_by =
                    ready_by.map(|by| by.min(now.after(Duration::from_secs(self.policy.ready_timeout))));
            }
            Phase::Prompting { by } => *by = (*by).min(now.after(PROMPT_TIMEOUT)),
            Phase::Ending { kill_at, .. } => *kill_at = (*kill_at).min(now.after(KILL_DELAY)),
            Phase::Idle | Phase::Spawning { .. } | Phase::Running { .. } | Phase::Evaluating { .. } => {}
            Phase::Parked | Phase::Lost | Phase::Stopped { .. } => {}
        }
        if let Some(watch) = self.phase.watch_mut() {
            watch.forget_time();
        }
        self.hold.rebase(now);
        if let Some(trouble) = &mut self.trouble {
            trouble.since = trouble.since.map(|since| since.min(now.mono));
        }
        if let Some(ralph) = &mut self.ralph {
            ralph.started_mono = ralph.started_mono.min(now.mono);
            ralph.since = ralph.since.map(|since| since.min(now.mono));
        }
        if let Some(restarts) = &mut self.restarts {
            restarts.started_mono = restarts.started_mono.min(now.mono);
        }
    }
}
