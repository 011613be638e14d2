//! Reads the end of a transcript: what an agent printed and did since its last stop.
//!
//! A hook has a fraction of a second, and a transcript can have hundreds of megabytes. So it is read from the position
//! of the last stop, and never more than its last [`MAX_READ_BYTES`]. At the first stop, only lines since the loop's
//! start count. The host may write the transcript late: the caller waits for a missing or incomplete line. Used by
//! [`super::stop`]. Deliberately absent: the meaning of the text.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use memchr::{memchr, memmem};
use serde_json::Value;
use swarm_state::session::{Mark, QueueChange};
use swarm_state::transcript::TranscriptReader;

/// The maximum that is read. Parsing it takes a hundred milliseconds.
const MAX_READ_BYTES: u64 = 8 << 20;

/// The part of a transcript since the last stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranscriptTail {
    /// The agent's messages, in order.
    pub texts: Vec<String>,
    /// The number of tool calls.
    pub tool_calls: u64,
    /// Older lines since the last stop were not read.
    pub is_cut: bool,
    /// The agent's last answer is missing or incomplete.
    pub is_behind: bool,
    /// The part contains a prompt or an agent's message that is newer than the last stop.
    pub is_news: bool,
    /// The last message is an API error of the CLI.
    pub error: Option<String>,
    /// Changes to the queue of messages that the user sent while the agent worked.
    pub queue: Vec<QueueChange>,
    /// The position up to which it was read.
    pub mark: Mark,
}

/// The position to start reading a transcript from, and its expected end.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailStart<'a> {
    /// The position of the last stop.
    pub mark: Option<&'a Mark>,
    /// When the loop started. Without a mark, older lines do not count.
    pub began: Option<DateTime<Utc>>,
    /// The agent's last message, if the host passed it.
    pub last_message: Option<&'a str>,
}

/// Reads the end of a transcript.
pub fn read(path: &Path, from: TailStart<'_>) -> io::Result<TranscriptTail> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    // A transcript that became shorter is another one.
    let mark = from.mark.filter(|mark| mark.transcript == path && mark.position <= length);
    let wanted = mark.map_or(0, |mark| mark.position);
    let start = wanted.max(length.saturating_sub(MAX_READ_BYTES));
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![];
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    let mut tail = of_bytes(&bytes, start > wanted, TailStart { mark, ..from });
    tail.mark.position = start.saturating_add(tail.mark.position);
    path.clone_into(&mut tail.mark.transcript);
    Ok(tail)
}

/// Reads the last bytes of a transcript. The position in [`TranscriptTail::mark`] is relative to them. `is_cut`: they
/// start within a line, and older lines were not read.
pub(crate) fn of_bytes(bytes: &[u8], is_cut: bool, from: TailStart<'_>) -> TranscriptTail {
    let mark = from.mark;
    let mut lines = TranscriptLines::new(bytes);
    if is_cut {
        lines.skip_one();
    }
    let mut reading = Reading {
        reader: TranscriptReader::default(),
        tail: TranscriptTail { is_cut, ..TranscriptTail::default() },
        began: from.began.filter(|_| mark.is_none()),
        known: mark.and_then(|mark| mark.message.clone()),
        last_message: from.last_message,
        answered: false,
        has_last: false,
        started: false,
    };
    let mut message = reading.known.clone();
    while let Some(line) = lines.next() {
        if let Some(id) = reading.line(line) {
            message = Some(id);
        }
    }
    let is_behind = !reading.has_answer() || lines.has_torn_rest();
    let account = reading.reader.finish();
    let mut tail = reading.tail;
    tail.is_behind = is_behind;
    tail.texts = account.texts;
    tail.tool_calls = account.tool_calls.unwrap_or(0);
    tail.error = account.error.map(|error| error.message);
    tail.mark = Mark { transcript: PathBuf::new(), position: lines.taken as u64, message };
    tail
}

/// Splits into complete lines. The rest after the last line end counts when it is a complete object.
struct TranscriptLines<'a> {
    bytes: &'a [u8],
    taken: usize,
}

impl<'a> TranscriptLines<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, taken: 0 }
    }

    fn skip_one(&mut self) {
        let end = memchr(b'\n', self.bytes);
        self.taken = end.map_or(self.bytes.len(), |end| end + 1);
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        if let Some(end) = memchr(b'\n', rest) {
            self.taken += end + 1;
            return rest.get(..end);
        }
        let is_whole = serde_json::from_slice::<serde::de::IgnoredAny>(rest).is_ok();
        if !is_whole {
            return None;
        }
        self.taken = self.bytes.len();
        Some(rest)
    }

    fn has_torn_rest(&self) -> bool {
        !self.rest().trim_ascii().is_empty()
    }
}

