//! The end of a transcript: what an agent said and did since its last stop.
//!
//! A hook has a fraction of a second, and a transcript can be hundreds of megabytes. So it is read from where the last
//! stop left it, and never more than its last [`MOST`] bytes; of a first stop only what was written since the loop
//! began counts. Its host may be behind: a line that is not there yet, or half there, is waited for by the caller.
//! Used by [`super::stops`]. Deliberately absent: what the words mean.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use memchr::{memchr, memmem};
use serde_json::Value;
use swarm_state::session::{Mark, QueueChange};
use swarm_state::transcript::TranscriptReader;

/// The most that is read, bytes: parsing it takes a hundred milliseconds.
const MOST: u64 = 8 << 20;

/// What a transcript says since the last stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    /// The agent's own words, in order.
    pub texts: Vec<String>,
    /// Tools that it called.
    pub tool_calls: u64,
    /// Older lines since the last stop were left out.
    pub is_cut: bool,
    /// The agent's last answer is not in it yet, or not whole.
    pub is_behind: bool,
    /// It has a prompt, or a message of the agent that the last stop did not see.
    pub is_news: bool,
    /// The last message is the CLI's own, about its API.
    pub error: Option<String>,
    /// What happened to the queue of messages that the person sent while the agent worked.
    pub queue: Vec<QueueChange>,
    /// How far it was read.
    pub mark: Mark,
}

/// From where a transcript is read, and what is already known of its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct From<'a> {
    /// Where the last stop left it.
    pub mark: Option<&'a Mark>,
    /// When the loop began: without a mark, older lines do not count.
    pub began: Option<DateTime<Utc>>,
    /// The agent's last words, where the host told them.
    pub last_message: Option<&'a str>,
}

/// Reads it.
///
/// # Errors
/// The system's own.
pub fn read(path: &Path, from: From<'_>) -> io::Result<Tail> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    // One that is shorter than it was is another one.
    let mark = from.mark.filter(|mark| mark.transcript == path && mark.position <= length);
    let wanted = mark.map_or(0, |mark| mark.position);
    let start = wanted.max(length.saturating_sub(MOST));
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![];
    file.take(MOST).read_to_end(&mut bytes)?;
    let mut tail = of_bytes(&bytes, start > wanted, From { mark, ..from });
    tail.mark.position = start.saturating_add(tail.mark.position);
    path.clone_into(&mut tail.mark.transcript);
    Ok(tail)
}

/// What its last bytes say; the position in [`Tail::mark`] is one in them. `is_cut`: they begin within a line, and older
/// ones were left out.
pub(crate) fn of_bytes(bytes: &[u8], is_cut: bool, from: From<'_>) -> Tail {
    let mark = from.mark;
    let mut lines = Lines::new(bytes);
    if is_cut {
        lines.skip_one();
    }
    let mut reading = Reading {
        reader: TranscriptReader::default(),
        tail: Tail { is_cut, ..Tail::default() },
        began: from.began.filter(|_| mark.is_none()),
        known: mark.and_then(|mark| mark.message.clone()),
        last_message: from.last_message,
        answered: false,
        heard: false,
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

/// Whole lines; what stands behind the last line end counts when it is a whole object.
struct Lines<'a> {
    bytes: &'a [u8],
    taken: usize,
}

impl<'a> Lines<'a> {
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
    tail: Tail,
    began: Option<DateTime<Utc>>,
    /// The message that the last stop saw last.
    known: Option<String>,
    last_message: Option<&'a str>,
    /// The agent spoke or acted since the last prompt.
    answered: bool,
    /// It said what the host told of.
    heard: bool,
    /// A line of the loop's time was seen.
    started: bool,
}

impl Reading<'_> {
    /// Whether the agent's last answer was read. Lines may come late and then stand behind the next prompt.
    fn has_answer(&self) -> bool {
        let has_words = self.last_message.is_some_and(|told| !told.trim().is_empty());
        if has_words { self.heard } else { self.answered }
    }

    /// Takes a line; gives the id of the agent's message that it belongs to.
    fn line(&mut self, bytes: &[u8]) -> Option<String> {
        // Nearly all of a transcript is what tools printed; none of it is parsed.
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
        // No turn ends with what a tool gave: the agent's words on it are still to come.
        if value["type"] == "user" {
            self.answered = false;
            return None;
        }
        let (id, text) = answer(&value)?;
        // A thought comes before words or a call.
        self.answered |= !is_thought(&value);
        // The words that the stop before was told may have come late.
        let is_known = id.is_some() && id == self.known;
        let is_late = text.is_some() && text.as_deref() == self.last_message;
        let is_part =
            |text: &String| !text.is_empty() && self.last_message.is_some_and(|told| told.contains(text));
        self.heard |= text.as_ref().is_some_and(is_part);
        self.tail.is_news |= !is_known && !is_late;
        self.reader.line(&String::from_utf8_lossy(bytes));
        id
    }

    /// Of a transcript that goes back further than the loop. Once one line counts, all that follow do.
    fn is_too_old(&mut self, value: &Value) -> bool {
        let at = value["timestamp"].as_str().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        let is_old = !self.started && self.began.zip(at).is_some_and(|(began, at)| at < began);
        self.started |= !is_old;
        // What was left out is older still, and none of the loop's.
        self.tail.is_cut &= !is_old;
        is_old
    }
}

fn is_of_interest(bytes: &[u8]) -> bool {
    // All that Codex calls a call ends like the last.
    const WORDS: [&[u8]; 4] = [b"assistant", b"\"user\"", b"_call\"", b"\"queue-operation\""];
    WORDS.iter().any(|word| memmem::find(bytes, word).is_some())
}

/// What a line says of the CLI's queue of messages; `None` for nothing.
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

/// Whether a line is something that the agent was told: a prompt, a hook's feedback; no tool's result.
fn is_prompt(value: &Value) -> bool {
    if value["type"] == "user" {
        let blocks = value["message"]["content"].as_array();
        return !blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"));
    }
    let payload = &value["payload"];
    value["type"] == "response_item" && payload["type"] == "message" && payload["role"] == "user"
}

/// Whether a line of the agent's has nothing but thoughts.
fn is_thought(value: &Value) -> bool {
    let is_part = |block: &Value| block["type"].as_str().is_some_and(|kind| kind.contains("thinking"));
    value["message"]["content"].as_array().is_some_and(|blocks| blocks.iter().all(is_part))
}

/// The id and the text of a line of the agent's; `None` when it is none.
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
