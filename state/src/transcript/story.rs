//! An agent's transcript as plain text for a log: its messages and its tool calls, in order.
//!
//! Reads the transcripts of Claude Code and Codex. Prompts, tool results and sub-agents are left out: the log shows
//! what the agent itself printed and did. [`super::TranscriptReader`] is the strict reader that gates rely on; this one
//! is for people.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fields::text_at;
use crate::screen::text::strip;

/// The longest text of one tool call, characters.
const MAX_CALL_CHARS: usize = 500;

/// The longest story, bytes; of a longer one the end is kept.
const MAX_STORY_BYTES: usize = 256 << 10;

/// The fields of a tool's input that describe the call, the most specific first.
const CALL_FIELDS: [&str; 10] = [
    "/command",
    "/cmd",
    "/file_path",
    "/path",
    "/pattern",
    "/query",
    "/url",
    "/prompt",
    "/description",
    "/input",
];

/// Collects the story line by line.
#[derive(Debug, Default)]
pub struct TranscriptStory {
    entries: Vec<String>,
    /// Tool calls by their id, since a record may repeat one.
    calls: BTreeSet<String>,
}

impl TranscriptStory {
    /// Reads the next line of a transcript.
    pub fn line(&mut self, line: &str) {
        let Ok(value) = serde_json::from_str::<Value>(line.trim()) else { return };
        match text_at(&value, "/type") {
            Some("assistant") if value["isSidechain"] != true => self.claude_message(&value["message"]),
            Some("response_item") => self.codex_item(&value["payload"]),
            _ => {}
        }
    }

    /// The text, an empty line between two entries; `None` when the agent neither printed nor called anything.
    pub fn finish(self) -> Option<String> {
        let text = strip(&self.entries.join("\n\n"));
        let mut from = text.len().saturating_sub(MAX_STORY_BYTES);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        (!text.trim().is_empty()).then(|| text[from..].to_owned())
    }

    fn claude_message(&mut self, message: &Value) {
        for block in message["content"].as_array().map(Vec::as_slice).unwrap_or_default() {
            match text_at(block, "/type") {
                Some("text") => self.message(text_at(block, "/text").unwrap_or_default()),
                Some("tool_use") => {
                    self.call(text_at(block, "/id"), text_at(block, "/name"), &block["input"])
                }
                _ => {}
            }
        }
    }

    fn codex_item(&mut self, item: &Value) {
        let id = text_at(item, "/call_id").or_else(|| text_at(item, "/id"));
        let name = text_at(item, "/name");
        match text_at(item, "/type") {
            Some("message") if text_at(item, "/role") == Some("assistant") => {
                let blocks = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                let text: String = blocks.iter().filter_map(|block| text_at(block, "/text")).collect();
                self.message(&text);
            }
            Some("function_call") => {
                let arguments = text_at(item, "/arguments").unwrap_or_default();
                let input = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
                self.call(id, name, &input);
            }
            Some("custom_tool_call") => self.call(id, name, &item["input"]),
            Some("local_shell_call") => self.call(id, Some("shell"), &item["action"]),
            Some("web_search_call") => self.call(id, Some("web_search"), &item["action"]),
            _ => {}
        }
    }

    fn message(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && self.entries.last().map(String::as_str) != Some(text) {
            self.entries.push(text.to_owned());
        }
    }

    fn call(&mut self, id: Option<&str>, name: Option<&str>, input: &Value) {
        if id.is_none_or(|id| self.calls.insert(id.to_owned())) {
            let what = summary(input);
            self.entries.push(format!("[{}] {what}", name.unwrap_or("tool")).trim_end().to_owned());
        }
    }
}

/// Summarizes the input of a tool call in one text.
fn summary(input: &Value) -> String {
    let telling = CALL_FIELDS.iter().find_map(|path| input.pointer(path).filter(|value| !value.is_null()));
    let text = match telling.unwrap_or(input) {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(words) if words.iter().all(Value::is_string) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            telling.unwrap_or(input).to_string()
        }
    };
    match text.char_indices().nth(MAX_CALL_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(transcript: &str) -> Option<String> {
        let mut story = TranscriptStory::default();
        transcript.lines().for_each(|line| story.line(line));
        story.finish()
    }

    #[test]
    fn claude_transcript_text_has_messages_and_calls_without_results() {
        let text = story(
            r#"{"type":"user","message":{"role":"user","content":"the prompt"}}
{"type":"assistant","message":{"content":[{"type":"text","text":"I run it."}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test","description":"d"}}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","content":"a result"}]}}
{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"a sub-agent"}]}}
torn {"type":"assistant"
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Odd","input":{"n":1}},{"type":"text","text":"Done.\u001b[31m"}]}}"#,
        );
        assert_eq!(text.as_deref(), Some("I run it.\n\n[Bash] cargo test\n\n[Odd] {\"n\":1}\n\nDone."));
    }

    #[test]
    fn codex_transcript_text_has_messages_and_calls() {
        let text = story(
            r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"p"}]}}
{"type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"c1","arguments":"{\"cmd\":\"ls\"}"}}
{"type":"response_item","payload":{"type":"local_shell_call","call_id":"c2","action":{"command":["git","log"]}}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"All done"}]}}"#,
        );
        assert_eq!(text.as_deref(), Some("[exec_command] ls\n\n[shell] git log\n\nAll done"));
    }

    #[test]
    fn long_transcripts_are_bounded_and_empty_ones_omitted() {
        assert_eq!(story(""), None);
        assert_eq!(story(r#"{"type":"system","session_id":"s"}"#), None);
        let line = |n: usize| {
            let text = format!("{n} {}", "é".repeat(2000));
            serde_json::json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}})
                .to_string()
        };
        let all: Vec<String> = (0..200).map(line).collect();
        let text = story(&all.join("\n")).unwrap();
        assert!(text.len() <= MAX_STORY_BYTES && text.contains("\n\n199 é"));
        let long = "x".repeat(600);
        let call = format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","name":"Bash","input":{{"command":"{long}"}}}}]}}}}"#
        );
        assert_eq!(story(&call).unwrap().chars().count(), "[Bash] ".len() + MAX_CALL_CHARS + 1);
    }
}
