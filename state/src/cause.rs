//! The cause: why a worker or loop is in its state, as data.
//!
//! The engine derives the cause ([`crate::engine::Worker::cause`]). The daemon adds the causes that only it can see:
//! a full disk, running checks, a worker of an earlier swarm. Clients receive the cause in addition to
//! [`Cause::text`]. They decide by the variant, never by the text. Deliberately absent: what a person should do
//! ([`crate::advice`]).

use chrono::{DateTime, FixedOffset, Timelike};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::engine::Why;
use crate::model::{Exit, Status, is_default};
use crate::notice::{HoldBy, PauseBy, StopReason, duration};
use crate::outage;

/// Why a worker or loop is in its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// The worker has finished.
    Stopped {
        /// Why it finished.
        reason: StopReason,
        /// Why the last iteration or run failed, where the reason alone does not explain the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
        /// The memory of the last run or iteration reached the cap.
        #[serde(default, skip_serializing_if = "is_default")]
        out_of_memory: bool,
    },
    /// The tmux server went away.
    Lost {
        /// The host that went away with it, where another host has replaced it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// The loop is paused.
    Paused {
        /// The origin of the pause.
        by: PauseBy,
        /// More about the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// The agent shows a dialog, asks a question, has no input box, or did not accept its prompt.
    NeedsPerson {
        /// The dialog or question.
        text: String,
        /// Whether `swarm answer` can answer it.
        #[serde(default, skip_serializing_if = "is_default")]
        answerable: bool,
    },
    /// The agent's API cannot be used.
    Outage {
        /// The kind of outage.
        outage: outage::OutageKind,
        /// The agent's message.
        message: String,
        /// When it ends, where the message names a time.
        until: Option<DateTime<FixedOffset>>,
        /// Seconds from the outage to the next try.
        retry_seconds: u64,
    },
    /// The loops of the agent's account are parked until its usage limit is reset.
    Quota {
        /// The account, such as `claude account ~/.claude`.
        account: String,
        /// The limit and its window, such as `5 hour limit`.
        window: String,
        /// The used part of the limit, in percent.
        used: u16,
        /// When the limit is reset.
        until: DateTime<FixedOffset>,
    },
    /// The loop waits after a failure.
    Backoff {
        /// Seconds from the failure to the next try.
        retry_seconds: u64,
        /// Why the iteration failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
        /// Failures in a row so far.
        #[serde(default)]
        failures: u32,
        /// The failures in a row after which the loop ends as failed.
        #[serde(default)]
        max_failures: u32,
    },
    /// A plain worker waits for its next run.
    Restart {
        /// How the last run ended, and when the next is due.
        text: String,
    },
    /// A person holds the worker.
    Held {
        /// How.
        by: HoldBy,
        /// Since when.
        since: DateTime<FixedOffset>,
    },
    /// swarm is ending the run.
    Ending {
        /// Why.
        why: Why,
    },
    /// Checks run, and no agent.
    Checking {
        /// The first of them.
        check: String,
        /// How many others run.
        more: usize,
    },
    /// The worker stands still until there is room on the disk.
    DiskFull {
        /// The data that cannot be written, with the error.
        error: String,
    },
    /// The next iteration waits until the memory pressure of the machine has fallen.
    MemoryPressure {
        /// The pressure, in percent.
        percent: u32,
        /// The pressure up to which iterations start, in percent.
        limit: u32,
    },
    /// The worker's state cannot be saved; the run goes on.
    Unsaved {
        /// The system's error.
        error: String,
    },
    /// The worker belongs to an earlier swarm.
    EarlierSwarm {
        /// The status that the earlier swarm recorded.
        status: String,
    },
}

impl Cause {
    /// The cause of a worker that finished, without an explanation by its last run.
    pub fn stopped(reason: StopReason) -> Self {
        Self::Stopped { reason, failure: None, out_of_memory: false }
    }

    /// Whether the worker ended because the memory of its last run or iteration reached the cap.
    pub fn is_out_of_memory(&self) -> bool {
        // A daemon before this field sends the reason alone.
        matches!(self, Self::Stopped { out_of_memory: true, .. })
            || matches!(self, Self::Stopped { reason: StopReason::Exited(Exit::OutOfMemory(_)), .. })
    }

    /// The cause in a few words, for the column of a table beside the status, which it does not repeat.
    pub fn brief(&self, status: Status) -> String {
        match self {
            Self::Stopped { reason: StopReason::Killed, .. } => String::new(),
            Self::Stopped { reason, failure: Some(why), .. } => format!("{}: {why}", reason.text()),
            Self::Paused { by, .. } if status == Status::Paused => by.brief().to_owned(),
            Self::Paused { .. } => "pauses after this iteration".to_owned(),
            Self::Outage { outage, .. } if outage.needs_person() => "not logged in".to_owned(),
            Self::Outage { outage, until: Some(until), .. } => {
                format!("{} until {}", outage.word(), clock_time(until))
            }
            Self::Outage { outage, retry_seconds, .. } => {
                format!("{}, next try within {}", outage.word(), duration(*retry_seconds, " "))
            }
            Self::Quota { window, used, until, .. } => {
                format!("until {}: {used} % of {window}", clock_time(until))
            }
            Self::Backoff { failure, failures, max_failures, .. } => {
                let why = failure.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                format!("{failures} of {max_failures} failures{why}")
            }
            Self::Held { since, .. } => format!("held by you since {}", clock_time(since)),
            Self::DiskFull { .. } => "disk full".to_owned(),
            Self::MemoryPressure { percent, .. } => format!("memory pressure {percent} %"),
            Self::Unsaved { .. } => "its state cannot be saved".to_owned(),
            Self::EarlierSwarm { .. } => "belongs to an earlier swarm".to_owned(),
            Self::Stopped { .. }
            | Self::Lost { .. }
            | Self::NeedsPerson { .. }
            | Self::Restart { .. }
            | Self::Ending { .. }
            | Self::Checking { .. } => self.text(),
        }
    }

    /// The cause for a person to read, one line without a full stop.
    pub fn text(&self) -> String {
        match self {
            Self::Stopped { reason, failure: Some(why), .. } => format!("{}: {why}", reason.text()),
            Self::Stopped { reason, failure: None, .. } => reason.text(),
            Self::Lost { host: None } => "the tmux server went away".to_owned(),
            Self::Lost { host: Some(host) } => format!("the host {host} was replaced"),
            Self::Paused { detail: Some(detail), .. } => format!("paused: {detail}"),
            Self::Paused { by, detail: None } => by.state_text(),
            Self::NeedsPerson { text, .. } | Self::Restart { text } => text.clone(),
            Self::Outage { outage, message, retry_seconds, .. } if outage.needs_person() => {
                format!("needs you: {message} (swarm retries within {})", duration(*retry_seconds, " "))
            }
            Self::Outage { message, until: Some(until), .. } => {
                format!("{message} (goes on by itself at {})", full_time(until))
            }
            Self::Outage { message, retry_seconds, .. } => {
                format!("{message} (goes on by itself within {})", duration(*retry_seconds, " "))
            }
            Self::Quota { account, window, used, until } => {
                format!("parked until {}: {account} used {used} % of its {window}", full_time(until))
            }
            Self::Backoff { retry_seconds, failure, .. } => {
                let why = failure.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                format!("next try {retry_seconds}s after a failure{why}")
            }
            Self::Held { since, .. } => {
                format!("held by you since {}: swarm starts and ends no run", clock_time(since))
            }
            Self::Ending { why } => format!("ending: {}", why.iteration_exit().phrase()),
            Self::Checking { check, more: 0 } => format!("checking: {check}"),
            Self::Checking { check, more } => format!("checking: {check} and {more} more"),
            Self::DiskFull { error } => format!("waits for the disk: {error}"),
            Self::MemoryPressure { percent, limit } => {
                format!("waits until the memory pressure has fallen: {percent} % (limit {limit} %)")
            }
            Self::Unsaved { error } => format!("its state cannot be saved: {error}"),
            Self::EarlierSwarm { status } => {
                format!("belongs to an earlier swarm; its last recorded status: {status}")
            }
        }
    }
}

fn clock_time(at: &DateTime<FixedOffset>) -> String {
    format!("{:02}:{:02}", at.hour(), at.minute())
}

/// With the day and the offset: the reader may be in another time zone.
fn full_time(at: &DateTime<FixedOffset>) -> String {
    format!("{} {} {}", at.date_naive(), clock_time(at), at.offset())
}

/// Reads a value from the wire; `None` for one that only a later swarm has. Fails when it is not JSON.
pub fn known<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held() -> Cause {
        let since = DateTime::parse_from_rfc3339("2026-01-15T14:02:59+01:00").unwrap();
        Cause::Held { by: HoldBy::Typing, since }
    }

    const QUOTA_TEXT: &str =
        "parked until 2026-01-15 14:20 +01:00: claude account ~/.claude used 92 % of its 5 hour limit";

    fn quota() -> Cause {
        let (account, window) = ("claude account ~/.claude".into(), "5 hour limit".into());
        let until = DateTime::parse_from_rfc3339("2026-01-15T14:20:00+01:00").unwrap();
        Cause::Quota { account, window, used: 92, until }
    }

    fn all() -> Vec<(Cause, &'static str)> {
        let outage = |kind, until: Option<&str>| Cause::Outage {
            outage: kind,
            message: "limit reached".into(),
            until: until.map(|at| DateTime::parse_from_rfc3339(at).unwrap()),
            retry_seconds: 300,
        };
        let paused = |by| Cause::Paused { by, detail: None };
        let why = Some("exit status 7".into());
        let failed = Cause::Stopped { reason: StopReason::AllFailed, failure: why, out_of_memory: false };
        let backoff = |failure: Option<&str>| Cause::Backoff {
            retry_seconds: 4,
            failure: failure.map(str::to_owned),
            failures: 3,
            max_failures: 5,
        };
        vec![
            (Cause::stopped(StopReason::MaxIterations), "max iterations"),
            (failed, "max iterations, and no iteration succeeded: exit status 7"),
            (Cause::Lost { host: None }, "the tmux server went away"),
            (Cause::Lost { host: Some("node1".into()) }, "the host node1 was replaced"),
            (paused(PauseBy::User), "paused"),
            (paused(PauseBy::Shutdown), "paused when the daemon stopped"),
            (paused(PauseBy::NoProgress), "paused: no progress"),
            (
                Cause::Paused { by: PauseBy::CannotCheck, detail: Some("no such program: x".into()) },
                "paused: no such program: x",
            ),
            (Cause::NeedsPerson { text: "trust dialog".into(), answerable: false }, "trust dialog"),
            (
                outage(outage::OutageKind::Limit, Some("2026-01-15T08:05:00+01:00")),
                "limit reached (goes on by itself at 2026-01-15 08:05 +01:00)",
            ),
            (outage(outage::OutageKind::Overload, None), "limit reached (goes on by itself within 5m 0s)"),
            (
                outage(outage::OutageKind::Login, None),
                "needs you: limit reached (swarm retries within 5m 0s)",
            ),
            (quota(), QUOTA_TEXT),
            (backoff(None), "next try 4s after a failure"),
            (backoff(Some("exit status 1")), "next try 4s after a failure: exit status 1"),
            (
                Cause::Restart { text: "exit status 1, next run at 08:05:00".into() },
                "exit status 1, next run at 08:05:00",
            ),
            (held(), "held by you since 14:02: swarm starts and ends no run"),
            (Cause::Ending { why: Why::TurnOver }, "ending: its turn ended"),
            (Cause::Checking { check: "make test".into(), more: 0 }, "checking: make test"),
            (Cause::Checking { check: "make test".into(), more: 2 }, "checking: make test and 2 more"),
            (Cause::DiskFull { error: "no space left".into() }, "waits for the disk: no space left"),
            (
                Cause::MemoryPressure { percent: 34, limit: 20 },
                "waits until the memory pressure has fallen: 34 % (limit 20 %)",
            ),
            (Cause::Unsaved { error: "no space left".into() }, "its state cannot be saved: no space left"),
            (
                Cause::EarlierSwarm { status: "running".into() },
                "belongs to an earlier swarm; its last recorded status: running",
            ),
        ]
    }

    #[test]
    fn the_brief_text_of_each_cause() {
        let brief: Vec<String> = all().iter().map(|(cause, _)| cause.brief(Status::Paused)).collect();
        assert_eq!(
            brief,
            [
                "max iterations",
                "max iterations, and no iteration succeeded: exit status 7",
                "the tmux server went away",
                "the host node1 was replaced",
                "by you",
                "the daemon was stopped",
                "no progress",
                "a check cannot run",
                "trust dialog",
                "limit until 08:05",
                "overload, next try within 5m 0s",
                "not logged in",
                "until 14:20: 92 % of 5 hour limit",
                "3 of 5 failures",
                "3 of 5 failures: exit status 1",
                "exit status 1, next run at 08:05:00",
                "held by you since 14:02",
                "ending: its turn ended",
                "checking: make test",
                "checking: make test and 2 more",
                "disk full",
                "memory pressure 34 %",
                "its state cannot be saved",
                "belongs to an earlier swarm",
            ]
        );
        let paused = Cause::Paused { by: PauseBy::User, detail: None };
        assert_eq!(paused.brief(Status::Running), "pauses after this iteration");
    }

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct View {
        #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    }

    #[test]
    fn each_cause_has_a_text_and_survives_serialization() {
        for (cause, text) in all() {
            assert_eq!(cause.text(), text);
            let view = View { cause: Some(cause) };
            let json = serde_json::to_string(&view).unwrap();
            assert_eq!(serde_json::from_str::<View>(&json).unwrap(), view, "{json}");
        }
    }

    #[test]
    fn cause_of_a_later_release_is_ignored() {
        for json in ["{}", r#"{"cause":null}"#, r#"{"cause":{"kind":"later"}}"#, r#"{"cause":7}"#] {
            assert_eq!(serde_json::from_str::<View>(json).unwrap(), View { cause: None }, "{json}");
        }
    }
}
