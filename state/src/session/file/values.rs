//! Reads the values of a state file's keys.

use chrono::DateTime;

use super::front::{FileError, Front, Value};
use super::keys::Key;
use crate::promise::{OnNoWork, Promise};
use crate::session::state::{Owner, SessionId, SessionKind, SessionLoop};
use crate::words::excerpt;

/// Reads the values of the lines; the body is left empty.
pub(super) fn read(front: &Front<'_>) -> Result<SessionLoop, FileError> {
    let mut seen: Vec<&Value> = Vec::new();
    for value in &front.values {
        if seen.iter().any(|earlier| earlier.key == value.key) {
            return Err(value.error("the key appears twice"));
        }
        seen.push(value);
    }
    let find = |key: Key| seen.iter().copied().find(|value| value.key == key);
    let need = |key: Key| {
        let what = || FileError { line: front.closing_line(), what: format!("`{}` is missing", key.name()) };
        find(key).ok_or_else(what)
    };
    let text = |key: Key| find(key).map(|value| value.text.clone()).unwrap_or_default();
    let kind = find(Key::Kind).map_or(Ok(SessionKind::DoIt), Value::kind)?;
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
        self.error(&format!("{} is not {expected}", excerpt(&self.text)))
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
        Promise::new(&self.text).map(Some).map_err(|e| self.error(&e))
    }

    fn owner(&self) -> Owner {
        SessionId::new(&self.text).map_or(Owner::Nobody, Owner::Session)
    }

    fn kind(&self) -> Result<SessionKind, FileError> {
        SessionKind::of(&self.text).ok_or_else(|| self.bad("ralph, ulw or do-it"))
    }

    fn no_work(&self) -> Result<OnNoWork, FileError> {
        OnNoWork::of(&self.text).ok_or_else(|| self.bad("reject, warn or accept"))
    }
}
