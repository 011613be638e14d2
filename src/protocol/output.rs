//! A worker's output: `peek`, `logs` and `ralph.logs`.

use serde::{Deserialize, Serialize};
use swarm_state::model::is_default;

/// The parameters of `peek`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeekParams {
    /// The worker.
    pub name: String,
    /// How many lines, from the end of the screen and its history.
    pub lines: u32,
    /// Keep colors and other attributes, as SGR sequences. A line goes on with the attributes of the line before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub styled: bool,
}

/// The answer to `peek`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peeked {
    /// The run that printed the lines.
    pub run: u64,
    /// The number of the first line, counted from the start of the run (0 on an alternate screen).
    pub first: u64,
    /// The lines, without empty lines at the end and without escapes other than those of `styled`.
    pub lines: Vec<String>,
    /// The agent draws in place (text is below its cursor): the lines are a screen, not a stream.
    pub alternate: bool,
    /// False if the run has ended and this is its last screen.
    pub live: bool,
}

/// The parameters of `logs` and `ralph.logs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogsParams {
    /// The worker.
    pub name: String,
    /// How many lines from the end; if absent, all that fit an answer.
    pub lines: Option<u32>,
    /// Include earlier runs.
    pub history: bool,
    /// Only this iteration of a loop, or this run of a plain worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Return what fits from this position on, which is `whole` or `next` of an answer; `lines` is ignored then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
}

/// The line above the current run's output, in an answer to `logs` with all runs.
pub const RUNNING: &str = "=== running ===";

/// Whether a line of a worker's log is the header of a finished run's output.
pub fn is_run_header(line: &str) -> bool {
    line.starts_with("=== ") && line.contains(", ended ") && line.contains(", exit ")
}

/// Lines of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The lines, without line ends.
    pub lines: Vec<String>,
    /// Earlier lines that were requested are missing, because the answer would be too long.
    pub truncated: bool,
    /// The number of lines in all stored runs. A follower calls again and prints those that it has not seen.
    pub total: u64,
    /// The last lines are a screen that changes in place: text is below the agent's cursor.
    #[serde(default)]
    pub picture: bool,
    /// In a truncated answer: the position to call from for everything that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<u64>,
    /// In an answer from a position: the position of the next answer. Absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The last line is too long for one answer and continues in the next one. Absent means no.
    #[serde(default, skip_serializing_if = "is_default")]
    pub open: bool,
    /// The current or last run: positions of one run are not valid in another. Absent where runs do not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
}
