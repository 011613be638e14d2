//! The keys of a state file: their names and order, how a value is written, and what a value means.

use chrono::{DateTime, Datelike, Timelike, Utc};

use super::FileError;
use super::front::{Front, Value};
use crate::promise::{OnNoWork, Promise};
use crate::session::words::shown;
use crate::session::{Kind, Owner, SessionId, SessionLoop};

/// A key that means something here.
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

impl Key {
    /// All, in the order of the file.
    pub(super) const ALL: [Self; 13] = [
        Self::Active,
        Self::Iteration,
        Self::MaxIterations,
        Self::CompletionPromise,
        Self::PausePromise,
        Self::StartedAt,
        Self::Project,
        Self::Branch,
        Self::SessionId,
        Self::Kind,
        Self::MinToolCalls,
        Self::OnPromiseNoWork,
        Self::NoDiffLimit,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Iteration => "iteration",
            Self::MaxIterations => "max_iterations",
            Self::CompletionPromise => "completion_promise",
            Self::PausePromise => "pause_promise",
            Self::StartedAt => "started_at",
            Self::Project => "project",
            Self::Branch => "branch",
            Self::SessionId => "session_id",
            Self::Kind => "kind",
            Self::MinToolCalls => "min_tool_calls",
            Self::OnPromiseNoWork => "on_promise_no_work",
            Self::NoDiffLimit => "no_diff_limit",
        }
    }

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// The value as it is written; `None` where the key has no place in the file. A do-it file has the
    /// documented keys alone, so ours stand there only when somebody wrote them.
    pub(super) fn text(self, state: &SessionLoop) -> Option<String> {
        let ours = |text: String, is_default: bool| (state.kind != Kind::DoIt || !is_default).then_some(text);
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

/// ISO 8601 with milliseconds, so that what happened in the same second is told apart.
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

/// What the lines say; the body is left empty.
pub(super) fn read(front: &Front<'_>) -> Result<SessionLoop, FileError> {
    let mut seen: Vec<&Value> = Vec::new();
    for value in front.lines.iter().filter_map(|line| line.value.as_ref()) {
        if seen.iter().any(|earlier| earlier.key == value.key) {
            return Err(value.error("it stands here a second time"));
        }
        seen.push(value);
    }
    let find = |key: Key| seen.iter().copied().find(|value| value.key == key);
    let need = |key: Key| {
        let what = || FileError { line: front.closing_line(), what: format!("`{}` is missing", key.name()) };
        find(key).ok_or_else(what)
    };
    let text = |key: Key| find(key).map(|value| value.text.clone()).unwrap_or_default();
    let kind = find(Key::Kind).map_or(Ok(Kind::DoIt), Value::kind)?;
    Ok(SessionLoop {
        kind,
        active: find(Key::Active).map_or(Ok(true), Value::truth)?,
        iteration: need(Key::Iteration)?.number()?,
        max_iterations: need(Key::MaxIterations)?.number()?,
        completion: need(Key::CompletionPromise)?.promise()?,
        pause: find(Key::PausePromise).map_or(Ok(None), Value::promise)?,
        started_at: DateTime::parse_from_rfc3339(&text(Key::StartedAt)).ok().map(|at| at.to_utc()),
        project: text(Key::Project),
        branch: text(Key::Branch),
        owner: find(Key::SessionId).map_or(Owner::Unclaimed, Value::owner),
        min_tool_calls: find(Key::MinToolCalls).map_or(Ok(kind.min_tool_calls()), Value::number)?,
        on_no_work: find(Key::OnPromiseNoWork).map_or(Ok(OnNoWork::default()), Value::no_work)?,
        no_diff_limit: find(Key::NoDiffLimit).map_or(Ok(0), Value::number)?,
        body: Vec::new(),
    })
}

impl Value {
    fn error(&self, what: &str) -> FileError {
        FileError { line: self.line, what: format!("`{}`: {what}", self.key.name()) }
    }

    fn bad(&self, expected: &str) -> FileError {
        self.error(&format!("{} is not {expected}", shown(&self.text)))
    }

    fn truth(&self) -> Result<bool, FileError> {
        match self.text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.bad("true or false")),
        }
    }

    fn number<N: std::str::FromStr>(&self) -> Result<N, FileError> {
        let is_number = self.text.bytes().all(|byte| byte.is_ascii_digit());
        self.text.parse().ok().filter(|_| is_number).ok_or_else(|| self.bad("a whole number"))
    }

    fn promise(&self) -> Result<Option<Promise>, FileError> {
        if self.text.is_empty() {
            return Ok(None);
        }
        Promise::new(&self.text).map(Some).map_err(|e| self.error(&e.to_string()))
    }

    fn owner(&self) -> Owner {
        SessionId::new(&self.text).map_or(Owner::Nobody, Owner::Session)
    }

    fn kind(&self) -> Result<Kind, FileError> {
        Kind::of(&self.text).ok_or_else(|| self.bad("ralph, ulw or do-it"))
    }

    fn no_work(&self) -> Result<OnNoWork, FileError> {
        OnNoWork::of(&self.text).ok_or_else(|| self.bad("reject, warn or accept"))
    }
}
