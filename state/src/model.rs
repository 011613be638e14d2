//! The nouns: types that can only hold valid values.
//!
//! All other modules use them. Not here: what a user asked for ([`crate::spec`]), anything that changes
//! ([`crate::engine`]) and the layout on disk ([`mod@crate::format`]).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod status;

pub use status::{LoopStatus, Status};

/// The name of a worker: 1 to 64 characters of `A-Za-z0-9_-`, not starting with `-`. It becomes a tmux window, a git
/// branch and a file name, and is checked once, when it is parsed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkerName(String);

/// A text that is not a valid [`WorkerName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid worker name {0:?}: use 1 to 64 of A-Z a-z 0-9 _ -, not starting with -")]
pub struct InvalidName(pub String);

impl WorkerName {
    /// The longest name, in characters (all of them ASCII).
    pub const MAX_NAME_BYTES: usize = 64;

    /// Parses a name; [`InvalidName`] when the text breaks the rule of the type.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let ok = (1..=Self::MAX_NAME_BYTES).contains(&text.len())
            && !text.starts_with('-')
            && text.chars().all(legal);
        if ok { Ok(Self(text.to_owned())) } else { Err(InvalidName(text.to_owned())) }
    }

    /// The first free name that is made from the last part of a directory: `app`, `app-2`, `app-3`.
    pub fn of_directory(dir: &std::path::Path, is_free: impl Fn(&Self) -> bool) -> Option<Self> {
        let base = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' };
        let base: String = base.chars().map(legal).take(Self::MAX_NAME_BYTES - 8).collect();
        let base = base.trim_start_matches('-');
        let base = if base.is_empty() { "worker" } else { base };
        let numbered = (2u64..).map(|n| format!("{base}-{n}"));
        let names = std::iter::once(base.to_owned()).chain(numbered);
        names.filter_map(|text| Self::new(&text).ok()).find(is_free)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for WorkerName {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::new(text)
    }
}

crate::words::serde_text!(WorkerName, InvalidName, WorkerName::new, WorkerName::as_str);

/// The number of a run, from 1; 0 means that there was no run yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Run(pub u64);

impl Run {
    /// The run after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of the signal of a kernel that has no memory left.
const SIGKILL: i32 = 9;

/// `out of memory (8.0 GiB)`.
pub fn out_of_memory(cap: u64) -> String {
    format!("out of memory ({})", crate::words::size(cap))
}

/// How a run ended. Unknown is never success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// The program returned this status.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// The kernel killed it, because its memory reached this cap in bytes.
    OutOfMemory(u64),
    /// Its pane vanished; the end of the program is unknown.
    Lost,
    /// The pane existed, but the end of the program is unknown.
    Unknown,
}

impl Exit {
    /// True for exit status 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// The status as a shell reports it (128 + signal); `None` when unknown.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            // The number may come from an edited file.
            Self::Signal(signal) => Some(signal.saturating_add(128)),
            Self::OutOfMemory(_) => Some(128 + SIGKILL),
            Self::Lost | Self::Unknown => None,
        }
    }

    /// The signal, if one ended the run.
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Signal(signal) => Some(signal),
            Self::OutOfMemory(_) => Some(SIGKILL),
            Self::Code(_) | Self::Lost | Self::Unknown => None,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::OutOfMemory(cap) => write!(f, "{}", out_of_memory(*cap)),
            Self::Lost => f.write_str("lost"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The tmux pane of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pane {
    /// The run that lives in it.
    pub run: Run,
    /// tmux's pane id, `%7`.
    pub id: String,
    /// tmux's window id, `@3`.
    pub window: String,
    /// The process in the pane (swarm's wrapper, the parent of the agent).
    pub pid: i32,
    /// The pid of its tmux server, which identifies the server after a restart.
    pub server_pid: i32,
}

/// A git worktree that swarm made for a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its directory, absolute.
    pub path: PathBuf,
    /// The branch that is checked out there.
    pub branch: String,
    /// The repository it belongs to (its main working tree), absolute.
    pub base_repo: PathBuf,
}

/// How the prompt reaches the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptVia {
    /// The profile decides.
    #[default]
    Auto,
    /// On standard input, which is closed after it.
    Stdin,
    /// As an argument, after the profile's flag if it has one.
    Arg,
    /// Pasted into the agent's own input box once that is ready.
    Paste,
}

crate::word_table!(pub PromptVia, as_str, [(Auto, "auto"), (Stdin, "stdin"), (Arg, "arg"), (Paste, "paste")]);

/// Default of the seconds that a question may stay unanswered during work.
pub const QUESTION_TIMEOUT_SECONDS: u64 = 600;

/// [`QUESTION_TIMEOUT_SECONDS`], for serde.
pub(crate) fn default_question_timeout() -> u64 {
    QUESTION_TIMEOUT_SECONDS
}

pub(crate) fn has_twice<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    texts.into_iter().any(|text| !seen.insert(text))
}

/// Whether serde may omit a field: a reader fills in the default.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The ends after which a plain worker is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartWhen {
    /// After every end except exit status 0.
    OnFailure,
    /// After an end without an exit status: by a signal, or an unknown one.
    OnAbnormal,
    /// After every end.
    Always,
}

crate::word_table!(
    pub RestartWhen,
    as_str,
    [(OnFailure, "on-failure"), (OnAbnormal, "on-abnormal"), (Always, "always")]
);

/// The restart policy of a plain worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartSpec {
    /// The ends that lead to a restart.
    pub when: RestartWhen,
    /// The most restarts in a row; 0: none.
    pub max_restarts: u32,
}

#[cfg(test)]
mod tests;
