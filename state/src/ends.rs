//! How workers and loops end: one row for each reason, one row for each end.
//!
//! [`StopReason`] is the engine's reason with its data. A [`LoopEnd`] is the class of reasons that people and scripts
//! see: the `stop_reason` of a result and the follower's exit status. Everything that swarm prints or decides about an
//! end is derived from these two tables. The man page prints [`table`]. Deliberately absent: pauses, which do not end a
//! loop.

use serde::{Deserialize, Serialize};

use crate::gates::NO_GATE;
use crate::model::{Exit, LoopStatus, Status};
use crate::words::{counted, dollars, duration};

/// Why a worker has finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The done pattern matched, and no other gate was requested.
    Complete,
    /// The iteration limit was reached, at least one iteration succeeded, and no gate but a done pattern was requested.
    MaxIterations,
    /// Every gate holds, at least one check among them.
    Verified,
    /// Every gate holds, a promise among them and no check.
    Promised,
    /// Every story of the task list is approved, and every other gate holds.
    StoriesApproved,
    /// The task list has stories left, but none can be worked on; the reason.
    NoStory(String),
    /// The iteration limit was reached before every gate held.
    Unverified,
    /// The iteration limit was reached, and no iteration succeeded.
    AllFailed,
    /// The time limit was reached; seconds.
    OutOfTime(u64),
    /// The cost limit was reached; millionths of a US dollar.
    Cost {
        /// Used.
        spent: u64,
        /// Allowed.
        limit: u64,
    },
    /// The token limit was reached.
    Tokens {
        /// Used.
        spent: u64,
        /// Allowed.
        limit: u64,
    },
    /// Every check failed before the first iteration and is excused, and no other gate was requested.
    NoGate,
    /// The agent's API reported an error that a retry does not fix; the agent's message.
    Outage(String),
    /// This many iterations failed in a row.
    Failures(u32),
    /// The prompt file is missing or cannot be read; the documented message.
    Prompt(String),
    /// A person or script killed the worker.
    Killed,
    /// The command of a plain worker exited.
    Exited(Exit),
    /// A plain worker could not be started; the error.
    SpawnFailed(String),
    /// A plain worker failed again after this many restarts in a row.
    GaveUp(u32),
}

/// Everything that follows from one [`StopReason`].
struct ReasonRow {
    end: LoopEnd,
    slug: &'static str,
    text: String,
    is_success: bool,
    /// The follower's line. `{iterations}` and `{text}` are replaced.
    follow: &'static str,
    /// The start of the line in `iterations.log`.
    log: &'static str,
    /// Whether the last failure belongs to the explanation.
    shows_failure: bool,
}

impl ReasonRow {
    fn done(end: LoopEnd, slug: &'static str, text: &str) -> Self {
        let (follow, log) = ("loop complete after {iterations}", "[DONE] loop complete");
        Self { end, slug, text: text.to_owned(), is_success: true, follow, log, shows_failure: false }
    }

    fn failed(end: LoopEnd, slug: &'static str, text: impl Into<String>) -> Self {
        let (follow, log) = ("loop failed after {iterations}: {text}", "[FAIL] loop failed");
        Self { end, slug, text: text.into(), is_success: false, follow, log, shows_failure: false }
    }

    fn out_of_budget(used: &str) -> Self {
        Self::failed(LoopEnd::BudgetExhausted, "budget_exhausted", format!("out of budget ({used})"))
    }

    fn with_failure(self) -> Self {
        Self { shows_failure: true, ..self }
    }
}

