//! The one error type of the edge: a code, a sentence, and where there is one the next step.
//!
//! A code decides the exit status and travels in the protocol; `main` alone prints and exits.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of failure that a caller can tell apart. Append-only: the words are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request makes no sense as it stands; exit 1.
    Invalid,
    /// No worker of that name; exit 2.
    NotFound,
    /// The name is taken by a live worker; exit 1.
    Exists,
    /// The worker is in no state for this; exit 1.
    Conflict,
    /// A wait ran out; exit 5.
    Timeout,
    /// The daemon is not there and could not be started; exit 3.
    NoDaemon,
    /// Client and daemon speak different protocols; exit 4.
    Version,
    /// The disk, tmux, git or the system refused; exit 1.
    System,
    /// A bug of ours; exit 1.
    Internal,
    /// Wrong use of the command line; exit 2.
    Usage,
}

impl ErrorCode {
    /// The code as it is on the wire.
    pub(crate) fn word(self) -> String {
        serde_json::to_value(self).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// The code of a word from the wire.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }

    /// The exit status of a command that ends with this error.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::NotFound | Self::Usage => 2,
            Self::NoDaemon => 3,
            Self::Version => 4,
            Self::Timeout => 5,
            Self::Invalid | Self::Exists | Self::Conflict | Self::System | Self::Internal => 1,
        }
    }
}

/// An error as a user sees it: `swarm: error: MESSAGE`, then `hint: HINT`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// What kind.
    pub code: ErrorCode,
    /// One sentence, without a full stop.
    pub message: String,
    /// The next step, best a command to type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The result of the edge.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `code` that says `message`.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// [`ErrorCode::System`]: what was tried, and what the system said.
    pub fn system(what: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::new(ErrorCode::System, format!("{what}: {cause}"))
    }

    /// [`ErrorCode::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }

    /// [`ErrorCode::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    /// The same error with a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// An error with its next step, as one sentence for a log line.
pub(crate) fn sentence(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{} ({hint})", error.message),
        None => error.message.clone(),
    }
}
