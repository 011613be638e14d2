//! Parses the input of an agent's hooks: one JSON object.
//!
//! Claude Code and Codex send the same shape; Codex's `notify` has its own. Versions differ in their fields, so each
//! field is optional: an unknown field is ignored, and a field of an unexpected type counts as absent. Used by `swarm
//! hook EVENT` for session loops and for reports to the daemon. Deliberately absent: the reaction to the input.

use std::path::PathBuf;

use serde_json::Value;

use crate::engine::HookSignal;

/// The events that `swarm hook` knows, by the word on its command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEvent {
    /// The agent's turn is about to end.
    Stop,
    /// A sub-agent's turn is about to end.
    SubagentStop,
    /// The turn ended with an API error.
    StopFailure,
    /// A session started, or was resumed.
    SessionStart,
    /// A session ended.
    SessionEnd,
    /// The agent accepted a prompt.
    UserPromptSubmit,
    /// A tool is about to be called.
    PreToolUse,
    /// A tool needs a permission, or asks the user.
    PermissionRequest,
    /// A tool was called.
    PostToolUse,
    /// The context is full and about to be compacted.
    PreCompact,
    /// The agent asks for a person's attention.
    Notification,
    /// Codex's `notify` program.
    CodexNotify,
    /// Claude Code's status line is about to be shown.
    StatusLine,
}

crate::word_table!(
    pub HookEvent,
    word,
    of,
    [
        (Stop, "stop"),
        (SubagentStop, "subagent-stop"),
        (StopFailure, "stop-failure"),
        (SessionStart, "session-start"),
        (SessionEnd, "session-end"),
        (UserPromptSubmit, "user-prompt-submit"),
        (PreToolUse, "pre-tool-use"),
        (PermissionRequest, "permission-request"),
        (PostToolUse, "post-tool-use"),
        (PreCompact, "pre-compact"),
        (Notification, "notification"),
        (CodexNotify, "codex-notify"),
        (StatusLine, "status-line")
    ]
);

impl HookEvent {
    /// The event's name in a CLI's settings; `None` for an event that the settings do not have.
    pub fn setting(self) -> Option<&'static str> {
        match self {
            Self::Stop => Some("Stop"),
            Self::SubagentStop => Some("SubagentStop"),
            Self::StopFailure => Some("StopFailure"),
            Self::SessionStart => Some("SessionStart"),
            Self::SessionEnd => Some("SessionEnd"),
            Self::UserPromptSubmit => Some("UserPromptSubmit"),
            Self::PreToolUse => Some("PreToolUse"),
            Self::PermissionRequest => Some("PermissionRequest"),
            Self::PostToolUse => Some("PostToolUse"),
            Self::PreCompact => Some("PreCompact"),
            Self::Notification => Some("Notification"),
            Self::CodexNotify | Self::StatusLine => None,
        }
    }
}

/// The CLI that called the hook, derived from the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookHost {
    /// Claude Code, or a CLI with the same format.
    #[default]
    Claude,
    /// Codex.
    Codex,
}

/// The input of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookInput {
    /// The CLI that called the hook.
    pub host: HookHost,
    /// The CLI's own name of the event, whichever command its settings run.
    pub event: Option<String>,
    /// The session's own id; never empty.
    pub session: Option<String>,
    /// The path of the session's transcript.
    pub transcript: Option<PathBuf>,
    /// The session's working directory.
    pub cwd: Option<PathBuf>,
    /// The id of the turn (`prompt_id`, `turn_id`, `turn-id`).
    pub turn: Option<String>,
    /// Whether a Stop hook has already continued this turn.
    pub stop_hook_active: Option<bool>,
    /// The agent's last text, if the CLI reports it. Empty if its last message had no text.
    pub last_message: Option<String>,
    /// How many background tasks run; `None` if the CLI does not report it.
    pub background_tasks: Option<usize>,
    /// The tool that is called.
    pub tool: Option<String>,
    /// The arguments of that tool.
    pub tool_input: Option<Value>,
    /// The rules that the CLI offers for the permission of that call.
    pub suggestions: Option<Value>,
    /// The accepted prompt.
    pub prompt: Option<String>,
    /// The kind of a notification (`permission_prompt`, `idle_prompt`).
    pub notification: Option<String>,
    /// The text of a notification.
    pub message: Option<String>,
    /// The API's error.
    pub error: Option<String>,
    /// The sub-agent of the event. An empty one is the CLI's own helper (a compaction).
    pub agent: Option<String>,
    /// A sub-agent called the hook.
    pub is_sub_agent: bool,
    /// The reason why the session began or was compacted.
    pub cause: Option<String>,
}

