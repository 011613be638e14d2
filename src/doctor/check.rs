//! A finding of the doctor: one line with its severity and its fix. Data that is read once and used by several checks.

use serde::Serialize;

use crate::error::Error;
use crate::out::Color;
use crate::paths::Paths;
use crate::store::DiskSurvey;
use crate::tmux::ServerSurvey;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    Ok,
    /// The checked item works, but the user should act.
    Warn,
    /// The checked item does not work.
    Fail,
}

impl Level {
    /// Its word, and the color of the word.
    pub(super) fn shown(self) -> (&'static str, Color) {
        match self {
            Self::Ok => ("ok", Color::Green),
            Self::Warn => ("warn", Color::Yellow),
            Self::Fail => ("fail", Color::Red),
        }
    }
}

/// The result of one check: a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    /// The name of the check; scripts may rely on it.
    pub(super) check: &'static str,
    pub(super) level: Level,
    /// The finding, one sentence.
    pub(super) message: String,
    /// The fix; every warning and failure has one. If it contains a command, the command is at its end and can be
    /// pasted.
    pub(super) hint: Option<String>,
}

impl Check {
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: message.into(), hint: None }
    }

    pub(super) fn warn(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { check, level: Level::Warn, message: message.into(), hint: Some(hint.into()) }
    }

    pub(super) fn fail(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { check, level: Level::Fail, message: message.into(), hint: Some(hint.into()) }
    }

    /// A failure from an error. `hint` is used if the error has none.
    pub(super) fn of(check: &'static str, error: Error, hint: &str) -> Self {
        let hint = error.hint.unwrap_or_else(|| hint.to_owned());
        Self::fail(check, error.message, hint)
    }
}

/// Data that several checks need.
pub(super) struct Observed {
    pub(super) paths: Paths,
    pub(super) disk: DiskSurvey,
    /// Our own tmux server.
    pub(super) server: ServerSurvey,
}
