//! How a loop can end: one table of the words, the status and the exit code.
//!
//! [`StopReason`] is what the engine knows; an [`End`] is what people and scripts are told of it: the
//! `stop_reason` of a result, the exit code of whoever follows the loop. The man page prints this table and a
//! test holds the two together, so there is one source. Deliberately absent: pauses, which end nothing.

use serde::{Deserialize, Serialize};

use crate::model::LoopStatus;
use crate::notice::StopReason;

/// How a loop ended. In the order of precedence: of two that are true, the earlier is told; too many failures in a row
/// alone come before the iterations, since a loop that only fails must not look as if it had worked to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Every gate holds, checks among them.
    AllChecksPassed,
    /// Every gate holds, the promise among them and no check.
    PromiseAccepted,
    /// The done pattern appeared, and nothing else was asked for.
    DonePattern,
    /// The iterations are used up.
    MaxIterations,
    /// The cost or the tokens are used up.
    BudgetExhausted,
    /// The time is used up.
    Timeout,
    /// Too many failures in a row, no iteration that succeeded, or an error that a retry does not fix.
    Failed,
    /// Somebody killed it.
    Killed,
    /// Whoever ran it in the foreground gave it up.
    Cancelled,
    /// The prompt or the spec is gone or cannot be read.
    PromptMissing,
    /// The tmux server went away under it; it can be resumed.
    Lost,
}

impl End {
    /// All of them, in order of precedence.
    pub const ALL: [Self; 11] = [
        Self::AllChecksPassed,
        Self::PromiseAccepted,
        Self::DonePattern,
        Self::MaxIterations,
        Self::BudgetExhausted,
        Self::Timeout,
        Self::Failed,
        Self::Killed,
        Self::Cancelled,
        Self::PromptMissing,
        Self::Lost,
    ];

    /// The end that a stopped loop came to.
    pub fn of(reason: &StopReason) -> Self {
        match reason {
            StopReason::Complete => Self::DonePattern,
            StopReason::Verified => Self::AllChecksPassed,
            StopReason::Promised => Self::PromiseAccepted,
            StopReason::MaxIterations | StopReason::Unverified => Self::MaxIterations,
            StopReason::OutOfTime(_) => Self::Timeout,
            StopReason::Cost { .. } | StopReason::Tokens { .. } => Self::BudgetExhausted,
            StopReason::Prompt(_) => Self::PromptMissing,
            StopReason::Killed => Self::Killed,
            StopReason::NoGate
            | StopReason::Outage(_)
            | StopReason::Failures(_)
            | StopReason::AllFailed
            | StopReason::Exited(_)
            | StopReason::SpawnFailed(_)
            | StopReason::GaveUp(_) => Self::Failed,
        }
    }

    /// Whether the iterations ran out though more was asked for than a done pattern: what [`Self::status`] and
    /// [`Self::exit_code`] call `gated`. It makes a difference to [`Self::MaxIterations`] alone.
    pub fn is_missed(reason: &StopReason) -> bool {
        Self::of(reason) == Self::MaxIterations && !reason.is_success()
    }

    /// The end that a word of [`StopReason::slug`] stands for; `None` for one of a worker that is no loop, or a
    /// later swarm's.
    pub fn of_slug(slug: &str) -> Option<Self> {
        match slug {
            "consecutive_failures" | "all_failed" | "outage" | "no_gate" => Some(Self::Failed),
            "prompt_file" => Some(Self::PromptMissing),
            word => Self::ALL.into_iter().find(|end| end.word() == word),
        }
    }