impl StopReason {
    fn row(&self) -> ReasonRow {
        use {LoopEnd as End, ReasonRow as Row};
        match self {
            Self::Complete => Row::done(End::DonePattern, "done_pattern", "done pattern matched"),
            Self::Verified => Row::done(End::AllChecksPassed, "all_checks_passed", "every gate holds"),
            Self::Promised => Row::done(End::PromiseAccepted, "promise_accepted", "promise accepted"),
            Self::MaxIterations => {
                Row::done(End::MaxIterations, "max_iterations", "max iterations").with_failure()
            }
            Self::StoriesApproved => {
                Row::done(End::StoriesApproved, "stories_approved", "every story is approved")
            }
            Self::NoStory(why) => Row::failed(End::Failed, "no_story", why.clone()),
            Self::Unverified => {
                Row::failed(End::MaxIterations, "max_iterations", "max iterations, and not every gate holds")
                    .with_failure()
            }
            Self::AllFailed => {
                Row::failed(End::Failed, "all_failed", "max iterations, and no iteration succeeded")
                    .with_failure()
            }
            Self::OutOfTime(limit) => {
                Row::failed(End::Timeout, "timeout", format!("out of time ({})", duration(*limit, " ")))
            }
            Self::Cost { spent, limit } => {
                Row::out_of_budget(&format!("{} of {}", dollars(*spent), dollars(*limit)))
            }
            Self::Tokens { spent, limit } => Row::out_of_budget(&format!("{spent} of {limit} tokens")),
            Self::NoGate => Row::failed(End::Failed, "no_gate", NO_GATE),
            Self::Outage(message) => Row::failed(End::Failed, "outage", message.clone()),
            Self::Failures(failures) => Row {
                follow: "{text}, stopping loop",
                shows_failure: true,
                ..Row::failed(End::Failed, "consecutive_failures", counted(*failures, "consecutive failure"))
            },
            Self::Prompt(message) => Row::failed(End::PromptMissing, "prompt_file", message.clone()),
            Self::Killed => Row {
                follow: "killed after {iterations}",
                log: "[DONE] loop killed",
                ..Row::failed(End::Killed, "killed", "killed")
            },
            Self::Exited(exit @ Exit::OutOfMemory(_)) => {
                Row::failed(End::Failed, "out_of_memory", exit.to_string())
            }
            Self::Exited(exit) => {
                Row { is_success: exit.is_success(), ..Row::failed(End::Failed, "exited", exit_text(*exit)) }
            }
            Self::SpawnFailed(message) => Row::failed(End::Failed, "spawn_failed", message.clone()),
            Self::GaveUp(restarts) => {
                let text = format!("gave up after {}", counted(*restarts, "restart"));
                Row::failed(End::Failed, "max_restarts", text).with_failure()
            }
        }
    }

    /// Whether the last failure of the loop belongs to the explanation.
    pub(crate) fn shows_failure(&self) -> bool {
        self.row().shows_failure
    }

    /// The end of a loop that stopped for this reason.
    pub fn end(&self) -> LoopEnd {
        self.row().end
    }

    /// True when the worker did what was requested.
    pub fn is_success(&self) -> bool {
        self.row().is_success
    }

