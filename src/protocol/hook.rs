//! Reports from the hooks of a worker's own agent: `hook`.
//!
//! A call describes what happened, not which event of which CLI it was: the process in the hook translates that.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use swarm_state::answer::{AgentRequest, RequestAnswer};
use swarm_state::engine::HookSignal;
use swarm_state::network::AllowedHost;
use swarm_state::quota::QuotaFigure;

/// The parameters of `hook`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookParams {
    /// The worker, from the hook's environment.
    pub name: String,
    /// The run, from the hook's environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// The CLI's id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The path of the session's transcript on the worker's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// The event that the hook reports.
    pub news: HookNews,
}

/// An event that a hook reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HookNews {
    /// A session began.
    Session {
        /// The session continues another session of the same agent.
        #[serde(default, rename = "anew")]
        cleared: bool,
    },
    /// The agent accepted a prompt.
    Prompt,
    /// The agent is working.
    Working,
    /// The agent used a tool.
    ToolUsed {
        /// How full the agent's context is, in percent; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<u8>,
    },
    /// The agent's turn has ended.
    TurnOver,
    /// The agent has waited for a person for a while.
    Idle,
    /// The agent's turn ended with an API error.
    ApiError {
        /// The error.
        message: String,
    },
    /// The agent's context is full and will be compacted.
    ContextSpent,
    /// The proxy of the sandbox refused a host that is not allowed.
    HostRefused {
        /// The host, as `swarm allow` accepts it.
        host: AllowedHost,
        /// Its address in a private network, if that is the reason.
        #[serde(default)]
        private: Option<IpAddr>,
    },
    /// The guard stopped a tool call of the agent.
    Denied {
        /// The command or the file, and the class of the danger.
        what: String,
    },
    /// The hook holds a request of the agent open, and asks for the answer.
    Holds {
        /// The request.
        request: AgentRequest,
    },
    /// The agent reports the used parts of its account's usage limits.
    Limits {
        /// The used parts.
        figures: Vec<QuotaFigure>,
    },
    /// The agent waits for a person.
    Asks {
        /// The agent's question or request, as text.
        what: String,
    },
}

/// The answer to `hook`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// The report was about the worker's own agent and was used.
    #[serde(rename = "heard")]
    pub used: bool,
    /// The percentage of its context that the iteration may use; only after `tool_used`, and absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_context: Option<u8>,
    /// The answer to `holds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<HeldAnswer>,
}

/// The next step of a hook that holds a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldAnswer {
    /// Ask again soon: no answer yet.
    Wait,
    /// End: the request was answered in the agent's dialog.
    Over,
    /// Pass this answer to the agent.
    Answered(RequestAnswer),
}

impl HookNews {
    /// The signal for the engine; `None` if the engine does not use it.
    pub fn signal(&self) -> Option<HookSignal> {
        match self {
            Self::HostRefused { .. } | Self::Session { .. } | Self::Holds { .. } | Self::Limits { .. } => {
                None
            }
            Self::Prompt => Some(HookSignal::Prompt),
            Self::Working => Some(HookSignal::Working),
            Self::ToolUsed { context } => Some(HookSignal::ToolUsed(*context)),
            Self::Denied { .. } => Some(HookSignal::ToolUsed(None)),
            Self::TurnOver => Some(HookSignal::TurnOver),
            Self::Idle => Some(HookSignal::Idle),
            Self::ApiError { message } => Some(HookSignal::ApiError(message.clone())),
            Self::ContextSpent => Some(HookSignal::ContextSpent),
            Self::Asks { what } => Some(HookSignal::Asks(what.clone())),
        }
    }
}

impl From<HookSignal> for HookNews {
    fn from(signal: HookSignal) -> Self {
        match signal {
            HookSignal::Prompt => Self::Prompt,
            HookSignal::Working => Self::Working,
            HookSignal::ToolUsed(context) => Self::ToolUsed { context },
            HookSignal::TurnOver => Self::TurnOver,
            HookSignal::Idle => Self::Idle,
            HookSignal::ApiError(message) => Self::ApiError { message },
            HookSignal::ContextSpent => Self::ContextSpent,
            HookSignal::Asks(what) => Self::Asks { what },
        }
    }
}
