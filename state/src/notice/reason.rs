//! How an iteration ended, and who paused a loop.

use serde::{Deserialize, Serialize};

use crate::budget::USAGE_UNKNOWN;

/// How an iteration ended, as the log and the follower word it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationExit {
    /// The agent ended by itself.
    Exit(crate::model::Exit),
    /// swarm ended it: its interactive agent printed something and then nothing for the timeout.
    Inactivity,
    /// swarm ended it: nothing on screen for the timeout, from an agent that had to print or exit.
    Silent,
    /// swarm ended it: the done pattern had matched and the agent's turn was over.
    Done,
    /// swarm ended it: it was killed.
    Killed,
    /// It never started.
    SpawnFailed,
    /// swarm ended it: the iteration's time was up.
    Timeout,
    /// swarm ended it: the loop's time was up.
    OutOfTime,
    /// A usage limit, an overloaded API or a login: it is done again and not used up.
    Outage,
    /// swarm ended it: the agent said that its API had failed it.
    ApiError,
    /// swarm ended it: the agent said that its context was full.
    ContextSpent,
    /// swarm ended it: the agent's hooks reported the end of its turn.
    TurnOver,
    /// The prompt did not reach the agent.
    Undelivered,
    /// swarm ended it: nobody answered the agent's question in time.
    Unanswered,
}

/// What an iteration counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// It ends a row of failures.
    Success,
    /// One more in the row.
    Failure,
    /// Neither.
    Neither,
}

impl IterationExit {
    /// One word without spaces, for `exit=…`.
    pub fn word(self) -> String {
        use crate::model::Exit;
        match self {
            Self::Exit(Exit::Code(code)) => code.to_string(),
            Self::Exit(Exit::Signal(signal)) => format!("signal-{signal}"),
            Self::Exit(Exit::Lost) => "lost".into(),
            Self::Exit(Exit::Unknown) => "unknown".into(),
            Self::Inactivity | Self::Silent => "inactivity".into(),
            Self::Done => "done".into(),
            Self::Killed => "killed".into(),
            Self::SpawnFailed => "spawn-failed".into(),
            Self::Timeout => "timeout".into(),
            Self::OutOfTime => "out-of-time".into(),
            Self::Outage => "outage".into(),
            Self::ApiError => "api-error".into(),
            Self::ContextSpent => "context-spent".into(),
            Self::TurnOver => "turn-over".into(),
            Self::Undelivered => "undelivered".into(),
            Self::Unanswered => "unanswered".into(),
        }
    }

    /// The same as a phrase, for a person.
    pub fn phrase(self) -> String {
        use crate::model::Exit;
        match self {
            Self::Exit(Exit::Code(code)) => format!("exit status {code}"),
            Self::Exit(Exit::Signal(signal)) => format!("ended by signal {signal}, which swarm did not send"),
            Self::Exit(Exit::Lost) => "its pane vanished".into(),
            Self::Exit(Exit::Unknown) => "exit status unknown".into(),
            Self::Inactivity => "nothing new on screen".into(),
            Self::Silent => "nothing on screen".into(),
            Self::Done => "done pattern matched".into(),
            Self::Killed => "killed".into(),
            Self::SpawnFailed => "the agent was not started".into(),
            Self::Timeout => "the iteration's time limit was reached".into(),
            Self::OutOfTime => "the loop's time limit was reached".into(),
            Self::Outage => "an outage stopped the agent".into(),
            Self::ApiError => "an API error ended its turn".into(),
            Self::ContextSpent => "its context was full".into(),
            Self::TurnOver => "its turn ended".into(),
            Self::Undelivered => "the prompt was not delivered".into(),
            Self::Unanswered => "its question was not answered".into(),
        }
    }

    /// Whether an API error on the agent's screen turns this end into a failure. It holds for ends that count as a success
    /// and that nothing but the screen explains.
    pub fn fails_by_api_error(self) -> bool {
        self == Self::Inactivity || matches!(self, Self::Exit(exit) if exit.is_success())
    }

    /// What it counts as. Whether the gates hold is asked first, and an outage counts as nothing.
    pub fn counts_as(self) -> Counts {
        match self {
            Self::Exit(exit) if exit.is_success() => Counts::Success,
            Self::Inactivity | Self::Done | Self::ContextSpent | Self::TurnOver => Counts::Success,
            Self::Exit(_)
            | Self::Silent
            | Self::SpawnFailed
            | Self::ApiError
            | Self::Undelivered
            | Self::Unanswered => Counts::Failure,
            Self::Killed | Self::Timeout | Self::OutOfTime | Self::Outage => Counts::Neither,
        }
    }
}

/// Who paused a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseBy {
    /// A person, with `swarm ralph pause` or Ctrl-C at the follower.
    User,
    /// `swarm daemon stop` or a SIGTERM to the daemon.
    Shutdown,
    /// swarm, because nothing moved for as many iterations as `--no-progress` says.
    NoProgress,
    /// swarm, because an iteration did not tell what it used, so that `--max-cost` or `--max-tokens` is not held.
    BudgetUnseen,
}

impl PauseBy {
    /// The word in `reason` where swarm paused the loop.
    pub fn slug(self) -> Option<&'static str> {
        match self {
            Self::User | Self::Shutdown => None,
            Self::NoProgress => Some("no_progress"),
            Self::BudgetUnseen => Some("budget_unseen"),
        }
    }

    /// The state of the paused loop for a person to read.
    pub fn state_text(self) -> String {
        match self {
            Self::User => "paused".to_owned(),
            Self::Shutdown => "paused when the daemon stopped".to_owned(),
            Self::NoProgress => "paused: no progress".to_owned(),
            Self::BudgetUnseen => format!("paused: {USAGE_UNKNOWN}"),
        }
    }

    /// The text that the follower prints when the loop is paused.
    pub fn follow_text(self) -> String {
        match self {
            Self::User => "paused".to_owned(),
            Self::Shutdown => "paused (the daemon is stopping)".to_owned(),
            Self::NoProgress => "paused (no progress)".to_owned(),
            Self::BudgetUnseen => format!("paused ({USAGE_UNKNOWN})"),
        }
    }

    /// The line for `iterations.log`, without the time.
    pub fn log_line(self) -> &'static str {
        match self {
            Self::User => "[PAUSE]",
            Self::Shutdown => "[PAUSE] reason=shutdown",
            Self::NoProgress => "[PAUSE] reason=no_progress",
            Self::BudgetUnseen => "[PAUSE] reason=budget_unseen",
        }
    }

    /// True when a person paused the loop. Its follower then waits for what the person does next.
    pub fn is_user(self) -> bool {
        self == Self::User
    }
}
