//! How an iteration ended, who paused a loop, and why a worker is over.

use serde::{Deserialize, Serialize};

use super::{counted, dollars, duration};

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
    /// The word in `reason`, where swarm paused it for a reason of its own.
    pub fn slug(self) -> Option<&'static str> {
        match self {
            Self::User | Self::Shutdown => None,
            Self::NoProgress => Some("no_progress"),
            Self::BudgetUnseen => Some("budget_unseen"),
        }
    }

    /// True when it is a person's own doing, so that who follows waits for what the person does next.
    pub fn is_user(self) -> bool {
        match self {
            Self::User => true,
            Self::Shutdown | Self::NoProgress | Self::BudgetUnseen => false,
        }
    }
}

/// Why a worker has ended for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Every gate held.
    Complete,
    /// The iteration limit, with no gate but a done pattern.
    MaxIterations,
    /// Every gate held, checks or a promise among them.
    Verified,
    /// Every gate holds, none of them a check: the promise is what counted.
    Promised,
    /// The iteration limit, and the gates never held.
    Unverified,
    /// The iteration limit, and no iteration succeeded.
    AllFailed,
    /// The time limit, seconds.
    OutOfTime(u64),
    /// The cost limit, millionths of a US dollar.
    Cost {
        /// Used.
        spent: u64,
        /// Allowed.
        limit: u64,
    },
    /// The token limit.
    Tokens {
        /// Used.
        spent: u64,
        /// Allowed.
        limit: u64,
    },
    /// Every check failed before the first iteration and is excused, and nothing else was asked for.
    NoGate,
    /// Something that waiting does not mend, in the CLI's words.
    Outage(String),
    /// Five failures in a row.
    Failures(u32),
    /// The prompt file is gone or cannot be read; the documented message.
    Prompt(String),
    /// Somebody killed it.
    Killed,
    /// A plain worker's command ended by itself.
    Exited(crate::model::Exit),
    /// A plain worker could not be started.
    SpawnFailed(String),
    /// A plain worker was started again so many times in a row, and always in vain.
    GaveUp(u32),
}

impl StopReason {
    /// True when a loop that ended so has done what was asked.
    pub fn is_success(&self) -> bool {
        match self {
            Self::Complete | Self::Verified | Self::Promised | Self::MaxIterations => true,
            Self::Exited(exit) => exit.is_success(),
            Self::Unverified
            | Self::AllFailed
            | Self::OutOfTime(_)
            | Self::Cost { .. }
            | Self::Tokens { .. }
            | Self::NoGate
            | Self::Outage(_)
            | Self::Failures(_)
            | Self::Prompt(_)
            | Self::Killed
            | Self::SpawnFailed(_)
            | Self::GaveUp(_) => false,
        }
    }

    /// One word without spaces, for `reason=…` in the log and `reason` in state.json.
    pub fn slug(&self) -> &'static str {
        match self {
            Self::Complete => "done_pattern",
            Self::MaxIterations | Self::Unverified => "max_iterations",
            Self::AllFailed => "all_failed",
            Self::Verified => "all_checks_passed",
            Self::Promised => "promise_accepted",
            Self::OutOfTime(_) => "timeout",
            Self::Cost { .. } | Self::Tokens { .. } => "budget_exhausted",
            Self::NoGate => "no_gate",
            Self::Outage(_) => "outage",
            Self::Failures(_) => "consecutive_failures",
            Self::Prompt(_) => "prompt_file",
            Self::Killed => "killed",
            Self::Exited(_) => "exited",
            Self::SpawnFailed(_) => "spawn_failed",
            Self::GaveUp(_) => "max_restarts",
        }
    }

    /// The phrase that `status` shows as the reason.
    pub fn word(&self) -> String {
        match self {
            Self::Complete => "done pattern matched".into(),
            Self::MaxIterations => "max iterations".into(),
            Self::Verified => "every gate holds".into(),
            Self::Promised => "promise accepted".into(),
            Self::Unverified => "max iterations, and not every gate holds".into(),
            Self::AllFailed => "max iterations, and no iteration succeeded".into(),
            Self::OutOfTime(limit) => format!("out of time ({})", duration(*limit, " ")),
            Self::Cost { spent, limit } => {
                format!("out of budget ({} of {})", dollars(*spent), dollars(*limit))
            }
            Self::Tokens { spent, limit } => format!("out of budget ({spent} of {limit} tokens)"),
            Self::NoGate => crate::gates::NO_GATE.into(),
            Self::Failures(n) => counted(*n, "consecutive failure"),
            Self::Prompt(message) | Self::SpawnFailed(message) | Self::Outage(message) => message.clone(),
            Self::Killed => "killed".into(),
            Self::GaveUp(restarts) => format!("gave up after {}", counted(*restarts, "restart")),
            Self::Exited(exit) => match exit {
                crate::model::Exit::Code(0) => "exited".into(),
                crate::model::Exit::Code(code) => format!("exit status {code}"),
                crate::model::Exit::Signal(signal) => format!("signal {signal}"),
                crate::model::Exit::Lost => "its pane vanished".into(),
                crate::model::Exit::Unknown => "exit status unknown".into(),
            },
        }
    }
}
