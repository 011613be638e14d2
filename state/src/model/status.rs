//! The status of a worker and of its loop.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The status of a worker, as `status` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Its pane is being created, or the agent is not ready yet.
    Starting,
    /// The agent is alive.
    Running,
    /// The agent is alive and waits for a person.
    Waiting,
    /// Waits between two runs: after a failure, or before a restart.
    BackingOff,
    /// tmux does not answer; the state of the agent is unknown.
    Unreachable,
    /// Finished with success or killed, or a paused loop without an agent.
    Stopped,
    /// Finished without success.
    Failed,
    /// The tmux server went away.
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

    /// True while swarm supervises it (exit status 0 of `swarm status`).
    pub fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Waiting | Self::BackingOff | Self::Unreachable => true,
            Self::Stopped | Self::Failed | Self::Lost => false,
        }
    }
}

/// How a finished worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With success: its loop is complete, or its command exited with 0.
    Done,
    /// Without success.
    Failed,
    /// A person or script killed it.
    Killed,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The status of a loop in `state.json`, in the document's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    /// Running, or its worker is lost.
    Running,
    /// Will not start another iteration until it is resumed.
    Paused,
    /// Finished: complete, out of iterations, or killed.
    Stopped,
    /// Finished without success.
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