struct Reading<'a> {
    reader: TranscriptReader,
    tail: TranscriptTail,
    began: Option<DateTime<Utc>>,
    /// The last message before the last stop.
    known: Option<String>,
    last_message: Option<&'a str>,
    /// The agent printed text or called a tool since the last prompt.
    answered: bool,
    /// The message that the host passed was read.
    has_last: bool,
    /// A line since the loop's start was read.
    started: bool,
}

impl Reading<'_> {
    /// Whether the agent's last answer was read. Late lines may follow the next prompt.
    fn has_answer(&self) -> bool {
        let has_words = self.last_message.is_some_and(|message| !message.trim().is_empty());
        if has_words { self.has_last } else { self.answered }
    }

    /// Reads a line; returns the id of the agent's message that the line belongs to.
    fn line(&mut self, bytes: &[u8]) -> Option<String> {
        // Most of a transcript is the output of tools, which is not parsed.
        if !is_of_interest(bytes) {
            return None;
        }
        let value: Value = serde_json::from_slice(bytes).ok()?;
        if value["isSidechain"] == true || self.is_too_old(&value) {
            return None;
        }
        if let Some(change) = queue_change(&value) {
            self.tail.queue.push(change);
        }
        if is_prompt(&value) {
            (self.tail.is_news, self.answered) = (true, false);
            return None;
        }
        // No turn ends with a tool's result: the agent's message about it is still missing.
        if value["type"] == "user" {
            self.answered = false;
            return None;
        }
        let (id, text) = answer(&value)?;
        // A thought precedes text or a tool call.
        self.answered |= !is_thought(&value);
        // The message of the previous stop may have been written late.
        let is_known = id.is_some() && id == self.known;
        let is_late = text.is_some() && text.as_deref() == self.last_message;
        let is_part =
            |text: &String| !text.is_empty() && self.last_message.is_some_and(|last| last.contains(text));
        self.has_last |= text.as_ref().is_some_and(is_part);
        self.tail.is_news |= !is_known && !is_late;
        self.reader.line(&String::from_utf8_lossy(bytes));
        id
    }

    /// Whether a line is older than the loop. Once one line counts, all later lines count.
    fn is_too_old(&mut self, value: &Value) -> bool {
        let at = value["timestamp"].as_str().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        let is_old = !self.started && self.began.zip(at).is_some_and(|(began, at)| at < began);
        self.started |= !is_old;
        // The lines that were not read are older still.
        self.tail.is_cut &= !is_old;
        is_old
    }
}

fn is_of_interest(bytes: &[u8]) -> bool {
    // All tool calls of Codex end with `_call`.
    const WORDS: [&[u8]; 4] = [b"assistant", b"\"user\"", b"_call\"", b"\"queue-operation\""];
    WORDS.iter().any(|word| memmem::find(bytes, word).is_some())
}

/// Returns the change to the CLI's message queue in a line, if there is one.
fn queue_change(value: &Value) -> Option<QueueChange> {
    if value["type"] == "user" {
        let is_typed = value["origin"]["kind"] == "human" && value["isMeta"] != true;
        return is_typed.then_some(QueueChange::Prompted);
    }
    if value["type"] != "queue-operation" {
        return None;
    }
    let text = || value["content"].as_str().unwrap_or_default().to_owned();
    match value["operation"].as_str()? {
        "enqueue" => Some(QueueChange::Added(text())),
        "dequeue" => Some(QueueChange::Submitted),
        "remove" | "popAll" => Some(QueueChange::Removed(text())),
        _ => None,
    }
}

/// Whether a line is an input to the agent: a prompt or a hook's feedback, and not a tool's result.
fn is_prompt(value: &Value) -> bool {
    if value["type"] == "user" {
        let blocks = value["message"]["content"].as_array();
        return !blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"));
    }
    let payload = &value["payload"];
    value["type"] == "response_item" && payload["type"] == "message" && payload["role"] == "user"
}

/// Whether a line of the agent contains only thoughts.
fn is_thought(value: &Value) -> bool {
    let is_part = |block: &Value| block["type"].as_str().is_some_and(|kind| kind.contains("thinking"));
    value["message"]["content"].as_array().is_some_and(|blocks| blocks.iter().all(is_part))
}

/// Returns the id and the text of a line of the agent; `None` for other lines.
fn answer(value: &Value) -> Option<(Option<String>, Option<String>)> {
    if value["type"] == "assistant" {
        let message = &value["message"];
        let text = message["content"].as_array()?.iter().find_map(|block| block["text"].as_str());
        return Some((message["id"].as_str().map(ToOwned::to_owned), text.map(ToOwned::to_owned)));
    }
    let payload = &value["payload"];
    if value["type"] != "response_item" {
        return None;
    }
    match payload["type"].as_str()? {
        "message" if payload["role"] == "assistant" => {
            let text = payload["content"].as_array()?.iter().find_map(|block| block["text"].as_str());
            Some((None, text.map(ToOwned::to_owned)))
        }
        "function_call" | "custom_tool_call" | "local_shell_call" => {
            Some((payload["call_id"].as_str().map(ToOwned::to_owned), None))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
