//! What the hooks of a worker's own agent tell: `hook`.
//!
//! Part of [the protocol](super), which says what may change. A call says what happened and not which event of
//! which CLI it was: that is known where the hook runs.

use serde::{Deserialize, Serialize};
use swarm_state::engine::HookSignal;

/// The parameters of `hook`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookParams {
    /// The worker, as its environment names it.
    pub name: String,
    /// The run, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// The CLI's own id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Where the session's transcript lies, on the machine of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// What happened.
    pub news: HookNews,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HookNews {
    /// A session began.
    Session {
        /// It goes on from another one of the same agent.
        #[serde(default)]
        anew: bool,
    },
    /// A prompt was taken.
    Prompt,
    /// The agent is at work.
    Working,
    /// Its turn is over.
    TurnOver,
    /// It has waited for a person for a while.
    Idle,
    /// Its turn ended with an error of its API.
    ApiError {
        /// The error.
        message: String,
    },
    /// Its context is full and about to be compacted.
    ContextSpent,
    /// It waits for a person.
    Asks {
        /// For what.
        what: String,
    },
}

/// The answer to `hook`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookHeard {
    /// It was news of the worker's own agent.
    pub heard: bool,
}

impl HookNews {
    /// For the engine; `None` for what it does not decide by.
    pub fn heard(&self) -> Option<HookSignal> {
        match self {
            Self::Session { .. } => None,
            Self::Prompt => Some(HookSignal::Prompt),
            Self::Working => Some(HookSignal::Working),
            Self::TurnOver => Some(HookSignal::TurnOver),
            Self::Idle => Some(HookSignal::Idle),
            Self::ApiError { message } => Some(HookSignal::ApiError(message.clone())),
            Self::ContextSpent => Some(HookSignal::ContextSpent),
            Self::Asks { what } => Some(HookSignal::Asks(what.clone())),
        }
    }
}

impl From<HookSignal> for HookNews {
    fn from(heard: HookSignal) -> Self {
        match heard {
            HookSignal::Prompt => Self::Prompt,
            HookSignal::Working => Self::Working,
            HookSignal::TurnOver => Self::TurnOver,
            HookSignal::Idle => Self::Idle,
            HookSignal::ApiError(message) => Self::ApiError { message },
            HookSignal::ContextSpent => Self::ContextSpent,
            HookSignal::Asks(what) => Self::Asks { what },
        }
    }
}
