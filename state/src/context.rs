//! How full an agent's context is, and which alert is due.
//!
//! The tokens of the agent's last request are the measure. Without them, the size of the transcript is an estimate, as
//! section 5a of the source document defines it. Used by `swarm hook post-tool-use`, which reads only the end of a
//! transcript; the engine uses the limits of `--max-context`. Deliberately absent: reading the file, and remembering
//! which alerts were given.

use serde_json::Value;

/// The window of a model that the table does not have, tokens.
pub const DEFAULT_WINDOW_TOKENS: u64 = 200_000;

/// The bytes of a transcript that the estimate counts as one token.
const BYTES_PER_TOKEN: u64 = 4;

/// A report of more tokens is not valid. It is ten times the largest window.
const MAX_REPORTED_TOKENS: u64 = 10_000_000;

/// The shortest text in base64 that counts as an image or another attachment.
const MIN_ATTACHMENT_BYTES: usize = 1024;

/// The window of the models in [`MILLION_TOKEN_MODELS`], and of any model with [`MILLION_TOKEN_SUFFIX`].
const MILLION_TOKENS: u64 = 1_000_000;

/// How Claude Code marks a model with a window of a million tokens.
const MILLION_TOKEN_SUFFIX: &str = "[1m]";

/// The models that always have a window of a million tokens, by the start of their names (Claude Code 2.1.332).
const MILLION_TOKEN_MODELS: [&str; 7] = [
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-5",
    "claude-fable-",
    "claude-mythos-",
];

/// The percentages at which an alert is due.
pub const ALERT_THRESHOLDS: [u8; 5] = [50, 60, 70, 80, 90];

/// After a drop of this many points below the last alert, the alerts above are due again.
const REARM_POINTS: u8 = 10;

/// How many points above `--max-context` swarm ends an iteration.
const END_POINTS: u8 = 15;

/// The facts about the context in the end of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextTail {
    /// The tokens of the last request and its answer.
    tokens: Option<u64>,
    window: Option<u64>,
    /// The bytes after a compaction that no request followed.
    since_compaction: Option<u64>,
}

impl ContextTail {
    /// Reads the end of a transcript of Claude Code or Codex, the last line first. An incomplete line is ignored.
    pub fn of(text: &str) -> Self {
        let mut end = text.len();
        for line in text.rsplit('\n') {
            let after = end;
            end = end.saturating_sub(line.len() + 1);
            // Most of a transcript is the output of tools, which is not parsed.
            if !["\"usage\"", "compact", "token_count"].iter().any(|word| line.contains(word)) {
                continue;
            }
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            if value["isSidechain"] == true {
                continue;
            }
            let found = claude(&value).or_else(|| codex(&value));
            if found.is_some() {
                return found.unwrap_or_default();
            }
            if value["subtype"] == "compact_boundary" || value["type"] == "compacted" {
                let later = text.get(after..).unwrap_or_default();
                let since_compaction = Some(later.len() as u64 - attachment_bytes(later));
                return Self { since_compaction, ..Self::default() };
            }
        }
        Self::default()
    }

    /// True if older lines add nothing.
    pub fn is_known(&self) -> bool {
        *self != Self::default()
    }
}

/// The bytes of images and other attachments in base64, whose size is not a measure of their tokens.
pub fn attachment_bytes(text: &str) -> u64 {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let words = text.as_bytes().split(|byte| !is_base64(byte)).filter(|word| {
        let has = |is: fn(&u8) -> bool| word.iter().any(is);
        word.len() >= MIN_ATTACHMENT_BYTES
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_digit)
    });
    words.map(|word| word.len() as u64).sum()
}

/// The last request in a line of Claude Code. An error message in the form of an answer has no model and no tokens.
fn claude(value: &Value) -> Option<ContextTail> {
    let message = &value["message"];
    let usage = message["usage"].as_object().filter(|_| value["type"] == "assistant")?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let input = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"].map(count);
    let input = input.into_iter().fold(0, u64::saturating_add);
    let tokens = input.saturating_add(count("output_tokens"));
    if input == 0 || tokens > MAX_REPORTED_TOKENS || value["isApiErrorMessage"] == true {
        return None;
    }
    let names = [&value["requestedModel"], &message["model"]].into_iter().filter_map(Value::as_str);
    let window = names.map(window_of).max();
    Some(ContextTail { tokens: Some(tokens), window, since_compaction: None })
}

/// The last request in a line of Codex, which records the window of its model.
fn codex(value: &Value) -> Option<ContextTail> {
    let payload = &value["payload"];
    let info = payload.get("info").filter(|_| payload["type"] == "token_count")?;
    let usage = &info["last_token_usage"];
    let tokens = usage["input_tokens"].as_u64()?.saturating_add(usage["output_tokens"].as_u64()?);
    if tokens > MAX_REPORTED_TOKENS {
        return None;
    }
    let window = info["model_context_window"].as_u64().filter(|window| *window > 0);
    Some(ContextTail { tokens: Some(tokens), window, since_compaction: None })
}

