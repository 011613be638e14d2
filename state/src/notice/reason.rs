//! How an iteration ended, and who paused a loop, with the words for both.

use serde::{Deserialize, Serialize};

use crate::budget::USAGE_UNKNOWN;

/// How an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationExit {
    /// The agent exited by itself.
    Exit(crate::model::Exit),
    /// swarm ended an interactive agent that had printed something and then nothing for the inactivity timeout.
    Inactivity,
    /// swarm ended an agent that had to print or exit and printed nothing for the inactivity timeout.
    Silent,
    /// swarm ended the agent: the done pattern had matched and its turn was over.
    Done,
    /// A person or script killed the worker.
    Killed,
    /// The agent never started.
    SpawnFailed,
    /// swarm ended the agent: the iteration's time limit was reached.
    Timeout,
    /// swarm ended the agent: the loop's time limit was reached.
    OutOfTime,
    /// A usage limit, an overloaded API or a failed login. swarm repeats the iteration; it does not count.
    Outage,
    /// swarm ended the agent: its hook reported an API error.
    ApiError,
    /// swarm ended the agent: its hook reported that its context was full.
    ContextSpent,
    /// swarm ended the agent: its hook reported the end of its turn.
    TurnOver,
    /// The prompt was not delivered.
    Undelivered,
    /// swarm ended the agent: nobody answered its question in time.
    Unanswered,
}

/// The effect of an iteration on the count of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Resets the count of failures.
    Success,
    /// One more failure.
    Failure,
    /// Leaves the count as it is.
    Neither,
}

impl IterationExit {
    /// One word without spaces, for `exit=…`.
    pub fn word(self) -> String {
        use crate::model::Exit;
        match self {
            Self::Exit(Exit::Code(code)) => code.to_string(),
            Self::Exit(Exit::Signal(signal)) => format!("signal-{signal}"),
            Self::Exit(Exit::OutOfMemory(_)) => "out-of-memory".into(),
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

    /// The end as a phrase, for a person.
    pub(crate) fn phrase(self) -> String {
        use crate::model::Exit;
        match self {
            Self::Exit(Exit::Code(code)) => format!("exit status {code}"),
            Self::Exit(Exit::Signal(signal)) => format!("ended by signal {signal}, which swarm did not send"),
            Self::Exit(Exit::OutOfMemory(cap)) => crate::model::out_of_memory(cap),
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

    /// Whether an API error on the agent's screen turns this end into a failure. It holds for ends that count as a
    /// success and that nothing but the screen explains.
    pub fn fails_by_api_error(self) -> bool {
        self == Self::Inactivity || matches!(self, Self::Exit(exit) if exit.is_success())
    }

    /// Returns the effect of the iteration on the count of failures, if the gates do not hold.
    pub(crate) fn counts_as(self) -> Counts {
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

/// The state of a loop whose held-out checks failed too often.
const HELD_OUT_SPENT: &str = "the held-out check failed in all tries";

/// The state of a loop with a check that cannot run.
const CANNOT_CHECK: &str = "a check cannot run";

/// The state of a loop with a story that swarm sends back although it has reached its review cap.
const STORY_STUCK: &str = "a story is sent back again and again at its review cap";

/// The origin of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseBy {
    /// A person, with `swarm ralph pause` or Ctrl-C at the follower.
    User,
    /// `swarm daemon stop` or a SIGTERM to the daemon.
    Shutdown,
    /// swarm, after as many iterations without progress as `--no-progress` allows.
    NoProgress,
    /// swarm, because an iteration did not report its usage, so that `--max-cost` or `--max-tokens` cannot be enforced.
    BudgetUnseen,
    /// swarm, after as many failures of the held-out checks as `--final-tries` allows.
    HeldOut,
    /// swarm, because a command or a directory of a check is missing or cannot be used, which the agent cannot fix.
    CannotCheck,
    /// swarm, because a story has reached its review cap, and its checks or the gates of the loop fail each time.
    StoryStuck,
}

impl PauseBy {
    /// The word in `reason` where swarm paused the loop.
    pub fn slug(self) -> Option<&'static str> {
        match self {
            Self::User | Self::Shutdown => None,
            Self::NoProgress => Some("no_progress"),
            Self::BudgetUnseen => Some("budget_unseen"),
            Self::HeldOut => Some("held_out"),
            Self::CannotCheck => Some("cannot_check"),
            Self::StoryStuck => Some("story_stuck"),
        }
    }

    /// The origin in a few words, beside the status `paused`.
    pub fn brief(self) -> &'static str {
        match self {
            Self::User => "by you",
            Self::Shutdown => "the daemon was stopped",
            Self::NoProgress => "no progress",
            Self::BudgetUnseen => "cost unknown",
            Self::HeldOut => "held-out check failed",
            Self::CannotCheck => CANNOT_CHECK,
            Self::StoryStuck => "a story is stuck",
        }
    }

    /// The state of the paused loop for a person to read.
    pub(crate) fn state_text(self) -> String {
        match self {
            Self::User => "paused".to_owned(),
            Self::Shutdown => "paused when the daemon stopped".to_owned(),
            Self::NoProgress => "paused: no progress".to_owned(),
            Self::BudgetUnseen => format!("paused: {USAGE_UNKNOWN}"),
            Self::HeldOut => format!("paused: {HELD_OUT_SPENT}"),
            Self::CannotCheck => format!("paused: {CANNOT_CHECK}"),
            Self::StoryStuck => format!("paused: {STORY_STUCK}"),
        }
    }

    /// The text that the follower prints when the loop is paused.
    pub(crate) fn follow_text(self) -> String {
        match self {
            Self::User => "paused".to_owned(),
            Self::Shutdown => "paused (the daemon is stopping)".to_owned(),
            Self::NoProgress => "paused (no progress)".to_owned(),
            Self::BudgetUnseen => format!("paused ({USAGE_UNKNOWN})"),
            Self::HeldOut => format!("paused ({HELD_OUT_SPENT})"),
            Self::CannotCheck => format!("paused ({CANNOT_CHECK})"),
            Self::StoryStuck => format!("paused ({STORY_STUCK})"),
        }
    }

    /// The line for `iterations.log`, without the time.
    pub fn log_line(self) -> &'static str {
        match self {
            Self::User => "[PAUSE]",
            Self::Shutdown => "[PAUSE] reason=shutdown",
            Self::NoProgress => "[PAUSE] reason=no_progress",
            Self::BudgetUnseen => "[PAUSE] reason=budget_unseen",
            Self::HeldOut => "[PAUSE] reason=held_out",
            Self::CannotCheck => "[PAUSE] reason=cannot_check",
            Self::StoryStuck => "[PAUSE] reason=story_stuck",
        }
    }

    /// True when a person paused the loop. Its follower then waits for what the person does next.
    pub fn is_user(self) -> bool {
        self == Self::User
    }
}

/// How a person holds a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldBy {
    /// The person types into the agent's pane.
    Typing,
    /// `swarm hold`.
    Command,
}

impl HoldBy {
    /// The text of the notice.
    pub(crate) fn follow_text(self) -> &'static str {
        match self {
            Self::Typing => {
                "held by you, because you type: swarm starts and ends nothing until you have left"
            }
            Self::Command => "held by you: swarm starts and ends nothing until you release it",
        }
    }
}
