//! The facts about a stop, and the outcomes that a decision can have.
//!
//! `swarm hook stop` collects the facts, calls [`crate::session::decide()`] and carries out the outcome. Deliberately
//! absent: the decision.

use chrono::{DateTime, Utc};

use crate::session::book::{Book, LogLine, Mark, StopKey};
use crate::session::queue::QueueChange;
use crate::session::state::{SessionId, SessionLoop, SessionStatus};

/// The facts about a stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The session that stops; `None` if its id is missing or invalid: no loop holds such a stop.
    pub session: Option<SessionId>,
    /// The time.
    pub now: DateTime<Utc>,
    /// When the hook was called; `None` when unknown.
    pub called: Option<DateTime<Utc>>,
    /// The stop is a sub-agent's, not the session's.
    pub is_sub_agent: bool,
    /// Background tasks that still run.
    pub background_tasks: usize,
    /// The agent's own text since the last decided stop; `None` if it could not be read.
    pub said: Option<String>,
    /// Tool calls since then; `None` if they could not be counted. Then `mark` is `None` too.
    pub tool_calls: Option<u64>,
    /// The transcript since then was too long to be read completely.
    pub is_cut: bool,
    /// Whether a hook has already continued this turn.
    pub stop_hook_active: Option<bool>,
    /// Blocks in a row that the CLI allows; `None` or 0 for any number.
    pub host_cap: Option<u32>,
    /// The turn ended with an API error.
    pub failure: Option<Failure>,
    /// A text that changes with the working tree; `None` if the tree could not be read.
    pub tree: Option<String>,
    /// The key that distinguishes this stop from others.
    pub key: StopKey,
    /// Whether the transcript has a prompt, or a message of the agent with another id, since the previous stop;
    /// `None` without a transcript.
    pub is_news: Option<bool>,
    /// The changes to the queue of messages since the previous stop.
    pub queue: Vec<QueueChange>,
    /// How far the transcript was read now.
    pub mark: Option<Mark>,
}

/// An error of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The CLI reported it instead of a stop: the agent does not continue by itself.
    Reported(String),
    /// The transcript's last message is marked as one.
    Marked(String),
}

/// The answer to the CLI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopAnswer {
    /// The agent goes on with this text.
    Block(String),
    /// The stop happens. The message is for the person.
    Allow(Option<String>),
    /// Another hook of swarm has answered this stop, and its answer counts: this one prints nothing.
    Answered {
        /// Whether that answer was a block.
        held: bool,
    },
}

impl Default for StopAnswer {
    fn default() -> Self {
        Self::Allow(None)
    }
}

impl StopAnswer {
    /// Whether the agent goes on.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Block(_) | Self::Answered { held: true })
    }
}

/// The effect on the state file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    #[default]
    Unchanged,
    /// The file is rewritten with this state.
    Write(Box<SessionLoop>),
    /// The file is removed: the loop has ended.
    Remove,
}

/// The outcome of a stop. By default, the stop happens and nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopOutcome {
    /// The answer to the CLI.
    pub answer: StopAnswer,
    /// The effect on the state file.
    pub after: After,
    /// The new book.
    pub book: Book,
    /// The line to log; `None` if it is already logged, or not this loop's.
    pub log: Option<LogLine>,
    /// The status of the loop; `None` if it continues.
    pub status: Option<SessionStatus>,
    /// A note for the project's progress file.
    pub note: Option<String>,
}
