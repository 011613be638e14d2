//! The status of a worker and of its loop.

use serde::{Deserialize, Serialize};

/// The status of a worker, as every verb shows it. [`crate::cause::Cause`] has the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Its pane is being created, or the agent is not ready yet.
    #[default]
    Starting,
    /// The agent is alive.
    Running,
    /// The worker waits for a person, for the end of an outage, or for free disk space.
    Waiting,
    /// swarm waits before the next run: after a failure, or before a restart.
    Retrying,
    /// A paused loop without an agent. While its last agent works, it is still running.
    Paused,
    /// Finished with success: its loop is complete, or its command exited with 0.
    Done,
    /// Finished without success.
    Failed,
    /// Finished because a person or script killed it.
    Killed,
    /// The tmux server went away.
    Lost,
    /// tmux does not answer; the state of the agent is unknown.
    Unreachable,
}

crate::word_table!(
    pub Status,
    as_str,
    [
        (Starting, "starting"),
        (Running, "running"),
        (Waiting, "waiting"),
        (Retrying, "retrying"),
        (Paused, "paused"),
        (Done, "done"),
        (Failed, "failed"),
        (Killed, "killed"),
        (Lost, "lost"),
        (Unreachable, "unreachable")
    ]
);

impl Status {
    /// True while swarm itself continues the worker. A paused loop is neither live nor finished.
    pub fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Waiting | Self::Retrying | Self::Unreachable => true,
            Self::Paused | Self::Done | Self::Failed | Self::Killed | Self::Lost => false,
        }
    }

    /// True when it has ended. A lost worker has not: its loop can be resumed.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Killed)
    }

    /// True for the workers that `--all` of `kill`, `send`, `wait` and `pause` means: live ones and paused loops.
    pub fn is_live_or_paused(self) -> bool {
        self.is_live() || self == Self::Paused
    }
}

/// The status of a loop in `state.json`, with the document's terms.
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

crate::word_table!(
    pub LoopStatus,
    as_str,
    [(Running, "running"), (Paused, "paused"), (Stopped, "stopped"), (Failed, "failed")]
);
