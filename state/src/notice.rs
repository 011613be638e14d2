//! What happened, as a value, and the words for it.
//!
//! The engine emits an [`Entry`] for everything worth telling. The daemon sends it to those who listen
//! (the wire form is this type's serde form and is append-only), writes [`Entry::log_lines`] into
//! `iterations.log`, and the following client prints [`Entry::follow_line`]. The sentences are the ralph
//! document's; where it is silent they are ours.

use serde::{Deserialize, Serialize};

/// How an iteration ended, as the log and the follower word it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationExit {
    /// The agent ended by itself.
    Exit(crate::model::Exit),
    /// swarm ended it: the screen did not change for too long.
    Inactivity,
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
            Self::Inactivity => "inactivity".into(),
            Self::Done => "done".into(),
            Self::Killed => "killed".into(),
            Self::SpawnFailed => "spawn-failed".into(),
            Self::Timeout => "timeout".into(),
            Self::OutOfTime => "out-of-time".into(),
            Self::Outage => "outage".into(),
            Self::ApiError => "api-error".into(),
            Self::ContextSpent => "context-spent".into(),
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
            | Self::OutOfTime(_)
            | Self::Cost { .. }
            | Self::Tokens { .. }
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
            Self::Verified => "all_checks_passed",
            Self::Promised => "promise_accepted",
            Self::OutOfTime(_) => "timeout",
            Self::Cost { .. } | Self::Tokens { .. } => "budget_exhausted",
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
            Self::OutOfTime(limit) => format!("out of time ({})", duration(*limit, " ")),
            Self::Cost { spent, limit } => {
                format!("out of budget ({} of {})", dollars(*spent), dollars(*limit))
            }
            Self::Tokens { spent, limit } => format!("out of budget ({spent} of {limit} tokens)"),
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

