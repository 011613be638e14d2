//! The text of a notice: the line for `iterations.log`, and the line that the follower prints.

use super::{Entry, IterationExit, duration};

impl Entry {
    /// The line that the follower prints, without its line end; `None` when it prints nothing.
    pub fn follow_line(&self, name: &str) -> Option<String> {
        let is_silent = matches!(
            self,
            Self::Started { .. }
                | Self::Ready { .. }
                | Self::Idle { .. }
                | Self::PromptSent { .. }
                | Self::RunEnded { .. }
                | Self::Cleaned
                | Self::Stopped { .. }
        );
        (!is_silent).then(|| format!("[ralph] {name}: {}", self.words()))
    }

    /// The text of the notice, without the worker's name.
    pub fn words(&self) -> String {
        match self {
            Self::IterationStarted { iteration, max } => format!("starting iteration {iteration}/{max}"),
            Self::IterationEnded { iteration, exit, seconds } => {
                let (exit, took) = (exit.word(), duration(*seconds, " "));
                format!("iteration {iteration} completed (exit: {exit}, duration: {took})")
            }
            Self::IterationFailed { iteration, exit, attempt, limit, backoff, message, .. } => {
                let why = message.as_ref().map(|m| format!(": {m}")).unwrap_or_default();
                let next = |s| format!(", retrying in {} (attempt {attempt}/{limit})", duration(s, " "));
                let next = backoff.map(next).unwrap_or_default();
                format!("iteration {iteration} failed (exit: {}){why}{next}", exit.word())
            }
            Self::Inactivity { timeout, restarting, .. } => {
                format!("inactivity timeout ({timeout}s){}", if *restarting { ", restarting" } else { "" })
            }
            Self::InactivityExtended { timeout, .. } => {
                format!("inactivity timeout ({timeout}s), but the agent is computing: more time given")
            }
            Self::StoryStarted { mode, story, title, done, total, .. } => {
                format!("{mode} {story}: {} ({done} of {total} stories are done)", one_line(title))
            }
            Self::CheckStarted { iteration, check } => {
                format!("running check '{}'{}", one_line(check), at_baseline(*iteration))
            }
            Self::Checked { iteration, check, passed, seconds } => {
                let (word, base) = (if *passed { "passed" } else { "failed" }, at_baseline(*iteration));
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
            Self::LoopComplete { iterations, reason } | Self::LoopFailed { iterations, reason } => {
                reason.follow_text(*iterations)
            }
            Self::Paused { by } => by.follow_text(),
            Self::Resumed => "resumed".to_owned(),
            Self::Held { by } => by.follow_text().to_owned(),
            Self::Released => "released".to_owned(),
            Self::Waiting { reason, .. } => format!("waiting for a person: {reason}"),
            Self::PromptFailed { message, .. } => format!("prompt not delivered: {message}"),
            Self::Lost { reason } => format!("lost: {reason}"),
            Self::Warning { message } => format!("warning: {message}"),
            Self::Started { run } => format!("run {run} started"),
            Self::Ready { .. } => "ready".to_owned(),
            Self::Idle { .. } => "idle: the agent's turn is over".to_owned(),
            Self::PromptSent { .. } => "prompt sent".to_owned(),
            Self::Cleaned => "deleted, with its files".to_owned(),
            Self::Stopped { reason } => format!("finished: {}", reason.text()),
            Self::RunEnded { run, exit, backoff, message, .. } => {
                run_ended(*run, *exit, *backoff, message.as_deref())
            }
        }
    }

    /// The lines for `iterations.log`, without the time; empty for notices that the log does not have.
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
            Self::Outage { iteration, message, wait, parked } => {
                let (wait, does) = (duration(*wait, ""), if *parked { "starts" } else { "is done again" });
                vec![format!("[WAIT] iteration {iteration} {does} after {wait}: {message}")]
            }
            Self::Checked { iteration, check, passed, seconds } => {
                let (word, took) = (if *passed { "PASS" } else { "FAIL" }, duration(*seconds, ""));
                vec![format!("[CHECK] iteration {iteration} {word} duration={took} {}", one_line(check))]
            }
            Self::OutOfTime { iteration, limit, whole } => {
                let what = if *whole { "max-time" } else { "iteration-timeout" };
                vec![format!("[TIMEOUT] iteration {iteration} {what}={limit}s")]
            }
            Self::LoopComplete { iterations, reason } | Self::LoopFailed { iterations, reason } => {
                vec![reason.log_line(*iterations)]
            }
            Self::StoryStarted { mode, story, .. } => vec![format!("[STORY] {mode} {story}")],
            Self::Paused { by } => vec![by.log_line()],
            Self::Resumed => vec!["[RESUME]".into()],
            Self::Held { .. } => vec!["[HOLD]".into()],
            Self::Released => vec!["[RELEASE]".into()],
            Self::Waiting { reason, .. } => vec![format!("[WAIT] {reason}")],
            Self::PromptFailed { message, .. } => vec![format!("[WARN] prompt not delivered: {message}")],
            Self::Lost { reason } => vec![format!("[LOST] {reason}")],
            Self::Warning { message } => vec![format!("[WARN] {message}")],
            Self::Started { .. }
            | Self::Ready { .. }
            | Self::Idle { .. }
            | Self::PromptSent { .. }
            | Self::CheckStarted { .. }
            | Self::DonePatternMatched { .. }
            | Self::RunEnded { .. }
            | Self::Cleaned
            | Self::Stopped { .. } => vec![],
        }
    }
}

fn run_ended(run: u64, exit: IterationExit, backoff: Option<u64>, message: Option<&str>) -> String {
    let why = message.map(|m| format!(": {m}")).unwrap_or_default();
    let next = backoff.map(|s| format!(", next run in {}", duration(s, " "))).unwrap_or_default();
    format!("run {run} ended (exit: {}){why}{next}", exit.word())
}

fn at_baseline(iteration: u32) -> &'static str {
    if iteration == 0 { " before the first iteration" } else { "" }
}

fn end_line(iteration: u32, exit: IterationExit, seconds: u64) -> String {
    format!("[END] iteration {iteration} exit={} duration={}", exit.word(), duration(seconds, ""))
}

fn one_line(command: &str) -> String {
    command.split_whitespace().collect::<Vec<_>>().join(" ")
}
