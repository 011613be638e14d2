//! Claude Code: the transcript, and the output of `-p` as `json` and `stream-json`.

use serde_json::Value;

use super::fields::{count_at, number_at, text_at};
use super::{TranscriptReader, Usage};

impl TranscriptReader {
    /// Reads a line of Claude Code; false for another line.
    pub(super) fn claude(&mut self, value: &Value) -> bool {
        match text_at(value, "/type") {
            Some("assistant") => self.claude_message(value),
            Some("result") if value.get("subtype").is_some() => self.claude_result(value),
            Some("cost-state") => {
                self.cost(&value["totalCostUSD"]);
            }
            Some("system") => self.session(text_at(value, "/session_id")),
            _ => return false,
        }
        true
    }

    fn claude_message(&mut self, value: &Value) {
        let is_sub_agent = value["isSidechain"] == true || value["parent_tool_use_id"].is_string();
        if is_sub_agent {
            return;
        }
        self.counts_calls();
        self.session(text_at(value, "/sessionId").or_else(|| text_at(value, "/session_id")));
        // The CLI's own message about a failed request has the form of an answer.
        let is_error = value["isApiErrorMessage"] == true;
        let message = &value["message"];
        for block in message["content"].as_array().map(Vec::as_slice).unwrap_or_default() {
            match (text_at(block, "/type"), text_at(block, "/text")) {
                (Some("text"), Some(text)) if is_error => self.failed(text, None),
                (Some("text"), Some(text)) => self.said(text),
                (Some("tool_use"), _) => self.called(text_at(block, "/id")),
                _ => {}
            }
        }
        match (text_at(message, "/id"), usage(&message["usage"])) {
            (Some(id), Some(usage)) => drop(self.messages.insert(id.to_owned(), usage)),
            (_, None) if message["usage"].is_object() => self.lost_usage = true,
            _ => {}
        }
    }

    fn claude_result(&mut self, value: &Value) {
        self.session(text_at(value, "/session_id"));
        self.cost(&value["total_cost_usd"]);
        if value["usage"].is_object() {
            self.sum_up(usage(&value["usage"]));
        }
        let text = text_at(value, "/result").unwrap_or_default();
        if value["is_error"] == true {
            let text = if text.is_empty() { text_at(value, "/subtype").unwrap_or_default() } else { text };
            self.failed(text, number_at(value, "/api_error_status"));
        } else {
            self.said(text);
        }
    }
}

fn usage(value: &Value) -> Option<Usage> {
    let made = count_at(value, "/cache_creation_input_tokens")?;
    Some(Usage {
        input: number_at(value, "/input_tokens")?.saturating_add(made),
        cached: count_at(value, "/cache_read_input_tokens")?,
        output: number_at(value, "/output_tokens")?,
    })
}
