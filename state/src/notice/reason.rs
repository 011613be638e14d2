//! How an iteration ended, and who paused a loop, with the words for both.

use serde::{Deserialize, Serialize};

use crate::budget::USAGE_UNKNOWN;
use crate::model::{Exit, out_of_memory};

/// How an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationExit {
    /// The agent exited by itself.
    Exit(Exit),
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
        self.row().0
    }

    pub(crate) fn phrase(self) -> String {
        self.row().1
    }

    /// The table of ends: word and phrase.
    fn row(self) -> (String, String) {
        let row = |word: &str, phrase: &str| (word.to_owned(), phrase.to_owned());
        match self {
            Self::Exit(Exit::Code(code)) => (code.to_string(), format!("exit status {code}")),
            Self::Exit(Exit::Signal(signal)) => {
                (format!("signal-{signal}"), format!("ended by signal {signal}, which swarm did not send"))
            }
            Self::Exit(Exit::OutOfMemory(cap)) => row("out-of-memory", &out_of_memory(cap)),
            Self::Exit(Exit::Lost) => row("lost", "its pane vanished"),
            Self::Exit(Exit::Unknown) => row("unknown", "exit status unknown"),
            Self::Inactivity => row("inactivity", "nothing new on screen"),
            Self::Silent => row("inactivity", "nothing on screen"),
            Self::Done => row("done", "done pattern matched"),
            Self::Killed => row("killed", "killed"),
            Self::SpawnFailed => row("spawn-failed", "the agent was not started"),
            Self::Timeout => row("timeout", "the iteration's time limit was reached"),
            Self::OutOfTime => row("out-of-time", "the loop's time limit was reached"),
            Self::Outage => row("outage", "an outage stopped the agent"),
            Self::ApiError => row("api-error", "an API error ended its turn"),
            Self::ContextSpent => row("context-spent", "its context was full"),
            Self::TurnOver => row("turn-over", "its turn ended"),
            Self::Undelivered => row("undelivered", "the prompt was not delivered"),
            Self::Unanswered => row("unanswered", "its question was not answered"),
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
    /// The table of origins: the word in the log, the origin in a few words, and why swarm itself paused (or empty).
    fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::User => ("", "by you", ""),
            Self::Shutdown => ("shutdown", "the daemon was stopped", ""),
            Self::NoProgress => ("no_progress", "no progress", "no progress"),
            Self::BudgetUnseen => ("budget_unseen", "usage unknown", USAGE_UNKNOWN),
            Self::HeldOut => ("held_out", "held-out check failed", "the held-out check failed in all tries"),
            Self::CannotCheck => ("cannot_check", "a check cannot run", "a check cannot run"),
            Self::StoryStuck => {
                ("story_stuck", "a story is stuck", "a story is sent back again and again at its review cap")
            }
        }
    }

    /// The word in `reason` where swarm paused the loop.
    pub fn slug(self) -> Option<&'static str> {
        let (slug, _, reason) = self.row();
        (!reason.is_empty()).then_some(slug)
    }

    /// The origin in a few words, beside the status `paused`.
    pub fn brief(self) -> &'static str {
        self.row().1
    }

    /// Why the loop is paused, without the word "paused".
    pub fn reason(self) -> &'static str {
        let (_, brief, why) = self.row();
        if why.is_empty() { brief } else { why }
    }

    pub(crate) fn state_text(self) -> String {
        self.paused("paused when the daemon stopped", |why| format!("paused: {why}"))
    }

    pub(crate) fn follow_text(self) -> String {
        self.paused("paused (the daemon is stopping)", |why| format!("paused ({why})"))
    }

    fn paused(self, at_shutdown: &str, by_itself: fn(&str) -> String) -> String {
        match self.row() {
            _ if self.is_user() => "paused".to_owned(),
            (.., "") => at_shutdown.to_owned(),
            (.., why) => by_itself(why),
        }
    }

    /// The line for `iterations.log`, without the time.
    pub fn log_line(self) -> String {
        let (slug, ..) = self.row();
        if self.is_user() { "[PAUSE]".to_owned() } else { format!("[PAUSE] reason={slug}") }
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
    pub(crate) fn follow_text(self) -> &'static str {
        match self {
            Self::Typing => "held while you type: swarm starts and ends no run until 30 s after you detach",
            Self::Command => "held by you: swarm starts and ends no run until you release it",
        }
    }
}
