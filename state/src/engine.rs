//! The heart: a worker as states x events -> effects.
//!
//! [`Worker::step`] is the only thing that changes a worker, [`Worker::deadline`] says when it wants a
//! [`Event::Tick`], and the views say how it is. The daemon's supervisor feeds events and carries effects
//! out in order; nothing here reads a clock or does IO.
//!
//! Seven rules, each held by a test:
//!
//! 1. Timers are derived from the phase. There is no set-timer effect, so none can be stale.
//! 2. Every report from the world carries the run it is about; news of another run is dropped.
//! 3. Intent before action: [`Effect::Persist`] stands before [`Effect::Spawn`]. A crash between them is
//!    repaired by [`crate::reconcile`], never by a second agent.
//!    News come after the save too, so that who hears of something finds it on disk.
//! 4. Exit status is data; "unknown" is never success.
//! 5. Safety: never two live panes of one worker, never more iterations or restarts in a row than the
//!    maximum, stopped only when no pane is left, no spawn by a paused loop or a killed worker.
//! 6. Liveness: a kill always reaches the end; every phase that waits has a deadline or a report
//!    outstanding.
//! 7. No wildcard arm over events or phases: a new one forces a decision in each transition and in each accessor of
//!    [`Phase`].
//!
//! Deliberately absent: retries of tmux or git (the edge's work), texts (they are [`crate::notice`]), and
//! any knowledge of what a screen shows (that is [`crate::screen`]).

mod clock;
mod constructors;
mod ended;
mod events;
mod evidence;
mod follow_up;
mod hook_signals;
mod limits;
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

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

pub use clock::{AwakeClock, ClockJump};
pub use ended::Ended;
pub use events::{Effect, Event, SpawnError};
pub use evidence::Evidence;
pub use hook_signals::HookSignal;
pub use restart::Restarts;
pub use screen_watch::Watch;

use crate::budget::{Budgets, Spent};
use crate::model::{Exit, QUESTION_TIMEOUT_SECONDS, Run};
use crate::notice::{Entry, PauseBy, StopReason};
use crate::outage::Outage;

/// How long TERM is given before KILL, and how long between two KILLs.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long a screen must be quiet after the done pattern matched before the agent is ended.
pub const DONE_QUIET: Duration = Duration::from_secs(4);

/// How long the delivery of a prompt may take before it counts as failed.
pub const PROMPT_TIMEOUT: Duration = Duration::from_secs(120);

/// Inactivity time-outs in all that a computing agent may use up before it is ended.
pub const MAX_TIMEOUTS: u32 = 10;

/// The time, given and never read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Now {
    /// Monotonic time that the machine was awake.
    pub mono: Duration,
    /// The wall clock, local.
    pub wall: DateTime<FixedOffset>,
}

impl Now {
    /// The moment that lies `wait` ahead on the monotonic clock; the far end of time rather than an overflow.
    fn after(self, wait: Duration) -> Duration {
        self.mono.saturating_add(wait)
    }
}

/// What was fixed at spawn and matters to the engine.
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

/// The numbers of a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loop {
    /// The current or last iteration; 0 before the first.
    pub iteration: u32,
    /// The limit.
    pub max_iterations: u32,
    /// Seconds of an unchanged screen that end an iteration.
    pub inactivity_timeout: u64,
    /// Seconds that a question in mid-work may stay unanswered; 0: no limit.
    #[serde(default = "question_timeout")]
    pub question_timeout: u64,
    /// Failures in a row.
    pub failures: u32,
    /// Failures in all.
    pub total_failures: u32,
    /// When the current iteration started.
    pub iteration_started: Option<DateTime<FixedOffset>>,
    /// The same on the monotonic clock, for its duration.
    started_mono: Duration,
    /// Who paused it.
    pub paused: Option<PauseBy>,
    /// The limits beside the iterations.
    #[serde(default)]
    pub budgets: Budgets,
    /// More was asked for than a done pattern.
    #[serde(default)]
    pub gated: bool,
    /// An agent of it came up once: what was there before any worked is known from then on, or lost.
    #[serde(default)]
    pub worked: bool,
    /// What was used so far, the time up to `since`.
    #[serde(default)]
    spent: Spent,
    /// Since when time counts; `None` while it does not.
    #[serde(default)]
    since: Option<Duration>,
    /// Outages in a row, and the last of them while it is waited for.
    #[serde(default)]
    outages: u32,
    #[serde(default)]
    outage: Option<Outage>,
    /// Iterations in a row in which nothing moved.
    #[serde(default)]
    stalls: u32,
    /// The last iteration did not tell what it used, though that is limited.
    #[serde(default)]
    unseen: bool,
    /// At least one iteration succeeded. A record of an older release did not count them.
    #[serde(default = "yes")]
    succeeded: bool,
    /// More about the end of the current iteration than its kind says.
    #[serde(default)]
    detail: Option<String>,
    /// What was (or is about to be) told of the last iteration that ended, and which that was.
    #[serde(default)]
    last_end: Option<(u32, Entry)>,
}

/// A changed setting of a running loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// A new iteration limit (at least 1).
    pub max_iterations: Option<u32>,
    /// A new inactivity time-out, seconds (at least 1).
    pub inactivity_timeout: Option<u64>,
    /// The done pattern is another one: a match of the one before proves nothing.
    pub done_pattern: bool,
    /// A new limit for unanswered questions, seconds; 0: none.
    pub question_timeout: Option<u64>,
}

