//! Reads an agent's transcript: its messages, tool calls, usage, cost and errors.
//!
//! One reader for every format that a known CLI writes: Claude Code's transcript and its `json` and `stream-json`
//! results, `codex exec --json` and Codex's own record of a session, `opencode run --format json`, Gemini's `json` and
//! `stream-json`. The format of each line is derived from the line itself. Unknown lines, incomplete lines and plain
//! text are ignored. Used by the gates (the promise and the work rule), the budgets and the Stop hook.
//! [`Account::texts`] holds the agent's own messages only, without prompts, tool results, texts of sub-agents and error
//! messages of the CLI. A number that the CLI does not report is `None`, never zero. Deliberately absent: finding and
//! reading the file, and decisions on its contents.

mod claude;
mod fields;
mod others;
mod story;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use fields::dollars;
pub use story::TranscriptStory;

use crate::quota::QuotaFigure;

/// The contents of a transcript.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The agent's own messages, in order, without sub-agents.
    pub texts: Vec<String>,
    /// Tool calls; `None` when the format does not record them.
    pub tool_calls: Option<u64>,
    /// Tokens used.
    pub usage: Option<Usage>,
    /// Cost, US dollars.
    pub cost: Option<f64>,
    /// The CLI's session id.
    pub session: Option<String>,
    /// The last error of the CLI or its API, if the agent did not continue after it.
    pub error: Option<ApiError>,
    /// The used parts of the account's usage limits, as the CLI recorded them last. Time 0 if the record has none.
    pub limits: Vec<QuotaFigure>,
}

/// Token counts, as the CLI reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens, without cached ones.
    pub input: u64,
    /// Cached input tokens.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}

/// An error of the CLI or of its API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiError {
    /// The CLI's message.
    pub message: String,
    /// The HTTP status, if reported.
    pub status: Option<u16>,
}

impl Usage {
    /// The tokens that a budget counts: input and output, without cached ones.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The difference to an earlier value of a running sum.
    pub fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            output: self.output.saturating_sub(before.output),
        }
    }

    fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
    }
}

impl Account {
    /// Reads a whole transcript.
    pub fn of(record: &str) -> Self {
        let mut reader = TranscriptReader::default();
        for line in record.lines() {
            reader.line(line);
        }
        reader.finish()
    }

    pub(crate) fn last_text(&self) -> Option<&str> {
        self.texts.last().map(String::as_str)
    }

    /// True when the text had no line in a known format.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads a transcript line by line. Only the agent's messages are kept in memory.
#[derive(Debug, Default)]
pub struct TranscriptReader {
    account: Account,
    /// Tool calls by their id, since a record may repeat one.
    calls: BTreeSet<String>,
    /// Usage by message: a record repeats it with each block of the message.
    messages: BTreeMap<String, Usage>,
    /// Usage that is a sum by itself: of turns, or of the whole session.
    summed: Option<Usage>,
    /// The whole session's usage, from the CLI's sum at its end.
    whole: Option<Usage>,
    /// A count of tokens could not be read, so their sum is unknown.
    lost_usage: bool,
    /// The same for a cost.
    lost_cost: bool,
    /// The last message came in pieces and may continue.
    in_delta: bool,
    /// An object that is spread over several lines.
    open: Option<String>,
}

/// Maximum size of an object that spans several lines, bytes.
const MAX_OBJECT_BYTES: usize = 16 << 20;

impl TranscriptReader {
    /// Reads the next line.
    pub fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        if let Some(open) = &mut self.open {
            open.push_str(line);
            open.push('\n');
            let ends = line.trim_end() == "}";
            if ends || open.len() > MAX_OBJECT_BYTES {
                let text = self.open.take().unwrap_or_default();
                self.object(&text);
            }
            return;
        }
        if trimmed == "{" {
            self.open = Some("{\n".into());
        } else if trimmed.starts_with(['{', '[']) {
            self.object(trimmed);
        }
    }

    /// Returns the contents.
    pub fn finish(self) -> Account {
        let by_message = (!self.messages.is_empty()).then(|| {
            let mut sum = Usage::default();
            self.messages.values().for_each(|usage| sum.add(*usage));
            sum
        });
        let parts = self.summed.or(by_message).filter(|_| !self.lost_usage);
        let cost = self.account.cost.filter(|_| !self.lost_cost);
        Account { usage: self.whole.or(parts), cost, ..self.account }
    }

    fn object(&mut self, text: &str) {
        // `claude -p --verbose --output-format json` and qwen-code print all their lines as one array.
        let values = match serde_json::from_str(text) {
            Ok(Value::Array(values)) => values,
            Ok(value) => vec![value],
            Err(_) => return,
        };
        for value in &values {
            if !self.claude(value) {
                self.other(value);
            }
        }
    }

    fn said(&mut self, text: &str) {
        // A result repeats the last message.
        if !text.is_empty() && self.account.last_text() != Some(text) {
            self.account.texts.push(text.to_owned());
        }
        self.account.error = None;
    }

    /// The record has tool calls, so their number is known, also if it is zero.
    fn counts_calls(&mut self) {
        self.account.tool_calls.get_or_insert(0);
    }

    fn called(&mut self, id: Option<&str>) {
        self.counts_calls();
        let new = id.is_none_or(|id| self.calls.insert(id.to_owned()));
        if let Some(calls) = self.account.tool_calls.as_mut().filter(|_| new) {
            *calls += 1;
        }
        self.in_delta = false;
        self.account.error = None;
    }

    fn failed(&mut self, message: &str, status: Option<u64>) {
        let status = status.and_then(|status| u16::try_from(status).ok());
        self.account.error = Some(ApiError { message: message.to_owned(), status });
    }

    fn session(&mut self, id: Option<&str>) {
        if let Some(id) = id {
            self.account.session = Some(id.to_owned());
        }
    }

    /// Keeps the limits of an event, if it has any.
    fn limits(&mut self, limits: Vec<QuotaFigure>) {
        if !limits.is_empty() {
            self.account.limits = limits;
        }
    }

    /// Adds a part of the usage; `None` if it could not be read.
    fn sum(&mut self, usage: Option<Usage>) {
        match usage {
            Some(usage) => self.summed.get_or_insert_default().add(usage),
            None => self.lost_usage = true,
        }
    }

    /// Replaces the usage by a sum of all so far. One that cannot be read makes the sum unknown.
    fn sum_up(&mut self, usage: Option<Usage>) {
        self.lost_usage = usage.is_none();
        self.whole = self.whole.into_iter().chain(usage).max_by_key(|usage| usage.total());
    }

    /// Reads the cost so far, if there is one. Sums never fall, so the highest counts: a tool can print a record too.
    fn cost(&mut self, reported: &Value) {
        if !reported.is_null() {
            let cost = dollars(reported);
            self.lost_cost = cost.is_none();
            self.account.cost = self.account.cost.into_iter().chain(cost).max_by(f64::total_cmp);
        }
    }
}
