//! Notifications: which states of workers are announced to a person, and the messages.
//!
//! The daemon observes its workers with a [`NotifyPlanner`] and sends the messages that it returns. A message contains
//! names and fixed texts. It never contains text from a screen, from an agent or from a command, because it leaves the
//! machine. Deliberately absent: how a message is sent, and the settings file.

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

use crate::attention::Attention;
use crate::cause::Cause;
use crate::model::Status;
use crate::notice::{StopReason, counted, kind_of};

mod planner;
mod quiet;

#[cfg(test)]
mod tests;

pub use planner::{MAX_SINGLE_MESSAGES, MESSAGE_MINUTE, NotifyPlanner, NotifyRules, WorkerState};
pub use quiet::{QUIET_FORM, QuietHours};

/// The version of the JSON of a notification.
pub const NOTIFICATION_SCHEMA: u32 = 1;

/// The lines of a digest that a person reads. The JSON has all events.
const MAX_DIGEST_LINES: usize = 20;

/// The kinds of states that are announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotifyClass {
    /// Only a person can continue the worker.
    NeedsYou,
    /// The worker has finished or failed.
    Ended,
    /// The worker is parked, waits for the disk, or cannot be reached.
    Fleet,
}

crate::word_table!(pub NotifyClass, word, [(NeedsYou, "needs_you"), (Ended, "ended"), (Fleet, "fleet")]);

impl NotifyClass {
    /// The class of a worker's state; `None` for a state that is not announced.
    pub fn of(state: &WorkerState) -> Option<Self> {
        let cause = state.cause.as_ref();
        let is_disk = matches!(cause, Some(Cause::DiskFull { .. } | Cause::Unsaved { .. }));
        if is_disk && !state.status.is_finished() {
            return Some(Self::Fleet);
        }
        match Attention::of(state.status, cause, state.is_seen) {
            Attention::NeedsYou => Some(Self::NeedsYou),
            Attention::FailedOrLost if state.status == Status::Failed => Some(Self::Ended),
            Attention::FailedOrLost => Some(Self::Fleet),
            // The person who paused the loop or holds the worker needs no message.
            Attention::Parked if matches!(cause, Some(Cause::Paused { .. } | Cause::Held { .. })) => None,
            Attention::Parked => Some(Self::Fleet),
            // The coordinator merges the work of its workers.
            Attention::FinishedUnseen => (!state.has_parent).then_some(Self::Ended),
            Attention::Working | Attention::Rest => None,
        }
    }
}

/// A message about one state, or a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// [`NOTIFICATION_SCHEMA`].
    pub schema: u32,
    /// The class; of a digest, the most urgent class of its events.
    pub class: NotifyClass,
    /// The worker; null for a digest.
    pub name: Option<String>,
    /// The host of the worker; null for this machine.
    pub host: Option<String>,
    /// The worker's status; null for a digest.
    pub status: Option<Status>,
    /// The kind of the cause, one word; null without a cause and for a digest.
    pub cause: Option<String>,
    /// The reason for a person to read, one line.
    pub reason: String,
    /// When the state began, or when the digest was made: RFC 3339 with offset.
    pub at: DateTime<FixedOffset>,
    /// The events of a digest, the most urgent ones first; absent in a message about one state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Self>,
}

impl Notification {
    /// The message about a worker's state.
    pub fn of(state: &WorkerState, class: NotifyClass, at: DateTime<FixedOffset>) -> Self {
        Self {
            schema: NOTIFICATION_SCHEMA,
            class,
            name: Some(state.name.clone()),
            host: None,
            status: Some(state.status),
            cause: state.cause.as_ref().map(kind_of),
            reason: reason(state),
            at,
            events: vec![],
        }
    }

    /// One message for several.
    pub fn digest(mut events: Vec<Self>, at: DateTime<FixedOffset>) -> Self {
        events.sort_by_key(|event| event.class);
        let of = |class| events.iter().filter(|event: &&Self| event.class == class).count();
        let failed = events.iter().filter(|event| event.status == Some(Status::Failed)).count();
        let need = of(NotifyClass::NeedsYou);
        let parts = [
            (need, if need == 1 { "needs you" } else { "need you" }),
            (failed, "failed"),
            (of(NotifyClass::Ended) - failed, "done"),
            (of(NotifyClass::Fleet), "parked, lost or without disk space"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, state)| format!("{count} {state}")).collect();
        Self {
            schema: NOTIFICATION_SCHEMA,
            class: events.first().map_or(NotifyClass::Fleet, |event| event.class),
            name: None,
            host: None,
            status: None,
            cause: None,
            reason: format!("{}: {}", counted(events.len() as u64, "worker"), parts.join(", ")),
            at,
            events,
        }
    }

    /// The message of `swarm notify test`.
    pub fn test(at: DateTime<FixedOffset>) -> Self {
        let state = WorkerState {
            name: "test".to_owned(),
            status: Status::Waiting,
            cause: None,
            run: 1,
            is_seen: false,
            has_parent: false,
        };
        let reason = "a test message of swarm notify test".to_owned();
        Self { reason, ..Self::of(&state, NotifyClass::NeedsYou, at) }
    }

