//! The words for how a worker and its loop are.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The one word for how a worker is, as `status` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Its pane is being made, or it is not ready yet.
    Starting,
    /// The agent is alive.
    Running,
    /// The agent is alive and waits for a person.
    Waiting,
    /// Between two runs: after a failure, or before a restart.
    BackingOff,
    /// tmux does not answer; what became of the agent is not known yet.
    Unreachable,
    /// Ended as it was meant to, or was told to end; a paused loop with no agent is also `stopped`.
    Stopped,
    /// Ended badly.
    Failed,
    /// The tmux server (or the pane) went away under it.
    Lost,
}

impl Status {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::BackingOff => "backing_off",
            Self::Unreachable => "unreachable",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }

    /// True while swarm still looks after it (exit status 0 of `swarm status`).
    pub fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Waiting | Self::BackingOff | Self::Unreachable => true,
            Self::Stopped | Self::Failed | Self::Lost => false,
        }
    }
}

/// How a worker that is over has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Well: it did what was asked, or its command exited with 0.
    Done,
    /// Badly.
    Failed,
    /// Somebody ended it.
    Killed,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The document's word for how a loop is, as `state.json` holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    /// Going on (also while its worker is lost).
    Running,
    /// Will not start another iteration until it is resumed.
    Paused,
    /// Over: complete, out of iterations, or killed.
    Stopped,
    /// Over: gave up.
    Failed,
}

impl LoopStatus {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for LoopStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