    /// One word without spaces, for `reason=…` in the log and `reason` in `state.json`.
    pub fn slug(&self) -> &'static str {
        self.row().slug
    }

    /// The reason for a person to read, as `status` shows it.
    pub fn text(&self) -> String {
        self.row().text
    }

    /// True when a limit of the loop was reached, which a person can raise.
    pub(crate) fn is_limit(&self) -> bool {
        self.raised(0, 0).is_some()
    }

    /// The change that lets a loop with this end continue, as `ralph set` accepts it: twice the limit, or more than was
    /// used until now: `iteration`, and `time` in seconds. `None` if the loop did not end at a limit.
    pub fn raised(&self, iteration: u32, time: u64) -> Option<String> {
        let above = |used: u64, limit: u64| limit.max(used / 2 + 1).saturating_mul(2);
        Some(match self {
            Self::MaxIterations | Self::Unverified | Self::AllFailed => {
                format!("max_iterations={}", iteration.max(1).saturating_mul(2))
            }
            Self::Failures(failures) => format!("max_failures={}", failures.saturating_mul(2)),
            Self::Cost { spent, limit } => {
                let whole_cents = above(*spent, *limit).next_multiple_of(10_000);
                format!("max_cost={}", dollars(whole_cents).trim_start_matches('$'))
            }
            Self::Tokens { spent, limit } => format!("max_tokens={}", above(*spent, *limit)),
            Self::OutOfTime(limit) => format!("max_time={}", duration(above(time, *limit), "")),
            Self::Complete | Self::Verified | Self::Promised | Self::StoriesApproved => return None,
            Self::NoGate | Self::NoStory(_) | Self::Outage(_) | Self::GaveUp(_) => return None,
            Self::Prompt(_) | Self::Killed | Self::Exited(_) | Self::SpawnFailed(_) => return None,
        })
    }

    /// The loop's status in `state.json`.
    pub fn loop_status(&self) -> LoopStatus {
        self.end().status(!self.is_success())
    }

    /// The status of the worker that finished so.
    pub fn status(&self) -> Status {
        if *self == Self::Killed {
            Status::Killed
        } else if self.is_success() {
            Status::Done
        } else {
            Status::Failed
        }
    }

    /// The follower's exit status.
    pub fn exit_code(&self) -> u8 {
        self.end().exit_code(!self.is_success())
    }

    /// The text that the follower prints when the loop has stopped.
    pub(crate) fn follow_text(&self, iterations: u32) -> String {
        let ReasonRow { follow, text, .. } = self.row();
        follow.replace("{iterations}", &counted(iterations, "iteration")).replace("{text}", &text)
    }

    /// The line for `iterations.log`, without the time.
    pub fn log_line(&self, iterations: u32) -> String {
        let ReasonRow { log, slug, .. } = self.row();
        format!("{log} after {} reason={slug}", counted(iterations, "iteration"))
    }
}

fn exit_text(exit: Exit) -> String {
    match exit {
        Exit::Code(0) => "exited".to_owned(),
        Exit::Code(code) => format!("exit status {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::OutOfMemory(_) => exit.to_string(),
        Exit::Lost => "its pane vanished".to_owned(),
        Exit::Unknown => "exit status unknown".to_owned(),
    }
}

/// How a loop ended, in order of precedence: of two that apply at the end of an iteration, swarm reports the earlier.
/// Too many failures come before the iteration limit, since a loop that only fails must not look as if it had finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopEnd {
    /// Every gate holds, checks among them.
    AllChecksPassed,
    /// Every gate holds, the promise among them and no check.
    PromiseAccepted,
    /// Every story of the task list is approved, and every other gate holds.
    StoriesApproved,
    /// The done pattern matched, and no other gate was requested.
    DonePattern,
    /// Too many failures in a row, no iteration that succeeded, or an error that a retry does not fix.
    Failed,
    /// The iteration limit was reached.
    MaxIterations,
    /// The cost or token limit was reached.
    BudgetExhausted,
    /// The time limit was reached.
    Timeout,
    /// A person or script killed the loop.
    Killed,
    /// The user interrupted a loop that ran in the foreground.
    Cancelled,
    /// The prompt or the spec is missing or cannot be read.
    PromptMissing,
    /// The tmux server went away; the loop can be resumed.
    Lost,
}

struct EndRow {
    word: &'static str,
    status: LoopStatus,
    exit_code: u8,
    meaning: &'static str,
}

impl LoopEnd {
    /// All ends, in order of precedence.
    pub const ALL: [Self; 12] = [
        Self::AllChecksPassed,
        Self::PromiseAccepted,
        Self::StoriesApproved,
        Self::DonePattern,
        Self::Failed,
        Self::MaxIterations,
        Self::BudgetExhausted,
        Self::Timeout,
        Self::Killed,
        Self::Cancelled,
        Self::PromptMissing,
        Self::Lost,
    ];