fn window_of(model: &str) -> u64 {
    let is_large = model.ends_with(MILLION_TOKEN_SUFFIX)
        || MILLION_TOKEN_MODELS.iter().any(|known| model.starts_with(known));
    if is_large { MILLION_TOKENS } else { DEFAULT_WINDOW_TOKENS }
}

/// How full a context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextUse {
    /// The tokens in it.
    pub tokens: u64,
    /// The tokens that it can hold; never 0.
    pub window: u64,
    /// The agent did not report its tokens, so they are estimated.
    pub is_estimate: bool,
    /// A lower value than before means that the context was compacted.
    can_drop: bool,
}

impl ContextUse {
    /// Combines a transcript's end with its `size` in bytes, without attachments. The user's `window` replaces the
    /// model's.
    pub fn of(tail: &ContextTail, size: u64, window: Option<u64>) -> Self {
        let estimate = tail.since_compaction.unwrap_or(size) / BYTES_PER_TOKEN;
        let tokens = tail.tokens.unwrap_or(estimate);
        let of_model = tail.window.unwrap_or(DEFAULT_WINDOW_TOKENS);
        // A model whose window was enlarged has the same name.
        let of_model =
            if tail.tokens.is_some_and(|used| used > of_model) { MILLION_TOKENS } else { of_model };
        Self {
            tokens,
            window: window.unwrap_or(of_model).max(1),
            is_estimate: tail.tokens.is_none(),
            can_drop: tail.is_known(),
        }
    }

    /// The part of the window that is used, 0 to 100.
    pub fn percent(self) -> u8 {
        let percent = self.tokens.saturating_mul(100) / self.window;
        u8::try_from(percent.min(100)).unwrap_or(100)
    }

    /// The alert that is due, by its threshold. `last` is the highest one that was given, 0 for none.
    pub fn due(self, last: u8) -> Option<u8> {
        highest_threshold(self.percent()).filter(|threshold| *threshold > last)
    }

    /// After a compaction, the highest alert that still counts as given, 0 for none; `None` without a compaction.
    pub fn rearmed(self, last: u8) -> Option<u8> {
        let dropped = self.can_drop && self.percent().saturating_add(REARM_POINTS) <= last;
        dropped.then(|| highest_threshold(self.percent()).unwrap_or(0))
    }

    /// The alert for the agent. `with_tasks`: the agent works on a task list, whose files the text names.
    pub fn alert(self, threshold: u8, with_tasks: bool) -> String {
        let (severity, of_tasks, plain) = match threshold {
            ..70 => ("NOTICE", NOTICE_TASKS, NOTICE),
            70..90 => ("WARNING", WARNING_TASKS, WARNING),
            90.. => ("CRITICAL", CRITICAL_TASKS, CRITICAL),
        };
        let (percent, Self { tokens, window, .. }) = (self.percent(), self);
        let about = if self.is_estimate { "about " } else { "" };
        let text = if with_tasks { of_tasks } else { plain };
        format!("Context {severity}: {percent}% used ({about}{tokens} of {window} tokens). {text}")
    }

    /// The message for an agent that has reached `--max-context`.
    pub fn nudge(self, max: u8) -> String {
        let percent = self.percent();
        let end = match end_at(max) {
            Some(end) => format!("when {end}% is used"),
            None => "when the context is full".to_owned(),
        };
        format!(
            "Context LIMIT: {percent}% used; this iteration may use {max}%. Wrap up now: commit your work, then stop. \
             swarm ends this iteration {end}."
        )
    }
}

fn highest_threshold(percent: u8) -> Option<u8> {
    ALERT_THRESHOLDS.into_iter().rfind(|threshold| *threshold <= percent)
}

/// The percentage at which swarm ends an iteration with this `--max-context`; `None` if a compaction comes first.
pub(crate) fn end_at(max: u8) -> Option<u8> {
    max.checked_add(END_POINTS).filter(|end| *end <= 100)
}

const NOTICE_TASKS: &str = "Be mindful of remaining space. Plan to finish your current task within this session. If \
     you discover follow-up work, add new stories to tasks.json — the next iteration will pick them up.";

const WARNING_TASKS: &str = "Finish your current task and commit soon. Do not start additional tasks. If work remains, \
     create new stories in tasks.json for the next iteration and capture any implementation details or insights in \
     progress.txt so the next iteration has full context.";

const CRITICAL_TASKS: &str = "Wrap up immediately. Do NOT start new work. Instead: (1) create tasks in tasks.json for \
     any remaining work, (2) write implementation details, insights, and handoff notes to progress.txt, (3) commit all \
     changes, (4) stop. The next iteration will continue from where you left off.";

const NOTICE: &str = "Be mindful of remaining space. Plan to finish your current task within this session.";

const WARNING: &str = "Finish your current task and commit soon. Do not start additional tasks. If work remains, \
     write down what is left and what you learned, so that a later session can continue.";

const CRITICAL: &str = "Wrap up immediately. Do NOT start new work. Instead: (1) write down the remaining work, \
     implementation details and insights, (2) commit all changes, (3) stop. A later session can continue from there.";

#[cfg(test)]
mod tests;