/// Something that happened to a worker. Seconds are whole seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A run's pane is up.
    Started {
        /// The run.
        run: u64,
    },
    /// The agent's input box is there.
    Ready {
        /// The run.
        run: u64,
    },
    /// The agent's turn is over, as far as the screen tells: its input box is there and has not changed for
    /// a few seconds.
    Idle {
        /// The run.
        run: u64,
    },
    /// The prompt was delivered and taken.
    PromptSent {
        /// The run.
        run: u64,
    },
    /// The prompt could not be delivered; the agent is left alone.
    PromptFailed {
        /// The run.
        run: u64,
        /// What went wrong.
        message: String,
    },
    /// The agent waits for a person.
    Waiting {
        /// The run.
        run: u64,
        /// What it waits for.
        reason: String,
    },
    /// A loop's next iteration is about to start.
    IterationStarted {
        /// Its number.
        iteration: u32,
        /// The limit.
        max: u32,
    },
    /// An iteration ended and is no failure.
    IterationEnded {
        /// Its number.
        iteration: u32,
        /// How.
        exit: IterationExit,
        /// How long it took.
        seconds: u64,
    },
    /// An iteration failed.
    IterationFailed {
        /// Its number.
        iteration: u32,
        /// How.
        exit: IterationExit,
        /// How long it took.
        seconds: u64,
        /// How many failed in a row, this one counted.
        attempt: u32,
        /// How many in a row end the loop.
        limit: u32,
        /// Seconds until the next try; absent when there is none.
        backoff: Option<u64>,
        /// What could not be done, when the agent never started.
        message: Option<String>,
    },
    /// The screen did not change for the time-out, and the agent is being ended.
    Inactivity {
        /// The iteration.
        iteration: u32,
        /// The time-out, seconds.
        timeout: u64,
        /// Whether another iteration may follow.
        restarting: bool,
    },
    /// The screen did not change, but the agent's processes are computing: it gets more time.
    InactivityExtended {
        /// The iteration.
        iteration: u32,
        /// The time-out, seconds.
        timeout: u64,
    },
    /// A check was run.
    Checked {
        /// At the end of which iteration; 0: before the first.
        iteration: u32,
        /// The command.
        check: String,
        /// Whether it passed.
        passed: bool,
        /// How long it took.
        seconds: u64,
    },
    /// The gates of a loop were tried at the end of an iteration and not all hold.
    GatesMissed {
        /// The iteration.
        iteration: u32,
        /// What is missing, a sentence a gate.
        missing: Vec<String>,
    },
    /// Every gate holds.
    GatesHeld {
        /// The iteration.
        iteration: u32,
    },
    /// An iteration came to nothing through no fault of its own; it is done again after a wait.
    Outage {
        /// The iteration.
        iteration: u32,
        /// In the CLI's words.
        message: String,
        /// Seconds until the next try.
        wait: u64,
    },
    /// The time of an iteration or of the loop is up, and the agent is being ended.
    OutOfTime {
        /// The iteration.
        iteration: u32,
        /// The limit, seconds.
        limit: u64,
        /// True when it is the loop's.
        whole: bool,
    },
    /// The done pattern matched in new output.
    DonePatternMatched {
        /// The iteration (0 for a plain worker).
        iteration: u32,
    },
    /// A loop is over and did what was asked.
    LoopComplete {
        /// Iterations used.
        iterations: u32,
        /// Why it ended.
        reason: StopReason,
    },
    /// A loop is over and did not.
    LoopFailed {
        /// Iterations used.
        iterations: u32,
        /// Why it ended.
        reason: StopReason,
    },
    /// A loop was paused.
    Paused {
        /// By whom.
        by: PauseBy,
    },
    /// A loop goes on.
    Resumed,
    /// A run of a plain worker that is started again after its end is over.
    RunEnded {
        /// The run.
        run: u64,
        /// How.
        exit: IterationExit,
        /// How many failed in a row, this one counted; 0 when it ended well.
        attempt: u32,
        /// How many restarts in a row there may be.
        limit: u32,
        /// Seconds until the next run; absent when there is none.
        backoff: Option<u64>,
        /// What could not be done, when the command never started.
        message: Option<String>,
    },
    /// A plain worker has ended.
    Stopped {
        /// Why.
        reason: StopReason,
    },
    /// The tmux server went away under the worker.
    Lost {
        /// What is known.
        reason: String,
    },
    /// A worker that was over was forgotten, with all that was left of it.
    Cleaned,
    /// Something a person should know; the worker goes on.
    Warning {
        /// What.
        message: String,
    },
}