    /// The word in a result's `stop_reason`.
    pub fn word(self) -> &'static str {
        match self {
            Self::AllChecksPassed => "all_checks_passed",
            Self::PromiseAccepted => "promise_accepted",
            Self::DonePattern => "done_pattern",
            Self::MaxIterations => "max_iterations",
            Self::BudgetExhausted => "budget_exhausted",
            Self::Timeout => "timeout",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::Cancelled => "cancelled",
            Self::PromptMissing => "prompt_missing",
            Self::Lost => "lost",
        }
    }

    /// What it means, for the table in the man page.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::AllChecksPassed => "all gates hold, including a check",
            Self::PromiseAccepted => "all gates hold, with a promise and no check",
            Self::DonePattern => "the done pattern matched; it is the only gate",
            Self::MaxIterations => "all iterations are used",
            Self::BudgetExhausted => "the cost or token limit was exceeded",
            Self::Timeout => "the time limit was reached",
            Self::Failed => "failures in a row, no success, or a fatal error",
            Self::Killed => "the loop was killed",
            Self::Cancelled => "the user canceled it in the foreground",
            Self::PromptMissing => "the prompt or task file is missing, unreadable",
            Self::Lost => "the tmux server is gone; resume continues",
        }
    }

    /// The loop's status in `state.json`. `gated`: more was asked for than a done pattern.
    pub fn status(self, gated: bool) -> LoopStatus {
        match self {
            Self::MaxIterations if gated => LoopStatus::Failed,
            Self::AllChecksPassed
            | Self::PromiseAccepted
            | Self::DonePattern
            | Self::MaxIterations
            | Self::Killed => LoopStatus::Stopped,
            Self::BudgetExhausted | Self::Timeout | Self::Failed | Self::PromptMissing => LoopStatus::Failed,
            Self::Cancelled => LoopStatus::Paused,
            Self::Lost => LoopStatus::Running,
        }
    }

    /// The exit code of whoever follows the loop. `gated`: more was asked for than a done pattern.
    pub fn exit_code(self, gated: bool) -> u8 {
        match self {
            Self::AllChecksPassed | Self::PromiseAccepted | Self::DonePattern => 0,
            Self::MaxIterations => u8::from(gated),
            Self::BudgetExhausted
            | Self::Timeout
            | Self::Failed
            | Self::Killed
            | Self::Cancelled
            | Self::PromptMissing
            | Self::Lost => 1,
        }
    }
}

/// The table for the man page: every end, its status and its exit code.
pub fn table() -> String {
    let row = |end: End, gated: bool, meaning: &str| {
        format!(
            "  {:<18} {:<8} {}  {meaning}\n",
            end.word(),
            end.status(gated).as_str(),
            end.exit_code(gated)
        )
    };
    let mut text = String::new();
    for end in End::ALL {
        if end == End::MaxIterations {
            text += &row(end, false, "iterations used up; no gate but a done pattern");
            text += &row(end, true, "iterations used up; not every gate holds");
        } else {
            text += &row(end, true, end.meaning());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Exit;

    #[test]
    fn words_on_the_wire_are_the_words_of_the_table() {
        for end in End::ALL {
            assert_eq!(serde_json::to_value(end).unwrap(), end.word());
        }
        assert!(End::ALL.is_sorted());
    }

    #[test]
    fn the_table_has_every_end_once_and_the_iterations_twice() {
        let table = table();
        let rows: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
        assert_eq!(rows.len(), End::ALL.len() + 1);
        for end in End::ALL {
            for gated in [false, true] {
                let code = end.exit_code(gated).to_string();
                let row = vec![end.word(), end.status(gated).as_str(), &code];
                assert!(rows.contains(&row), "{row:?} in {table}");
            }
        }
    }

    #[test]
    fn success_is_exit_code_0_and_a_loop_that_failed_or_can_go_on_is_1() {
        for end in End::ALL {
            for gated in [false, true] {
                match (end.status(gated), end.exit_code(gated)) {
                    (LoopStatus::Stopped, 0)
                    | (LoopStatus::Failed | LoopStatus::Paused | LoopStatus::Running, 1) => {}
                    (LoopStatus::Stopped, 1) => assert_eq!(end, End::Killed),
                    wrong => panic!("{end:?}: {wrong:?}"),
                }
            }
        }
    }

    #[test]
    fn an_end_and_its_reason_agree_on_success() {
        let m = || "m".to_owned();
        for reason in [
            StopReason::Complete,
            StopReason::Verified,
            StopReason::Promised,
            StopReason::MaxIterations,
            StopReason::Unverified,
            StopReason::AllFailed,
            StopReason::OutOfTime(1),
            StopReason::Cost { spent: 1, limit: 1 },
            StopReason::Tokens { spent: 1, limit: 1 },
            StopReason::NoGate,
            StopReason::Outage(m()),
            StopReason::Failures(5),
            StopReason::Prompt(m()),
            StopReason::Killed,
            StopReason::Exited(Exit::Code(1)),
            StopReason::SpawnFailed(m()),
            StopReason::GaveUp(1),
        ] {
            let (end, gated) = (End::of(&reason), End::is_missed(&reason));
            assert_eq!(gated, reason == StopReason::Unverified);
            assert_eq!(end.exit_code(gated) == 0, reason.is_success(), "{reason:?}");
            // Of these only a plain worker ends.
            let plain =
                matches!(reason, StopReason::Exited(_) | StopReason::SpawnFailed(_) | StopReason::GaveUp(_));
            assert_eq!(End::of_slug(reason.slug()), (!plain).then_some(end), "{reason:?}");
        }
    }
}