impl HookInput {
    /// Parses the text from standard input or from an argument; `None` when it is not a JSON object.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(bytes) else { return None };
        let text =
            |names: &[&str]| names.iter().find_map(|name| fields.get(*name)?.as_str()).map(ToOwned::to_owned);
        let filled = |names: &[&str]| text(names).filter(|text| !text.trim().is_empty());
        let codex = ["turn_id", "turn-id", "thread-id"].iter().any(|name| fields.contains_key(*name));
        Some(Self {
            host: if codex { HookHost::Codex } else { HookHost::Claude },
            event: filled(&["hook_event_name"]),
            session: filled(&["session_id", "thread-id"]),
            transcript: filled(&["transcript_path"]).map(PathBuf::from),
            cwd: filled(&["cwd"]).map(PathBuf::from),
            turn: filled(&["prompt_id", "turn_id", "turn-id"]),
            stop_hook_active: fields.get("stop_hook_active").and_then(Value::as_bool),
            last_message: text(&["last_assistant_message", "last-assistant-message"]),
            background_tasks: fields
                .get("background_tasks")
                .and_then(Value::as_array)
                .map(|tasks| running(tasks)),
            tool: filled(&["tool_name"]),
            tool_input: fields.get("tool_input").cloned(),
            suggestions: fields.get("permission_suggestions").cloned(),
            prompt: text(&["prompt"]),
            notification: filled(&["notification_type"]),
            message: filled(&["message"]),
            error: fields.get("error").and_then(error_text),
            agent: text(&["agent_type"]),
            is_sub_agent: filled(&["agent_id"]).is_some(),
            cause: filled(&["source", "trigger", "reason"]),
        })
    }
}

/// Returns the signal of an event for the loop around the agent; `None` for an event that does not affect it. `held`:
/// a session loop of swarm continues the agent's turn.
pub fn signal_of(event: HookEvent, input: &HookInput, held: bool) -> Option<HookSignal> {
    match event {
        HookEvent::Stop if held || input.background_tasks.is_some_and(|tasks| tasks > 0) => {
            Some(HookSignal::Working)
        }
        HookEvent::Stop => Some(HookSignal::TurnOver),
        HookEvent::StopFailure => Some(HookSignal::ApiError(api_error(input))),
        // The CLI's own note that a task in the background has ended wakes the agent like a prompt.
        HookEvent::UserPromptSubmit if is_own_note(input) => Some(HookSignal::Working),
        HookEvent::UserPromptSubmit => Some(HookSignal::Prompt),
        HookEvent::PreToolUse => Some(HookSignal::ToolUsed(None)),
        HookEvent::PostToolUse => Some(HookSignal::ToolUsed(None)),
        HookEvent::PreCompact => Some(HookSignal::ContextSpent),
        HookEvent::Notification => match input.notification.as_deref() {
            // `idle_prompt` follows a minute after the end of a turn, which is usually reported before.
            Some("idle_prompt") => Some(HookSignal::Idle),
            Some("permission_prompt" | "elicitation_dialog") => Some(HookSignal::Asks(
                input.message.clone().unwrap_or_else(|| "it asks for a permission".to_owned()),
            )),
            Some(_) | None => None,
        },
        // Held instead of reported.
        HookEvent::PermissionRequest
        | HookEvent::SubagentStop
        | HookEvent::SessionStart
        | HookEvent::SessionEnd
        | HookEvent::StatusLine
        | HookEvent::CodexNotify => None,
    }
}

/// The kind and the message of an error, each if present.
fn api_error(input: &HookInput) -> String {
    let trimmed = |text: &Option<String>| text.as_deref().map(str::trim).unwrap_or_default().to_owned();
    match (trimmed(&input.error), trimmed(&input.last_message)) {
        (kind, said) if kind.is_empty() && said.is_empty() => "API error".to_owned(),
        (kind, said) if kind.is_empty() || said.contains(&kind) => said,
        (kind, said) if said.is_empty() => kind,
        (kind, said) => format!("{kind}: {said}"),
    }
}

fn is_own_note(input: &HookInput) -> bool {
    input.prompt.as_deref().is_some_and(|prompt| prompt.trim_start().starts_with("<task-notification>"))
}

fn running(tasks: &[Value]) -> usize {
    const OVER: [&str; 6] = ["completed", "failed", "killed", "cancelled", "stopped", "done"];
    let is_over = |task: &&Value| {
        task.get("status").and_then(Value::as_str).is_some_and(|status| OVER.contains(&status))
    };
    tasks.iter().filter(|task| !is_over(task)).count()
}