/// `$1.50`; with more places where cents do not tell it.
pub fn dollars(millionths: u64) -> String {
    let amount = millionths as f64 / 1e6;
    if millionths.is_multiple_of(10_000) { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

/// `1 restart`, `2 restarts`.
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, thing: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

/// `a, b and 3 more`: at most so many by name.
pub fn named(things: &[String], most: usize) -> String {
    match things.split_at_checked(most) {
        Some((shown, rest)) if !rest.is_empty() => format!("{} and {} more", shown.join(", "), rest.len()),
        _ => things.join(", "),
    }
}

/// `42s`, `3m 42s`, `1h 3m 42s`, with `gap` between the parts (the log uses none).
pub fn duration(seconds: u64, gap: &str) -> String {
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (h, m) {
        (0, 0) => format!("{s}s"),
        (0, _) => format!("{m}m{gap}{s}s"),
        _ => format!("{h}h{gap}{m}m{gap}{s}s"),
    }
}

impl Entry {
    /// The line that the follower prints, without its line end; `None` when it prints nothing.
    pub fn follow_line(&self, name: &str) -> Option<String> {
        match self {
            Self::Started { .. }
            | Self::Ready { .. }
            | Self::Idle { .. }
            | Self::PromptSent { .. }
            | Self::RunEnded { .. }
            | Self::Cleaned
            | Self::Stopped { .. } => None,
            Self::PromptFailed { .. }
            | Self::Waiting { .. }
            | Self::IterationStarted { .. }
            | Self::IterationEnded { .. }
            | Self::IterationFailed { .. }
            | Self::Inactivity { .. }
            | Self::InactivityExtended { .. }
            | Self::Checked { .. }
            | Self::GatesMissed { .. }
            | Self::GatesHeld { .. }
            | Self::Outage { .. }
            | Self::OutOfTime { .. }
            | Self::DonePatternMatched { .. }
            | Self::LoopComplete { .. }
            | Self::LoopFailed { .. }
            | Self::Paused { .. }
            | Self::Resumed
            | Self::Lost { .. }
            | Self::Warning { .. } => Some(format!("[ralph] {name}: {}", self.words())),
        }
    }

    /// What happened, in words without the worker's name.
    pub fn words(&self) -> String {
        match self {
            Self::IterationStarted { iteration, max } => format!("starting iteration {iteration}/{max}"),
            Self::IterationEnded { iteration, exit, seconds } => {
                format!(
                    "iteration {iteration} completed (exit: {}, duration: {})",
                    exit.word(),
                    duration(*seconds, " ")
                )
            }
            Self::IterationFailed { iteration, exit, attempt, limit, backoff, message, .. } => {
                let why = message.as_ref().map(|m| format!(": {m}")).unwrap_or_default();
                let next = backoff
                    .map(|s| format!(", retrying in {} (attempt {attempt}/{limit})", duration(s, " ")))
                    .unwrap_or_default();
                format!("iteration {iteration} failed (exit: {}){why}{next}", exit.word())
            }
            Self::Inactivity { timeout, restarting, .. } => {
                format!("inactivity timeout ({timeout}s){}", if *restarting { ", restarting" } else { "" })
            }
            Self::InactivityExtended { timeout, .. } => {
                format!("inactivity timeout ({timeout}s), but the agent is computing: more time given")
            }
            Self::Checked { iteration, check, passed, seconds } => {
                let base = if *iteration == 0 { " before the first iteration" } else { "" };
                let word = if *passed { "passed" } else { "failed" };
                format!("check '{check}' {word}{base} ({})", duration(*seconds, " "))
            }
            Self::GatesMissed { missing, .. } => format!("not done: {}", missing.join("; ")),
            Self::GatesHeld { .. } => "every gate holds, stopping loop".to_owned(),
            Self::Outage { message, wait, .. } => {
                format!("waiting: {message} (next try in {})", duration(*wait, " "))
            }
            Self::OutOfTime { limit, whole: true, .. } => format!("out of time ({})", duration(*limit, " ")),
            Self::OutOfTime { iteration, limit, .. } => {
                format!("iteration {iteration} is out of time ({})", duration(*limit, " "))
            }
            Self::DonePatternMatched { .. } => "done pattern matched, stopping loop".to_owned(),
            Self::LoopComplete { iterations, .. } => format!("loop complete after {}", count(*iterations)),
            Self::LoopFailed { reason, iterations } => failed_text(reason, *iterations),
            Self::Paused { by: PauseBy::User } => "paused".to_owned(),
            Self::Paused { by: PauseBy::Shutdown } => "paused (the daemon is stopping)".to_owned(),
            Self::Paused { by: PauseBy::NoProgress } => "paused (no progress)".to_owned(),
            Self::Resumed => "resumed".to_owned(),
            Self::Waiting { reason, .. } => format!("waiting for a person: {reason}"),
            Self::PromptFailed { message, .. } => format!("prompt not delivered: {message}"),
            Self::Lost { reason } => format!("lost: {reason}"),
            Self::Warning { message } => format!("warning: {message}"),
            Self::Started { run } => format!("run {run} started"),
            Self::Ready { .. } => "ready".to_owned(),
            Self::Idle { .. } => "idle: the agent's turn is over".to_owned(),
            Self::PromptSent { .. } => "prompt sent".to_owned(),
            Self::Cleaned => "cleaned: nothing is left of it".to_owned(),
            Self::Stopped { reason } => format!("over: {}", reason.word()),
            Self::RunEnded { run, exit, backoff, message, .. } => {
                let why = message.as_ref().map(|m| format!(": {m}")).unwrap_or_default();
                let next = backoff.map(|s| format!(", next run in {}", duration(s, " "))).unwrap_or_default();
                format!("run {run} ended (exit: {}){why}{next}", exit.word())
            }
        }
    }

    /// The lines for `iterations.log`, without the time; empty when the log holds nothing of it.
    pub fn log_lines(&self) -> Vec<String> {
        match self {
            Self::IterationStarted { iteration, max } => vec![format!("[START] iteration {iteration}/{max}")],
            Self::IterationEnded { iteration, exit, seconds } => vec![end_line(*iteration, *exit, *seconds)],
            Self::IterationFailed { iteration, exit, seconds, attempt, limit, backoff, .. } => {
                let wait = backoff.map(|s| format!(" backoff={}", duration(s, ""))).unwrap_or_default();
                let word = exit.word();
                vec![
                    end_line(*iteration, *exit, *seconds),
                    format!("[FAIL] iteration {iteration} exit={word} attempt={attempt}/{limit}{wait}"),
                ]
            }
            Self::Inactivity { iteration, timeout, .. } => {
                vec![format!("[TIMEOUT] iteration {iteration} inactivity={timeout}s")]
            }
            Self::InactivityExtended { iteration, timeout } => {
                vec![format!("[EXTEND] iteration {iteration} inactivity={timeout}s reason=computing")]
            }
            Self::GatesMissed { iteration, missing } => {
                vec![format!("[CHECK] iteration {iteration} not done: {}", missing.join("; "))]
            }
            Self::GatesHeld { iteration } => vec![format!("[CHECK] iteration {iteration} every gate holds")],
            Self::Outage { iteration, message, wait } => {
                let wait = duration(*wait, "");
                vec![format!("[WAIT] iteration {iteration} is done again after {wait}: {message}")]
            }
            Self::Checked { iteration, check, passed, seconds } => {
                let (word, took) = (if *passed { "PASS" } else { "FAIL" }, duration(*seconds, ""));
                vec![format!("[CHECK] iteration {iteration} {word} duration={took} {}", one_line(check))]
            }
            Self::OutOfTime { iteration, limit, whole } => {
                let what = if *whole { "max-time" } else { "iteration-timeout" };
                vec![format!("[TIMEOUT] iteration {iteration} {what}={limit}s")]
            }
            Self::LoopComplete { iterations, reason } => {
                vec![format!("[DONE] loop complete after {} reason={}", count(*iterations), reason.slug())]
            }
            Self::LoopFailed { iterations, reason } => {
                let head =
                    if *reason == StopReason::Killed { "[DONE] loop killed" } else { "[FAIL] loop failed" };
                vec![format!("{head} after {} reason={}", count(*iterations), reason.slug())]
            }
            Self::Paused { by: PauseBy::User } => vec!["[PAUSE]".into()],
            Self::Paused { by: PauseBy::Shutdown } => vec!["[PAUSE] reason=shutdown".into()],
            Self::Paused { by: PauseBy::NoProgress } => vec!["[PAUSE] reason=no_progress".into()],
            Self::Resumed => vec!["[RESUME]".into()],
            Self::Waiting { reason, .. } => vec![format!("[WAIT] {reason}")],
            Self::PromptFailed { message, .. } => vec![format!("[WARN] prompt not delivered: {message}")],
            Self::Lost { reason } => vec![format!("[LOST] {reason}")],
            Self::Warning { message } => vec![format!("[WARN] {message}")],
            Self::Started { .. }
            | Self::Ready { .. }
            | Self::Idle { .. }
            | Self::PromptSent { .. }
            | Self::DonePatternMatched { .. }
            | Self::RunEnded { .. }
            | Self::Cleaned
            | Self::Stopped { .. } => vec![],
        }
    }
}

fn failed_text(reason: &StopReason, iterations: u32) -> String {
    match reason {
        StopReason::Failures(n) => format!("{}, stopping loop", counted(*n, "consecutive failure")),
        StopReason::Killed => format!("killed after {}", count(iterations)),
        StopReason::Complete
        | StopReason::Verified
        | StopReason::Promised
        | StopReason::Unverified
        | StopReason::OutOfTime(_)
        | StopReason::Cost { .. }
        | StopReason::Tokens { .. }
        | StopReason::Outage(_)
        | StopReason::MaxIterations
        | StopReason::Prompt(_)
        | StopReason::Exited(_)
        | StopReason::SpawnFailed(_)
        | StopReason::GaveUp(_) => format!("loop failed after {}: {}", count(iterations), reason.word()),
    }
}

fn end_line(iteration: u32, exit: IterationExit, seconds: u64) -> String {
    format!("[END] iteration {iteration} exit={} duration={}", exit.word(), duration(seconds, ""))
}

/// A command of several lines, in one.
fn one_line(command: &str) -> String {
    command.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `1 iteration`, `47 iterations`.
fn count(iterations: u32) -> String {
    counted(iterations, "iteration")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Exit;

    fn check(entry: &Entry, follow: &str, log: &[&str]) {
        assert_eq!(entry.follow_line("agent").unwrap_or_default(), follow);
        assert_eq!(entry.log_lines(), log);
    }

    #[test]
    fn the_documents_sentences() {
        check(
            &Entry::IterationStarted { iteration: 5, max: 100 },
            "[ralph] agent: starting iteration 5/100",
            &["[START] iteration 5/100"],
        );
        check(
            &Entry::IterationEnded { iteration: 5, exit: IterationExit::Exit(Exit::Code(0)), seconds: 222 },
            "[ralph] agent: iteration 5 completed (exit: 0, duration: 3m 42s)",
            &["[END] iteration 5 exit=0 duration=3m42s"],
        );
        check(
            &Entry::IterationFailed {
                iteration: 5,
                exit: IterationExit::Exit(Exit::Code(1)),
                seconds: 1,
                attempt: 3,
                limit: 5,
                backoff: Some(4),
                message: None,
            },
            "[ralph] agent: iteration 5 failed (exit: 1), retrying in 4s (attempt 3/5)",
            &["[END] iteration 5 exit=1 duration=1s", "[FAIL] iteration 5 exit=1 attempt=3/5 backoff=4s"],
        );
        check(
            &Entry::Inactivity { iteration: 6, timeout: 60, restarting: true },
            "[ralph] agent: inactivity timeout (60s), restarting",
            &["[TIMEOUT] iteration 6 inactivity=60s"],
        );
        check(
            &Entry::DonePatternMatched { iteration: 2 },
            "[ralph] agent: done pattern matched, stopping loop",
            &[],
        );
        check(
            &Entry::LoopComplete { iterations: 47, reason: StopReason::Complete },
            "[ralph] agent: loop complete after 47 iterations",
            &["[DONE] loop complete after 47 iterations reason=done_pattern"],
        );
        check(
            &Entry::LoopFailed { iterations: 5, reason: StopReason::Failures(5) },
            "[ralph] agent: 5 consecutive failures, stopping loop",
            &["[FAIL] loop failed after 5 iterations reason=consecutive_failures"],
        );
        check(&Entry::Paused { by: PauseBy::User }, "[ralph] agent: paused", &["[PAUSE]"]);
        check(&Entry::Resumed, "[ralph] agent: resumed", &["[RESUME]"]);
    }

    #[test]
    fn durations_are_whole_seconds() {
        assert_eq!(duration(0, " "), "0s");
        assert_eq!(duration(42, " "), "42s");
        assert_eq!(duration(222, " "), "3m 42s");
        assert_eq!(duration(222, ""), "3m42s");
        assert_eq!(duration(3822, " "), "1h 3m 42s");
    }
}
