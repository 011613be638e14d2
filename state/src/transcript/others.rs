//! Codex, opencode and Gemini, as their non-interactive modes print JSON, and the record that Codex keeps of a
//! session ("rollout").

use chrono::DateTime;
use serde_json::Value;

use super::fields::{count_at, dollars, number_at, text_at};
use super::{TranscriptReader, Usage};
use crate::quota::{claude_event_limits, codex_limits};

impl TranscriptReader {
    /// Reads a line of one of the other CLIs.
    pub(super) fn other(&mut self, value: &Value) {
        match text_at(value, "/type") {
            Some("thread.started") => {
                self.counts_calls();
                self.session(text_at(value, "/thread_id"));
            }
            Some("item.completed") => self.codex_item(&value["item"]),
            Some("turn.completed") => {
                self.sum(codex_usage(&value["usage"]));
                self.account.error = None;
            }
            Some("turn.failed") => {
                self.failed(text_at(value, "/error/message").unwrap_or("the turn failed"), None);
            }
            Some("session_meta") => {
                self.counts_calls();
                self.session(text_at(value, "/payload/id"));
            }
            Some("response_item") => self.rollout_item(&value["payload"]),
            Some("event_msg") => {
                let at = text_at(value, "/timestamp").and_then(|at| DateTime::parse_from_rfc3339(at).ok());
                self.limits(codex_limits(
                    &value["payload"]["rate_limits"],
                    at.map_or(0, |at| at.timestamp()),
                ));
                self.rollout_event(&value["payload"]);
            }
            Some("rate_limit_event") => self.limits(claude_event_limits(&value["rate_limit_info"])),
            Some("error") => self.stated_error(value),
            Some("text") => {
                self.session(text_at(value, "/sessionID"));
                self.said(text_at(value, "/part/text").unwrap_or_default());
            }
            Some("step_start") => self.counts_calls(),
            Some("tool_use") => self.tool(value),
            Some("step_finish") => self.opencode_step(value),
            Some("init") => {
                self.counts_calls();
                self.session(text_at(value, "/session_id"));
            }
            Some("message") if text_at(value, "/role") == Some("assistant") => {
                self.gemini_said(value);
            }
            Some("result") => self.gemini_stats(&value["stats"]),
            None if value.get("response").is_some() && value.get("stats").is_some() => self.gemini(value),
            _ => {}
        }
    }

    fn codex_item(&mut self, item: &Value) {
        self.counts_calls();
        match text_at(item, "/type") {
            Some("agent_message") => self.said(text_at(item, "/text").unwrap_or_default()),
            Some("error") => self.failed(text_at(item, "/message").unwrap_or_default(), None),
            Some("command_execution" | "file_change" | "mcp_tool_call" | "web_search") => {
                self.called(text_at(item, "/id"));
            }
            _ => {}
        }
    }

    /// Reads an item that the model sent. A tool's output is a separate item and is not read here.
    fn rollout_item(&mut self, item: &Value) {
        match text_at(item, "/type") {
            Some("message") if text_at(item, "/role") == Some("assistant") => {
                let blocks = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                let text: String = blocks.iter().filter_map(|block| text_at(block, "/text")).collect();
                self.said(&text);
            }
            Some("function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call") => {
                self.called(["/call_id", "/id"].iter().find_map(|path| text_at(item, path)));
            }
            _ => {}
        }
    }

    fn rollout_event(&mut self, event: &Value) {
        match text_at(event, "/type") {
            // A running sum over the whole session.
            Some("token_count") => {
                let sum = &event["info"]["total_token_usage"];
                if sum.is_object() {
                    self.sum_up(codex_usage(sum));
                }
            }
            Some("task_complete") if event["error"].is_object() => {
                let info = &event["error"]["codex_error_info"];
                let status = number_at(info, "/http_status_code").or_else(|| {
                    info.as_object()?.values().find_map(|kind| number_at(kind, "/http_status_code"))
                });
                // The name of a kind that has no status of its own.
                let status = status.or_else(|| match info.as_str()? {
                    "internal_server_error" | "server_overloaded" => Some(503),
                    "unauthorized" => Some(401),
                    "usage_limit_exceeded" => Some(429),
                    _ => None,
                });
                self.failed(text_at(event, "/error/message").unwrap_or("the turn failed"), status);
            }
            _ => {}
        }
    }

    fn stated_error(&mut self, value: &Value) {
        let message = ["/error/data/message", "/error/message", "/message", "/error/name"]
            .iter()
            .find_map(|path| text_at(value, path))
            .unwrap_or("an error without a message");
        self.failed(message, number_at(value, "/error/data/statusCode"));
    }

    fn tool(&mut self, value: &Value) {
        let id = ["/part/callID", "/part/id", "/tool_id"].iter().find_map(|path| text_at(value, path));
        self.called(id);
    }

    fn opencode_step(&mut self, value: &Value) {
        self.session(text_at(value, "/sessionID"));
        if let Some(tokens) = value.pointer("/part/tokens") {
            self.sum(opencode_usage(tokens));
        }
        if let Some(cost) = value.pointer("/part/cost").filter(|cost| !cost.is_null()) {
            match dollars(cost) {
                Some(cost) => self.account.cost = Some(self.account.cost.unwrap_or(0.0) + cost),
                None => self.lost_cost = true,
            }
        }
    }

    /// A stream has messages as a whole, or in pieces with `delta`.
    fn gemini_said(&mut self, value: &Value) {
        let text = text_at(value, "/content").unwrap_or_default();
        match self.account.texts.last_mut().filter(|_| value["delta"] == true && self.in_delta) {
            Some(last) => last.push_str(text),
            None => self.said(text),
        }
        self.in_delta = value["delta"] == true;
    }

    fn gemini(&mut self, value: &Value) {
        self.session(text_at(value, "/session_id"));
        self.said(text_at(value, "/response").unwrap_or_default());
        self.gemini_stats(&value["stats"]);
        if let Some(message) = text_at(value, "/error/message") {
            self.failed(message, number_at(value, "/error/code"));
        }
    }

    fn gemini_stats(&mut self, stats: &Value) {
        if let Some(calls) = number_at(stats, "/tools/totalCalls").or_else(|| number_at(stats, "/tool_calls"))
        {
            self.account.tool_calls = Some(calls);
        }
        for model in stats["models"].as_object().into_iter().flat_map(serde_json::Map::values) {
            self.sum(gemini_usage(model));
        }
    }
}

fn codex_usage(usage: &Value) -> Option<Usage> {
    let cached = count_at(usage, "/cached_input_tokens")?;
    let input = count_at(usage, "/input_tokens")?.saturating_sub(cached);
    Some(Usage { input, cached, output: count_at(usage, "/output_tokens")? })
}

fn opencode_usage(tokens: &Value) -> Option<Usage> {
    let input = count_at(tokens, "/input")?.saturating_add(count_at(tokens, "/cache/write")?);
    let output = count_at(tokens, "/output")?.saturating_add(count_at(tokens, "/reasoning")?);
    Some(Usage { input, cached: count_at(tokens, "/cache/read")?, output })
}

fn gemini_usage(model: &Value) -> Option<Usage> {
    let cached = count_at(model, "/tokens/cached")?;
    let input = count_at(model, "/tokens/prompt")?.saturating_sub(cached);
    let output = count_at(model, "/tokens/candidates")?.saturating_add(count_at(model, "/tokens/thoughts")?);
    Some(Usage { input, cached, output })
}