    /// The table of ends. The row of `MaxIterations` is the one of a loop whose gates all hold.
    fn row(self) -> EndRow {
        use LoopStatus::{Failed, Paused, Running, Stopped};
        let row = |word, status, exit_code, meaning| EndRow { word, status, exit_code, meaning };
        match self {
            Self::AllChecksPassed => {
                row("all_checks_passed", Stopped, 0, "all gates hold, including a check")
            }
            Self::PromiseAccepted => {
                row("promise_accepted", Stopped, 0, "all gates hold, with a promise\nand no check")
            }
            Self::StoriesApproved => {
                row("stories_approved", Stopped, 0, "every story is approved, and all other\ngates hold")
            }
            Self::DonePattern => {
                row("done_pattern", Stopped, 0, "the done pattern matched and is the\nonly gate")
            }
            Self::Failed => row(
                "failed",
                Failed,
                1,
                "too many failures in a row, no iteration\nsucceeded, or an error that a retry does\nnot fix",
            ),
            Self::MaxIterations => {
                row("max_iterations", Stopped, 0, "iterations used up; no --check and no\n--promise was set")
            }
            Self::BudgetExhausted => {
                row("budget_exhausted", Failed, 1, "the cost or token limit was reached")
            }
            Self::Timeout => row("timeout", Failed, 1, "the time limit was reached"),
            Self::Killed => row("killed", Stopped, 1, "the loop was killed"),
            Self::Cancelled => row("cancelled", Paused, 1, "you pressed Ctrl-C"),
            Self::PromptMissing => {
                row("prompt_missing", Failed, 1, "the prompt or task file is missing or\ncannot be read")
            }
            Self::Lost => row("lost", Running, 1, "the tmux server is gone"),
        }
    }

    /// The end with this [`Self::word`]; `None` for other words of [`StopReason::slug`] and those of a later swarm.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.word() == word)
    }

    /// The word in a result's `stop_reason`.
    pub fn word(self) -> &'static str {
        self.row().word
    }

    /// The loop's status in `state.json`. `missed`: a gate did not hold; matters for [`Self::MaxIterations`] alone.
    pub fn status(self, missed: bool) -> LoopStatus {
        if missed && self == Self::MaxIterations { LoopStatus::Failed } else { self.row().status }
    }

    /// The worker's status. `missed`: as for [`Self::status`].
    pub fn worker_status(self, missed: bool) -> Status {
        match (self.status(missed), self.exit_code(missed)) {
            (LoopStatus::Paused, _) => Status::Paused,
            (LoopStatus::Running, _) => Status::Lost,
            (LoopStatus::Failed, _) => Status::Failed,
            (LoopStatus::Stopped, 0) => Status::Done,
            (LoopStatus::Stopped, _) => Status::Killed,
        }
    }

    /// The follower's exit status. `missed`: a gate did not hold; matters for [`Self::MaxIterations`] alone.
    pub fn exit_code(self, missed: bool) -> u8 {
        if missed && self == Self::MaxIterations { 1 } else { self.row().exit_code }
    }
}

