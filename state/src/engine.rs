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
//! 7. No wildcard arm over events or phases: a new one forces a decision everywhere.
//!
//! Deliberately absent: retries of tmux or git (the edge's work), texts (they are [`crate::notice`]), and
//! any knowledge of what a screen shows (that is [`crate::screen`]).

mod clock;
mod follow_up;
mod heard;
mod limits;
mod look;
mod reports;
mod restart;
mod step;
mod view;
mod watch;

#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

pub use clock::{AwakeClock, Jump};
pub use heard::Heard;
pub use restart::Restarts;
pub use watch::Watch;

use crate::budget::{Budgets, Spent};
use crate::format::RalphFile;
use crate::gates::Verdict;
use crate::model::{Exit, LoopStatus, Run};
use crate::notice::{Entry, PauseBy, StopReason};
use crate::outage::Outage;
use crate::screen::Reading;

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
}

/// Why swarm is ending a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The screen did not change for the time-out.
    Inactivity,
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

/// Why a run could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// The prompt file is gone or unreadable: the loop ends. Holds the documented message.
    Prompt(String),
    /// What comes before the agent took all of the loop's time: the loop ends, and nobody has worked.
    OutOfTime,
    /// Anything else: a failure like another.
    Other(String),
}

/// What a worker can be told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A person: begin.
    Start,
    /// A person, or the daemon that is stopping: start no further iteration.
    Pause(PauseBy),
    /// A person: go on.
    Resume,
    /// A person: end it.
    Kill,
    /// A person changed settings.
    Edited(Edits),
    /// The deadline has come (or any other moment: it is harmless).
    Tick,
    /// tmux answers, or no longer does.
    Reachable(bool),
    /// The run's pane is up.
    Up(Run),
    /// The run could not be started and nothing of it is left.
    SpawnFailed(Run, SpawnError),
    /// A fresh daemon found the run's pane alive.
    Adopted(Run),
    /// A fresh daemon found that the run was never started.
    NeverStarted(Run),
    /// A look at the run's screen.
    Screen(Run, Reading),
    /// The run's pane printed nothing since the last look.
    Quiet(Run),
    /// The prompt was delivered and taken.
    PromptSent(Run),
    /// It was not.
    PromptFailed(Run, String),
    /// A person typed something into the run's pane.
    Typed(Run),
    /// The agent's own hooks told something.
    Heard(Run, Heard),
    /// Whether the run's process tree is computing.
    Probed(Run, bool),
    /// The run ended and its pane holds its last output.
    Exited(Run, Exit),
    /// The run's pane vanished while tmux lives; nothing of it runs any more.
    PaneLost(Run),
    /// The tmux server is gone and the run with it.
    ServerLost(Run),
    /// The run's output is stored, its pane is closed, and this is what the gates say.
    Judged(Run, Verdict),
}

/// What the edge must do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write the worker down; nothing after it in the list may happen before it did.
    Persist,
    /// Start the run.
    Spawn(Run),
    /// Paste the prompt and see that it was taken.
    Deliver(Run),
    /// Ask the whole process tree to end.
    Terminate(Run),
    /// End what is left of it by force.
    ForceKill(Run),
    /// Find out whether the process tree is computing.
    Probe(Run),
    /// Look at the run's screen now.
    Look(Run),
    /// Store the output, close the pane, try the gates.
    Judge(Run),
    /// Tell those who listen.
    Tell(Entry),
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
    /// The last run of which it was told that it is ready.
    #[serde(default)]
    greeted: Run,
    #[serde(skip, default = "yes")]
    reachable: bool,
}

fn yes() -> bool {
    true
}

/// Why a person is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Trouble {
    kind: Kind,
    what: String,
}

/// What kind of trouble it is: what shields from inactivity and when it is over differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A dialog that the next run would meet too: nothing is killed because of it.
    Startup,
    /// A dialog in mid-work.
    Dialog,
    /// No ready screen in time.
    NotReady,
    /// The prompt did not go in.
    Prompt,
    /// The agent said that it waits for a person.
    Asked,
}

impl Worker {
    /// A worker that runs its command once.
    pub fn plain(policy: Policy) -> Self {
        Self {
            policy,
            phase: Phase::Idle,
            run: Run::default(),
            last_exit: None,
            trouble: None,
            ralph: None,
            restarts: None,
            greeted: Run::default(),
            reachable: true,
        }
    }

