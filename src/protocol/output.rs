//! What a worker printed: `peek`, `logs` and `ralph.logs`.
//!
//! Part of [the protocol](super), which says what may change.

use serde::{Deserialize, Serialize};

use super::is_no;

/// What `peek` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeekParams {
    /// The worker.
    pub name: String,
    /// How many lines, from the end of what is there (history included).
    pub lines: u32,
}

/// The answer to `peek`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peeked {
    /// The run they belong to.
    pub run: u64,
    /// The number of the first line, counted from the start of the run (0 on an alternate screen).
    pub first: u64,
    /// The lines, blank ones at the end trimmed, escapes stripped.
    pub lines: Vec<String>,
    /// The agent draws in place (text stands below its cursor): lines are a picture, not a stream.
    pub alternate: bool,
    /// False when the run is over and this is what it left.
    pub live: bool,
}

/// What `logs` and `ralph.logs` take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsParams {
    /// The worker.
    pub name: String,
    /// How many lines from the end; all (within the size of an answer) when absent.
    pub lines: Option<u32>,
    /// Runs before the current one too.
    pub history: bool,
    /// Only this iteration of a loop, or this run of a plain worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// From this place on, as an answer named it in `whole` or `next`, as much as fits; `lines` has no meaning then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
}

/// The line above what the run that lives has printed, in an answer to `logs` that has all runs.
pub const RUNNING: &str = "=== running ===";

/// Whether a line of a worker's log stands above what a run printed that is over.
pub fn is_run_header(line: &str) -> bool {
    line.starts_with("=== ") && line.contains(", ended ") && line.contains(", exit ")
}

/// Lines of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The lines, without their ends.
    pub lines: Vec<String>,
    /// Lines that were asked for are left out at the front, because the answer would be too long.
    pub truncated: bool,
    /// How many lines there are in all, over all runs that are kept; a follower asks again and prints what
    /// is beyond what it saw.
    pub total: u64,
    /// The last lines are a picture that changes in place: text stands below the agent's cursor.
    #[serde(default)]
    pub picture: bool,
    /// Of a truncated answer: where to ask from, for all of what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<u64>,
    /// Of an answer from a place: where the next one begins. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The last line goes on at the beginning of the next answer: it is too long for one. Absent for no.
    #[serde(default, skip_serializing_if = "is_no")]
    pub open: bool,
    /// The run that is current (or was the last): places of one run mean nothing in another. Absent where runs
    /// have no part in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
}
