//! The keys of a state file: their names, their order, and how swarm writes a value.

use chrono::{DateTime, Datelike, Timelike, Utc};

use crate::promise::{OnNoWork, Promise};
use crate::session::state::{Owner, SessionKind, SessionLoop};

/// A known key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Active,
    Iteration,
    MaxIterations,
    CompletionPromise,
    PausePromise,
    StartedAt,
    Project,
    Branch,
    SessionId,
    Kind,
    MinToolCalls,
    OnPromiseNoWork,
    NoDiffLimit,
}

// In the order of the file.
crate::word_table!(
    pub(super) Key,
    name,
    of,
    [
        (Active, "active"),
        (Iteration, "iteration"),
        (MaxIterations, "max_iterations"),
        (CompletionPromise, "completion_promise"),
        (PausePromise, "pause_promise"),
        (StartedAt, "started_at"),
        (Project, "project"),
        (Branch, "branch"),
        (SessionId, "session_id"),
        (Kind, "kind"),
        (MinToolCalls, "min_tool_calls"),
        (OnPromiseNoWork, "on_promise_no_work"),
        (NoDiffLimit, "no_diff_limit")
    ]
);

impl Key {
    /// The value as it is written; `None` if the file does not have the key. A do-it file has only the documented
    /// keys, and swarm's own ones if they differ from the default.
    pub(super) fn text(self, state: &SessionLoop) -> Option<String> {
        let ours =
            |text: String, is_default: bool| (state.kind != SessionKind::DoIt || !is_default).then_some(text);
        match self {
            Self::Active => Some(state.active.to_string()),
            Self::Iteration => Some(state.iteration.to_string()),
            Self::MaxIterations => Some(state.max_iterations.to_string()),
            Self::CompletionPromise => Some(promise_text(state.completion.as_ref())),
            Self::PausePromise => Some(promise_text(state.pause.as_ref())),
            Self::StartedAt => Some(quoted(&state.started_at.map(time_text).unwrap_or_default())),
            Self::Project => Some(quoted(&state.project)),
            Self::Branch => Some(quoted(&state.branch)),
            Self::SessionId => match &state.owner {
                Owner::Unclaimed => None,
                Owner::Nobody => Some(quoted("")),
                Owner::Session(id) => Some(quoted(id.as_str())),
            },
            Self::Kind => ours(state.kind.word().to_owned(), true),
            Self::MinToolCalls => ours(state.min_tool_calls.to_string(), state.min_tool_calls == 0),
            Self::OnPromiseNoWork => {
                ours(state.on_no_work.word().to_owned(), state.on_no_work == OnNoWork::default())
            }
            Self::NoDiffLimit => ours(state.no_diff_limit.to_string(), state.no_diff_limit == 0),
        }
    }
}

fn promise_text(promise: Option<&Promise>) -> String {
    quoted(promise.map_or("", Promise::token))
}

/// In double quotes, with the escapes of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// ISO 8601 with milliseconds, which distinguish starts within a second.
fn time_text(at: DateTime<Utc>) -> String {
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        // A leap second counts on past a thousand.
        (at.nanosecond() / 1_000_000).min(999)
    )
}
