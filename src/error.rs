//! The error type of this crate: a code, a message and, where there is one, a hint.
//!
//! The code decides the exit status and travels on the wire. `main` alone prints errors and exits.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use swarm_state::gates::GatesError;

/// The kinds of failure that a caller can distinguish. Append-only, because the names are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request is not valid; exit 1.
    Invalid,
    /// There is no worker of that name; exit 2.
    NotFound,
    /// A live worker has that name; exit 1.
    Exists,
    /// The worker's state does not allow this; exit 1.
    Conflict,
    /// A wait timed out; exit 5.
    Timeout,
    /// No daemon runs and none could be started; exit 3.
    NoDaemon,
    /// Client and daemon speak different protocol versions; exit 4.
    Version,
    /// The disk, tmux, git or the system failed; exit 1.
    System,
    /// A bug in swarm; exit 1.
    Internal,
    /// The command line is wrong; exit 2.
    Usage,
    /// The requested sandbox cannot be built; exit 6.
    Sandbox,
    /// swarm's directory belongs to a daemon on another host; exit 3.
    OtherHost,
    /// A remote host cannot be reached; exit 6.
    Unreachable,
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
            Self::NoDaemon | Self::OtherHost => 3,
            Self::Version => 4,
            Self::Timeout => 5,
            Self::Sandbox | Self::Unreachable => 6,
            Self::Invalid | Self::Exists | Self::Conflict | Self::System | Self::Internal => 1,
        }
    }
}

/// An error as a user sees it: `swarm: error: MESSAGE`, then `hint: HINT`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// The kind of failure.
    pub code: ErrorCode,
    /// The failed action and the reason: lower case, without a full stop.
    pub message: String,
    /// The next step, preferably a command to type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The error for gates that are not valid.
    pub(crate) fn of_gates(fault: GatesError) -> Self {
        Self::usage(fault.to_string()).hint(fault.hint)
    }

    /// Makes an error.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Makes an [`ErrorCode::System`] error from what was tried and the system's reason.
    pub fn system(what: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::new(ErrorCode::System, format!("{what}: {cause}"))
    }

    /// Makes an [`ErrorCode::Invalid`] error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }

    /// Makes an [`ErrorCode::Usage`] error.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Conflict, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// Adds a hint.
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

/// Makes the [`ErrorCode::System`] error "cannot VERB 'PATH': CAUSE".
pub(crate) fn failed(verb: &str, path: &Path, cause: impl fmt::Display) -> Error {
    Error::system(format!("cannot {verb} '{}'", path.display()), cause)
}

/// Returns the message with the hint in parentheses, for a log line.
pub(crate) fn sentence(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{} ({hint})", error.message),
        None => error.message.clone(),
    }
}