/// An error as a text, or as an object that has one.
fn error_text(error: &Value) -> Option<String> {
    let text = match error {
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => {
            ["message", "error", "type"].iter().find_map(|name| Some(fields.get(*name)?.as_str()?.to_owned()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    text.filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stop_inputs_of_claude_and_codex_are_read() {
        let claude = br#"{"session_id":"s1","transcript_path":"/h/s1.jsonl","cwd":"/p","prompt_id":"p1","permission_mode":"default",
            "effort":{"level":"medium"},"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"all done",
            "background_tasks":[{"id":"1","status":"running"},{"id":"2","status":"completed"}],"session_crons":[]}"#;
        let read = HookInput::parse(claude).unwrap();
        assert_eq!(
            (read.host, read.session.as_deref(), read.turn.as_deref()),
            (HookHost::Claude, Some("s1"), Some("p1"))
        );
        assert_eq!((read.stop_hook_active, read.last_message.as_deref()), (Some(false), Some("all done")));
        assert_eq!((read.background_tasks, read.transcript), (Some(1), Some("/h/s1.jsonl".into())));
        let codex = br#"{"session_id":"c1","turn_id":"t1","hook_event_name":"Stop","stop_hook_active":true,"last_assistant_message":"x"}"#;
        let read = HookInput::parse(codex).unwrap();
        assert_eq!(
            (read.host, read.turn.as_deref(), read.background_tasks),
            (HookHost::Codex, Some("t1"), None)
        );
        let notify = br#"{"type":"agent-turn-complete","thread-id":"c1","turn-id":"t2","cwd":"/p","last-assistant-message":"x"}"#;
        let read = HookInput::parse(notify).unwrap();
        assert_eq!(
            (read.host, read.session.as_deref(), read.turn.as_deref()),
            (HookHost::Codex, Some("c1"), Some("t2"))
        );
    }

    #[test]
    fn missing_empty_and_mistyped_fields_are_absent() {
        let odd = br#"{"session_id":"","stop_hook_active":"yes","last_assistant_message":7,"background_tasks":{},"error":{"message":"529"}}"#;
        let read = HookInput::parse(odd).unwrap();
        assert_eq!(read, HookInput { error: Some("529".into()), ..HookInput::default() });
        assert_eq!(HookInput::parse(b"[]"), None);
        assert_eq!(HookInput::parse(b""), None);
    }

    #[test]
    fn each_event_has_a_unique_name() {
        for event in HookEvent::ALL {
            assert_eq!(HookEvent::of(event.word()), Some(event));
        }
        assert_eq!(HookEvent::of("Stop"), None);
    }

    #[test]
    fn each_hook_event_gives_its_signal() {
        let plain = HookInput::default();
        let busy = HookInput { background_tasks: Some(1), ..plain.clone() };
        let note = HookInput { prompt: Some("<task-notification>x".into()), ..plain.clone() };
        let says = |kind: &str| HookInput {
            notification: Some(kind.into()),
            message: Some("may I".into()),
            ..plain.clone()
        };
        let failed = HookInput { error: Some("rate_limit".into()), ..plain.clone() };
        let worded = HookInput { last_message: Some("hit your limit".into()), ..failed.clone() };
        let rows = [
            (HookEvent::Stop, &plain, false, Some(HookSignal::TurnOver)),
            (HookEvent::Stop, &plain, true, Some(HookSignal::Working)),
            (HookEvent::Stop, &busy, false, Some(HookSignal::Working)),
            (HookEvent::StopFailure, &failed, false, Some(HookSignal::ApiError("rate_limit".into()))),
            (
                HookEvent::StopFailure,
                &worded,
                false,
                Some(HookSignal::ApiError("rate_limit: hit your limit".into())),
            ),
            (HookEvent::StopFailure, &plain, false, Some(HookSignal::ApiError("API error".into()))),
            (HookEvent::UserPromptSubmit, &plain, false, Some(HookSignal::Prompt)),
            (HookEvent::UserPromptSubmit, &note, false, Some(HookSignal::Working)),
            (HookEvent::PreToolUse, &plain, false, Some(HookSignal::ToolUsed(None))),
            (HookEvent::PostToolUse, &plain, false, Some(HookSignal::ToolUsed(None))),
            (HookEvent::PreCompact, &plain, false, Some(HookSignal::ContextSpent)),
            (
                HookEvent::Notification,
                &says("permission_prompt"),
                false,
                Some(HookSignal::Asks("may I".into())),
            ),
            (HookEvent::Notification, &says("idle_prompt"), false, Some(HookSignal::Idle)),
            (HookEvent::Notification, &says("auth_success"), false, None),
            (HookEvent::SubagentStop, &plain, false, None),
            (HookEvent::SessionStart, &plain, false, None),
            (HookEvent::CodexNotify, &plain, false, None),
        ];
        for (event, input, held, meant) in rows {
            assert_eq!(signal_of(event, input, held), meant, "{event:?}");
        }
    }

    proptest! {
        #[test]
        fn random_input_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = HookInput::parse(&bytes);
        }
    }
}