    /// A worker that loops. `gated`: more is asked for than a done pattern.
    pub fn verified(
        policy: Policy,
        max_iterations: u32,
        inactivity_timeout: u64,
        budgets: Budgets,
        gated: bool,
    ) -> Self {
        let mut worker = Self::looping(policy, max_iterations, inactivity_timeout);
        if let Some(ralph) = &mut worker.ralph {
            (ralph.budgets, ralph.gated) = (budgets, gated);
        }
        worker
    }

    /// A worker that loops, with no limit but its iterations and failures and no gate but a done pattern.
    pub fn looping(policy: Policy, max_iterations: u32, inactivity_timeout: u64) -> Self {
        let ralph = Loop {
            iteration: 0,
            max_iterations: max_iterations.max(1),
            inactivity_timeout: inactivity_timeout.max(1),
            failures: 0,
            total_failures: 0,
            iteration_started: None,
            started_mono: Duration::ZERO,
            paused: None,
            budgets: Budgets::default(),
            gated: false,
            worked: false,
            spent: Spent::default(),
            since: None,
            outages: 0,
            outage: None,
            stalls: 0,
            last_end: None,
        };
        Self { ralph: Some(ralph), ..Self::plain(policy) }
    }

    /// A worker of which nothing is left but the live pane of a run.
    pub fn found(policy: Policy, run: Run) -> Self {
        Self { phase: Phase::Running { watch: Watch::default() }, run, ..Self::plain(policy) }
    }

    /// The same worker, taken for lost: what became of it is not ours to know.
    #[must_use]
    pub fn lost(mut self) -> Self {
        self.phase = Phase::Lost;
        self
    }

    /// The same worker, over; an earlier swarm said so.
    #[must_use]
    pub fn over(mut self, reason: StopReason) -> Self {
        self.phase = Phase::Stopped { reason };
        self
    }

    /// The same loop with the numbers of an earlier swarm's file; a plain worker stays as it is.
    #[must_use]
    pub fn counted(mut self, file: &RalphFile, started: Option<DateTime<FixedOffset>>) -> Self {
        if let Some(ralph) = &mut self.ralph {
            ralph.iteration = file.current_iteration;
            ralph.failures = file.consecutive_failures;
            ralph.total_failures = file.total_failures;
            ralph.iteration_started = started;
            ralph.paused = (file.status == LoopStatus::Paused).then_some(PauseBy::User);
        }
        self
    }

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
        match self.phase {
            Phase::Spawning { .. }
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. } => true,
            Phase::Idle | Phase::BackingOff { .. } | Phase::Parked | Phase::Lost | Phase::Stopped { .. } => {
                false
            }
        }
    }

    /// True when looks at the screen are of use.
    pub fn wants_screen(&self) -> bool {
        match self.phase {
            Phase::Starting { .. } | Phase::Running { .. } => true,
            Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Prompting { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => false,
        }
    }

    /// True when it is over for good and its name is free.
    pub fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped { .. })
    }

    /// When a [`Event::Tick`] is due, on [`Now::mono`]'s clock.
    pub fn deadline(&self) -> Option<Duration> {
        let time_limit = self.time_limit().map(|(at, _)| at);
        [self.phase_deadline(), time_limit].into_iter().flatten().min()
    }

    fn phase_deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Starting { ready_by, .. } => ready_by,
            Phase::Running { ref watch } => watch.over_deadline(),
            Phase::Prompting { by } => Some(by),
            Phase::Ending { kill_at, .. } => Some(kill_at),
            Phase::BackingOff { until, .. } => Some(until),
            Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Judging { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => None,
        }
    }

    /// Brings times that an earlier boot or daemon left into this clock: no wait grows by a restart.
    pub fn rebase(&mut self, now: Now) {
        match &mut self.phase {
            Phase::BackingOff { until, delay } => *until = (*until).min(now.after(*delay)),
            Phase::Starting { ready_by, watch } => {
                *ready_by =
                    ready_by.map(|by| by.min(now.after(Duration::from_secs(self.policy.ready_timeout))));
                watch.forget_time();
            }
            Phase::Prompting { by } => *by = (*by).min(now.after(PROMPT_TIMEOUT)),
            Phase::Ending { kill_at, .. } => *kill_at = (*kill_at).min(now.after(GRACE)),
            Phase::Running { watch } => watch.forget_time(),
            Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Judging { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => {}
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