    /// The title for a person to read.
    pub fn title(&self) -> String {
        let Some(name) = &self.name else { return self.reason.clone() };
        let state = match (self.class, self.status) {
            (NotifyClass::NeedsYou, _) => "needs you",
            (NotifyClass::Ended, Some(Status::Failed)) => "failed",
            (NotifyClass::Ended, _) => "is done",
            (NotifyClass::Fleet, Some(Status::Lost)) => "is lost",
            (NotifyClass::Fleet, Some(Status::Unreachable)) => "is unreachable",
            (NotifyClass::Fleet, _) if self.is_disk() => "has a disk problem",
            (NotifyClass::Fleet, _) => "is parked",
        };
        format!("{name} {state}")
    }

    fn is_disk(&self) -> bool {
        matches!(self.cause.as_deref(), Some("disk_full" | "unsaved"))
    }

    /// The text below the title: the reason; for a digest, a line for each event.
    pub fn body(&self) -> String {
        if self.events.is_empty() {
            return self.reason.clone();
        }
        let mut lines: Vec<String> = self.events.iter().take(MAX_DIGEST_LINES).map(Self::line).collect();
        if let Some(more) = self.events.len().checked_sub(MAX_DIGEST_LINES).filter(|more| *more > 0) {
            lines.push(format!("and {more} more: swarm ls"));
        }
        lines.join("\n")
    }

    /// Title and reason on one line.
    pub fn line(&self) -> String {
        match self.name {
            Some(_) if !self.reason.is_empty() => format!("{}: {}", self.title(), self.reason),
            Some(_) | None => self.title(),
        }
    }
}

/// The reason in fixed texts. A cause may quote a screen, a command or a program's output, which is left out.
fn reason(state: &WorkerState) -> String {
    let fixed = |text: &str| text.to_owned();
    match &state.cause {
        None if state.status == Status::Unreachable => fixed("tmux does not answer"),
        None => String::new(),
        Some(Cause::NeedsPerson { text, .. }) => fixed(question(text)),
        Some(Cause::Stopped { reason, .. }) => ending(reason),
        Some(Cause::Checking { .. }) => fixed("checks run"),
        Some(Cause::Restart { .. }) => fixed("waits for its next run"),
        Some(Cause::Backoff { failures, max_failures, .. }) => {
            format!("{failures} of {max_failures} failures")
        }
        Some(Cause::EarlierSwarm { .. }) => fixed("belongs to an earlier swarm"),
        // A loop that pauses itself has the status when its run has ended.
        Some(Cause::Paused { by, .. }) => fixed(by.brief()),
        Some(
            cause @ (Cause::Lost { .. }
            | Cause::Outage { .. }
            | Cause::Held { .. }
            | Cause::Ending { .. }
            | Cause::DiskFull { .. }
            | Cause::MemoryPressure { .. }
            | Cause::Quota { .. }
            | Cause::Unsaved { .. }),
        ) => cause.brief(state.status),
    }
}

/// The kind of a dialog or question, whose text may be the agent's own.
fn question(text: &str) -> &'static str {
    const QUESTION_PHRASES: [(&str, &str); 8] = [
        ("prompt not delivered", "did not accept its prompt"),
        ("permission", "asks for permission"),
        ("trust", "asks whether it may trust the directory"),
        ("log in", "asks for a login"),
        ("login", "asks for a login"),
        ("a list to choose", "asks for a choice"),
        ("question", "asks a question"),
        ("asks", "asks a question"),
    ];
    let text = text.to_lowercase();
    let known = QUESTION_PHRASES.iter().find(|(word, _)| text.contains(word));
    known.map_or("shows a dialog or asks a question", |(_, phrase)| phrase)
}

/// How a worker ended, without the messages of programs.
fn ending(reason: &StopReason) -> String {
    match reason {
        StopReason::NoStory(_) => "no story of its task list can be worked on".to_owned(),
        StopReason::Outage(_) => "an API error that a retry does not fix".to_owned(),
        StopReason::Prompt(_) => "its prompt file cannot be read".to_owned(),
        StopReason::SpawnFailed(_) => "could not be started".to_owned(),
        StopReason::Complete
        | StopReason::MaxIterations
        | StopReason::Verified
        | StopReason::Promised
        | StopReason::StoriesApproved
        | StopReason::Unverified
        | StopReason::AllFailed
        | StopReason::OutOfTime(_)
        | StopReason::Cost { .. }
        | StopReason::Tokens { .. }
        | StopReason::NoGate
        | StopReason::Failures(_)
        | StopReason::Killed
        | StopReason::Exited(_)
        | StopReason::GaveUp(_) => reason.text(),
    }
}

/// The key of a state: two states of a worker with the same key are one. Numbers in a text do not count.
fn state_key(state: &WorkerState, class: NotifyClass) -> String {
    let detail = match &state.cause {
        Some(Cause::NeedsPerson { text, .. }) => text.chars().filter(|c| !c.is_ascii_digit()).collect(),
        Some(Cause::Outage { outage, .. }) => outage.word().to_owned(),
        Some(Cause::Paused { by, .. }) => by.brief().to_owned(),
        Some(_) | None => String::new(),
    };
    let cause = state.cause.as_ref().map(kind_of).unwrap_or_default();
    // An ended run has its own key; other states may continue in the next run.
    let run = if class == NotifyClass::Ended { state.run } else { 0 };
    format!("{} {} {cause} {run} {detail}", class.word(), state.status)
}

/// Whether swarm itself interrupts the state to retry.
fn is_retried(state: &WorkerState) -> bool {
    matches!(
        state.cause,
        Some(
            Cause::Outage { .. }
                | Cause::DiskFull { .. }
                | Cause::Unsaved { .. }
                | Cause::MemoryPressure { .. }
                | Cause::Quota { .. }
        )
    ) || state.status == Status::Unreachable
}
