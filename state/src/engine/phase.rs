//! The phases of a worker and their properties. Each question about a phase is answered here once, by an exhaustive
//! match.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Watch;
use crate::model::Exit;
use crate::notice::{IterationExit, StopReason};

/// Why swarm is ending a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// An interactive agent printed something, then nothing for the length of the timeout.
    Inactivity,
    /// The timeout passed without output from an agent that had to print or exit.
    Silent,
    /// The prompt did not reach the agent.
    Undelivered,
    /// Nobody answered the agent's question in time.
    Unanswered,
    /// The done pattern matched and the agent is quiet.
    Done,
    /// The agent reported the end of its turn.
    TurnOver,
    /// The iteration's time is up.
    Timeout,
    /// The loop's time is up.
    OutOfTime,
    /// The agent reported an error of its API.
    ApiError,
    /// The agent reported that its context is full.
    ContextSpent,
    /// Somebody killed the worker.
    Kill,
}

impl Why {
    /// The end of an iteration whose run swarm ended for this reason.
    pub(crate) fn iteration_exit(self) -> IterationExit {
        match self {
            Self::Inactivity => IterationExit::Inactivity,
            Self::Silent => IterationExit::Silent,
            Self::Undelivered => IterationExit::Undelivered,
            Self::Unanswered => IterationExit::Unanswered,
            Self::Done => IterationExit::Done,
            Self::TurnOver => IterationExit::TurnOver,
            Self::Timeout => IterationExit::Timeout,
            Self::OutOfTime => IterationExit::OutOfTime,
            Self::ApiError => IterationExit::ApiError,
            Self::ContextSpent => IterationExit::ContextSpent,
            Self::Kill => IterationExit::Killed,
        }
    }
}

/// The state of a worker. Each phase has exactly the data that is valid in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Not started yet.
    Idle,
    /// The daemon creates the pane and will report.
    Spawning {
        /// The worker was killed meanwhile: end the pane as soon as it exists.
        doomed: bool,
    },
    /// The pane exists, the agent is not ready yet.
    Starting {
        /// When this is reported; `None` once it was.
        ready_by: Option<Duration>,
        /// The observations of its screen.
        watch: Watch,
    },
    /// The daemon delivers the prompt and will report.
    Prompting {
        /// When the delivery counts as failed.
        by: Duration,
    },
    /// The agent works.
    Running {
        /// The observations of its screen.
        watch: Watch,
    },
    /// The agent was sent SIGTERM.
    Ending {
        /// Why.
        why: Why,
        /// When SIGKILL is sent (again).
        kill_at: Duration,
    },
    /// The run has ended; the daemon stores its output and evaluates the gates.
    #[serde(rename = "judging")]
    Evaluating {
        /// How it ended.
        exit: Exit,
        /// Why swarm ended it, if it did.
        why: Option<Why>,
    },
    /// After a failure, or before a restart.
    BackingOff {
        /// When the next run starts.
        until: Duration,
        /// The length of the whole wait.
        delay: Duration,
    },
    /// A paused loop with no agent.
    Parked,
    /// The worker's tmux server is gone; a loop can be resumed.
    Lost,
    /// Finished.
    Stopped {
        /// Why.
        reason: StopReason,
    },
}

impl Phase {
    pub(super) fn has_pane(&self) -> bool {
        match self {
            Self::Spawning { .. } | Self::Evaluating { .. } => true,
            Self::Starting { .. } | Self::Prompting { .. } | Self::Running { .. } | Self::Ending { .. } => {
                true
            }
            Self::Idle | Self::BackingOff { .. } | Self::Parked | Self::Lost | Self::Stopped { .. } => false,
        }
    }

    /// True from the request for a pane until the run's end was reported.
    pub(super) fn is_live(&self) -> bool {
        self.has_pane() && !matches!(self, Self::Evaluating { .. })
    }

    /// True while the run's agent may work: its pane is up, and swarm has not begun to end it.
    pub(super) fn has_agent(&self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Prompting { .. } | Self::Running { .. })
    }

    /// Returns the observations of the screen, in the phases that use them.
    pub(super) fn watch(&self) -> Option<&Watch> {
        match self {
            Self::Starting { watch, .. } | Self::Running { watch } => Some(watch),
            Self::Idle | Self::Spawning { .. } | Self::Prompting { .. } | Self::Ending { .. } => None,
            Self::Evaluating { .. } | Self::BackingOff { .. } | Self::Parked => None,
            Self::Lost | Self::Stopped { .. } => None,
        }
    }

    pub(super) fn watch_mut(&mut self) -> Option<&mut Watch> {
        match self {
            Self::Starting { watch, .. } | Self::Running { watch } => Some(watch),
            Self::Idle | Self::Spawning { .. } | Self::Prompting { .. } | Self::Ending { .. } => None,
            Self::Evaluating { .. } | Self::BackingOff { .. } | Self::Parked => None,
            Self::Lost | Self::Stopped { .. } => None,
        }
    }

    /// Why swarm ends or has ended the run; `None` while it does not.
    pub(super) fn end_reason(&self) -> Option<Why> {
        match self {
            Self::Spawning { doomed } => doomed.then_some(Why::Kill),
            Self::Ending { why, .. } => Some(*why),
            Self::Evaluating { why, .. } => *why,
            Self::Idle | Self::Starting { .. } | Self::Prompting { .. } | Self::Running { .. } => None,
            Self::BackingOff { .. } | Self::Parked | Self::Lost | Self::Stopped { .. } => None,
        }
    }

    /// When the phase ends by itself, on the monotonic clock.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Starting { ready_by, .. } => *ready_by,
            Self::Running { watch } => watch.turn_end_deadline(),
            Self::Prompting { by } => Some(*by),
            Self::Ending { kill_at, .. } => Some(*kill_at),
            Self::BackingOff { until, .. } => Some(*until),
            Self::Idle | Self::Spawning { .. } | Self::Evaluating { .. } => None,
            Self::Parked | Self::Lost | Self::Stopped { .. } => None,
        }
    }
}
