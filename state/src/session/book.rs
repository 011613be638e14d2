//! swarm's own data about a session loop (the book, `loop.json`), and the lines of its log.
//!
//! The state file is authoritative and has a fixed form. The book holds data that only swarm needs, and outlives the
//! state file. A loop survives the loss of its book: every field has a default. Used by `swarm hook`, `swarm session
//! status` and `swarm session logs`. Deliberately absent: its path.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::session::queue::Queue;
use crate::session::state::{SessionKind, SessionLoop, SessionStatus};

/// `loop.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Book {
    /// The path of the state file.
    pub state_file: Option<PathBuf>,
    /// The project's directory.
    pub project_dir: Option<PathBuf>,
    /// Tool calls since the loop began, as far as they were counted.
    pub tool_calls: u64,
    /// Some calls could not be counted, so the number may be higher.
    pub has_gap: bool,
    /// How far the transcript was read.
    pub mark: Option<Mark>,
    /// The last stop that was decided.
    pub last_stop: Option<LastStop>,
    /// Stops in a row that were blocked, as the CLI counts them.
    pub blocks_in_a_row: u32,
    /// Stops in a row without a change in the tree.
    pub without_diff: u32,
    /// The state of the tree at the last stop, or at the start.
    pub tree: Option<String>,
    /// The agent's text between the last two stops, if it was short enough for an error message.
    pub last_words: Option<String>,
    /// The transcript marked the last stop as an API error.
    pub last_was_error: bool,
    /// The messages that wait in the CLI's queue.
    pub queue: Queue,
    /// The options from the start of a do-it loop that have no place in its state file.
    pub do_it: DoItOptions,
    /// The command that started it, needed once the state file is gone.
    pub kind: Option<SessionKind>,
    /// The turn of its last stop.
    pub iteration: Option<u32>,
    /// Its number of turns; 0 for no limit.
    pub max_iterations: Option<u32>,
    /// The status with which the loop ended; `None` while it runs.
    pub status: Option<SessionStatus>,
    /// Why, in a sentence.
    pub why: Option<String>,
}

/// Options of a do-it loop. Its state file has only the documented keys, so the book has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DoItOptions {
    /// Stops in a row without a change in the tree that pause it; 0 for no such limit.
    pub no_diff_limit: u32,
    /// Archive progress and changes if the branch differs from that of the last run.
    pub archive_on_branch_change: bool,
    /// The contract's file, if not the built-in one.
    pub contract: Option<PathBuf>,
}

/// How far a transcript was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// The transcript.
    pub transcript: PathBuf,
    /// The byte after the last line that was read.
    pub position: u64,
    /// The id of the last message of the agent before it.
    pub message: Option<String>,
}

/// Identifies a stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StopKey {
    /// The turn, as the CLI names it.
    pub turn: Option<String>,
    /// Whether a hook has already continued this turn.
    pub stop_hook_active: Option<bool>,
    /// A digest of the agent's last message.
    pub words: Option<String>,
}

impl StopKey {
    /// The key of a stop.
    pub fn of(turn: Option<&str>, stop_hook_active: Option<bool>, last_message: Option<&str>) -> Self {
        let digest = |text: &str| format!("{:x}", Md5::digest(text.as_bytes()));
        Self { turn: turn.map(ToOwned::to_owned), stop_hook_active, words: last_message.map(digest) }
    }
}

/// The answer to the last stop, so that a repeated report of the same stop gets the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastStop {
    /// The stop.
    pub key: StopKey,
    /// When it was decided.
    pub at: DateTime<Utc>,
    /// The decision.
    pub decision: Decision,
    /// The promise in the agent's text.
    pub found: PromiseFound,
    /// The message that the person received.
    #[serde(default)]
    pub message: Option<String>,
}

impl LastStop {
    /// Whether a hook that was called at `called` with this key reports the same stop. The CLI waits for all hooks of a
    /// stop, so the next stop comes after this decision.
    pub fn was_answered_for(&self, key: &StopKey, called: Option<DateTime<Utc>>) -> bool {
        self.key == *key && called.is_some_and(|called| called <= self.at)
    }
}

/// Block or allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The agent goes on.
    Block,
    /// The stop happens.
    Allow,
}

/// The result of the search for a promise in the agent's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromiseFound {
    /// The completion promise.
    Found,
    /// The completion promise, without work; it counts with a warning.
    Doubtful,
    /// The completion promise, without work; it does not count.
    Rejected,
    /// The pause promise.
    Pause,
    /// No promise.
    Missing,
    /// An API error instead of text.
    Error,
    /// Not searched: unreadable text, a running background task, or a start, cancel or resume.
    Unread,
}

crate::word_table!(
    pub PromiseFound,
    word,
    [
        (Found, "found"),
        (Doubtful, "doubtful"),
        (Rejected, "rejected"),
        (Pause, "pause"),
        (Missing, "missing"),
        (Error, "error"),
        (Unread, "unread")
    ]
);

/// A line of `log.jsonl`: one stop, a cancel or a resume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When.
    pub time: DateTime<Utc>,
    /// The turn that ended.
    pub iteration: u32,
    /// The promise that was found.
    pub promise: PromiseFound,
    /// The decision.
    pub decision: Decision,
    /// The status of the loop; `None` if it continues.
    pub status: Option<SessionStatus>,
    /// Why, in a sentence.
    pub why: String,
}

impl Book {
    /// Copies the values that are shown once the state file is gone.
    pub fn of(self, state: &SessionLoop) -> Self {
        Self {
            kind: Some(state.kind),
            iteration: Some(state.iteration),
            max_iterations: Some(state.max_iterations),
            ..self
        }
    }

    /// Reads a book. Invalid fields get their defaults, since no field is required.
    pub fn parse(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_else(|_| Self::sound(bytes).unwrap_or_default())
    }

    /// Reads each field by itself, and skips invalid ones.
    fn sound(bytes: &[u8]) -> Option<Self> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(bytes) else { return None };
        let is_sound =
            |field: &Map<String, Value>| serde_json::from_value::<Self>(field.clone().into()).is_ok();
        let fields: Map<String, Value> =
            fields.into_iter().map(|field| Map::from_iter([field])).filter(is_sound).flatten().collect();
        serde_json::from_value(fields.into()).ok()
    }

    /// The file's bytes.
    pub fn render(&self) -> Vec<u8> {
        // JSON cannot hold a path that is not UTF-8. The loop is then found by its directory alone.
        let without_paths = || Self {
            state_file: None,
            project_dir: None,
            mark: None,
            do_it: DoItOptions { contract: None, ..self.do_it.clone() },
            ..self.clone()
        };
        let mut bytes = serde_json::to_vec_pretty(self)
            .or_else(|_| serde_json::to_vec_pretty(&without_paths()))
            .unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

impl LogLine {
    /// The line of an event without a search for a promise; the agent may stop.
    pub fn unread(time: DateTime<Utc>, iteration: u32, why: impl Into<String>) -> Self {
        let (promise, decision) = (PromiseFound::Unread, Decision::Allow);
        Self { time, iteration, promise, decision, status: None, why: why.into() }
    }

    /// Reads a line; `None` if it is incomplete or not a log line.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// The line, with its end.
    pub fn render(&self) -> String {
        serde_json::to_string(self).map(|line| line + "\n").unwrap_or_default()
    }
}