/// The table for the man page: every end, its worker's status and its exit status, below a line with the headings.
pub fn table() -> String {
    let line = |word: &str, status: &str, code: &str, meaning: &str| {
        format!("  {word:<18} {status:<8} {code:<5} {meaning}").trim_end().to_owned() + "\n"
    };
    let row = |end: LoopEnd, missed: bool, meaning: &str| {
        let (status, code) = (end.worker_status(missed).as_str(), end.exit_code(missed).to_string());
        let mut lines = meaning.lines();
        let first = line(end.word(), status, &code, lines.next().unwrap_or_default());
        first + &lines.map(|more| line("", "", "", more)).collect::<String>()
    };
    let mut text = line("STOP_REASON", "STATUS", "EXIT", "MEANING");
    for end in LoopEnd::ALL {
        text += &row(end, false, end.row().meaning);
        if end == LoopEnd::MaxIterations {
            text += &row(end, true, "iterations used up; not every gate holds");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_ends_are_serialized_as_the_words_of_the_table() {
        for end in LoopEnd::ALL {
            assert_eq!(serde_json::to_value(end).unwrap(), end.word());
        }
        assert!(LoopEnd::ALL.is_sorted());
    }

    #[test]
    fn table_has_each_end_once_and_max_iterations_twice() {
        let table = table();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .skip(1)
            .filter(|line| !line.starts_with("   "))
            .map(|line| line.split_whitespace().take(3).collect())
            .collect();
        assert_eq!(rows.len(), LoopEnd::ALL.len() + 1);
        for end in LoopEnd::ALL {
            for missed in [false, true] {
                let code = end.exit_code(missed).to_string();
                let row = vec![end.word(), end.worker_status(missed).as_str(), &code];
                assert!(rows.contains(&row), "{row:?} in {table}");
            }
        }
    }

    #[test]
    fn success_exits_with_0_and_a_failed_or_resumable_loop_with_1() {
        for end in LoopEnd::ALL {
            for missed in [false, true] {
                match (end.status(missed), end.exit_code(missed)) {
                    (LoopStatus::Stopped, 0)
                    | (LoopStatus::Failed | LoopStatus::Paused | LoopStatus::Running, 1) => {}
                    (LoopStatus::Stopped, 1) => assert_eq!(end, LoopEnd::Killed),
                    wrong => panic!("{end:?}: {wrong:?}"),
                }
            }
        }
    }

    #[test]
    fn a_raised_limit_is_above_all_that_was_used() {
        let cost = |spent, limit| StopReason::Cost { spent, limit };
        let tokens = |spent, limit| StopReason::Tokens { spent, limit };
        for (reason, (iteration, time), change) in [
            (StopReason::MaxIterations, (25, 0), Some("max_iterations=50")),
            (StopReason::Unverified, (1, 0), Some("max_iterations=2")),
            (StopReason::AllFailed, (0, 0), Some("max_iterations=2")),
            (StopReason::Failures(5), (9, 0), Some("max_failures=10")),
            (cost(5_120_000, 5_000_000), (9, 0), Some("max_cost=10.00")),
            (cost(12_345_678, 1_000_000), (9, 0), Some("max_cost=12.35")),
            (cost(1, 1), (1, 0), Some("max_cost=0.01")),
            (tokens(1005, 1000), (9, 0), Some("max_tokens=2000")),
            (tokens(5000, 1000), (9, 0), Some("max_tokens=5002")),
            (StopReason::OutOfTime(600), (9, 605), Some("max_time=20m0s")),
            (StopReason::OutOfTime(600), (9, 7200), Some("max_time=2h0m2s")),
            (StopReason::Killed, (9, 0), None),
            (StopReason::Complete, (9, 0), None),
            (StopReason::Verified, (9, 0), None),
            (StopReason::NoGate, (9, 0), None),
            (StopReason::StoriesApproved, (9, 0), None),
            (StopReason::NoStory("m".into()), (9, 0), None),
            (StopReason::Prompt("m".into()), (9, 0), None),
        ] {
            assert_eq!(reason.raised(iteration, time).as_deref(), change, "{reason:?}");
            assert_eq!(reason.is_limit(), change.is_some());
        }
    }

    #[test]
    fn loop_end_and_stop_reason_agree_on_success() {
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
            StopReason::StoriesApproved,
            StopReason::NoStory(m()),
            StopReason::Outage(m()),
            StopReason::Failures(5),
            StopReason::Prompt(m()),
            StopReason::Killed,
            StopReason::Exited(Exit::Code(1)),
            StopReason::SpawnFailed(m()),
            StopReason::GaveUp(1),
        ] {
            assert_eq!(reason.exit_code() == 0, reason.is_success(), "{reason:?}");
            let is_stopped = reason.loop_status() == LoopStatus::Stopped;
            assert_eq!(is_stopped, reason.is_success() || reason == StopReason::Killed, "{reason:?}");
            if !matches!(reason, StopReason::Exited(_) | StopReason::SpawnFailed(_) | StopReason::GaveUp(_)) {
                assert_eq!(reason.end().worker_status(!reason.is_success()), reason.status(), "{reason:?}");
            }
            let named = LoopEnd::from_word(reason.slug());
            assert!(named.is_none_or(|end| end == reason.end()), "{reason:?}");
        }
    }
}