/// Why swarm is ending a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// An interactive agent printed something, and then nothing for the timeout.
    Inactivity,
    /// The timeout passed without output from an agent that had to print or exit.
    Silent,
    /// The prompt did not reach the agent.
    Undelivered,
    /// Nobody answered the agent's question in time.
    Unanswered,
    /// The done pattern matched and the agent is quiet.
    Done,
    /// The agent said that its turn is over.
    TurnOver,
    /// The iteration's time is up.
    Timeout,
    /// The loop's time is up.
    OutOfTime,
    /// The agent said that its API failed it.
    ApiError,
    /// The agent said that its context is full.
    ContextSpent,
    /// Somebody killed the worker.
    Kill,
}

impl Why {
    /// For a person, after "ending: ".
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Inactivity | Self::Silent => "inactivity",
            Self::Undelivered => "its prompt was not delivered",
            Self::Unanswered => "its question was not answered",
            Self::Done => "done pattern matched",
            Self::TurnOver => "turn over",
            Self::Timeout => "the iteration is out of time",
            Self::OutOfTime => "the loop is out of time",
            Self::ApiError => "its API failed it",
            Self::ContextSpent => "its context is full",
            Self::Kill => "killed",
        }
    }
}

/// Where a worker is in its life. Each phase holds exactly what is valid in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Not started yet.
    Idle,
    /// The pane is being made; the edge will report.
    Spawning {
        /// A kill came meanwhile: end the pane as soon as it is there.
        doomed: bool,
    },
    /// The pane is there, the agent is not ready yet.
    Starting {
        /// When that becomes worth telling; `None` once it was told.
        ready_by: Option<Duration>,
        /// What was seen.
        watch: Watch,
    },
    /// The prompt is being delivered; the edge will report.
    Prompting {
        /// When the delivery counts as failed.
        by: Duration,
    },
    /// The agent works.
    Running {
        /// What was seen.
        watch: Watch,
    },
    /// The agent was asked to end.
    Ending {
        /// Why.
        why: Why,
        /// When force is used (again).
        kill_at: Duration,
    },
    /// The run is over; the edge takes its last output and tries the gates.
    Judging {
        /// How it ended.
        exit: Exit,
        /// Why swarm ended it, if it did.
        why: Option<Why>,
    },
    /// After a failure, or before a restart.
    BackingOff {
        /// When the next run starts.
        until: Duration,
        /// How long the whole wait is.
        delay: Duration,
    },
    /// A paused loop with no agent.
    Parked,
    /// The tmux server went away under it; a loop can be resumed.
    Lost,
    /// Over.
    Stopped {
        /// Why.
        reason: StopReason,
    },
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    policy: Policy,
    phase: Phase,
    run: Run,
    last_exit: Option<Exit>,
    /// Why a person is needed, in their words, while that is so.
    trouble: Option<Trouble>,
    ralph: Option<Loop>,
    #[serde(default)]
    restarts: Option<Restarts>,
    #[serde(default)]
    evidence: Evidence,
    /// The last run of which it was told that it is ready.
    #[serde(default)]
    greeted: Run,
    #[serde(skip, default = "yes")]
    reachable: bool,
}

fn yes() -> bool {
    true
}

fn question_timeout() -> u64 {
    QUESTION_TIMEOUT_SECONDS
}

/// Why a person is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Trouble {
    kind: TroubleKind,
    what: String,
    /// Since when a question waits for its answer, on the monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Duration>,
}

/// What kind of trouble it is: they differ in how long they may last and in what ends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TroubleKind {
    /// A dialog that the next run would meet too: no time limit.
    Startup,
    /// A question on the screen in mid-work: it may wait for the question timeout.
    Dialog,
    /// No ready screen in time: no time limit.
    NotReady,
    /// The prompt was not delivered to a plain worker's agent.
    Prompt,
    /// A question that the agent's hook reported: as for [`TroubleKind::Dialog`].
    Asked,
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

    /// Its loop, if it is one.
    pub fn ralph(&self) -> Option<&Loop> {
        self.ralph.as_ref()
    }

    /// How the last run ended; `None` while one lives or when there was none.
    pub fn last_exit(&self) -> Option<Exit> {
        self.last_exit
    }

    /// True while a pane of the current run may exist.
    pub fn has_pane(&self) -> bool {
        self.phase.has_pane()
    }

    /// True when looks at the screen are of use.
    pub fn wants_screen(&self) -> bool {
        self.phase.watch().is_some()
    }

    /// True when it is over for good and its name is free.
    pub fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped { .. })
    }

    /// When a [`Event::Tick`] is due, on [`Now::mono`]'s clock.
    pub fn deadline(&self) -> Option<Duration> {
        let time_limit = self.time_limit().map(|(at, _)| at);
        [self.phase.deadline(), time_limit, self.question_deadline()].into_iter().flatten().min()
    }

    /// Brings times that an earlier boot or daemon left into this clock: no wait grows by a restart.
    pub fn rebase(&mut self, now: Now) {
        match &mut self.phase {
            Phase::BackingOff { until, delay } => *until = (*until).min(now.after(*delay)),
            Phase::Starting { ready_by, .. } => {
                *ready_by =
                    ready_by.map(|by| by.min(now.after(Duration::from_secs(self.policy.ready_timeout))));
            }
            Phase::Prompting { by } => *by = (*by).min(now.after(PROMPT_TIMEOUT)),
            Phase::Ending { kill_at, .. } => *kill_at = (*kill_at).min(now.after(GRACE)),
            Phase::Idle | Phase::Spawning { .. } | Phase::Running { .. } | Phase::Judging { .. } => {}
            Phase::Parked | Phase::Lost | Phase::Stopped { .. } => {}
        }
        if let Some(watch) = self.phase.watch_mut() {
            watch.forget_time();
        }
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
