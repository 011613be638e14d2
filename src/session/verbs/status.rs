//! `swarm session status`: show a session's loop.

use std::path::PathBuf;

use serde::Serialize;
use swarm_state::screen::printable;
use swarm_state::session::{Book, SessionLoop};

use super::ls::row;
use crate::cli::{PageFormat, SessionWhich};
use crate::error::Error;
use crate::out::{CommandResult, Failure, Out};
use crate::session::selection::{find_loop, last_session};
use crate::session::start;
use crate::session::store::{LocatedLoop, SessionStore};

/// One loop, as `--format json` prints it. A missing value is null.
#[derive(Debug, Serialize)]
pub(super) struct SessionLoopView {
    session: Option<String>,
    kind: String,
    active: bool,
    iteration: u32,
    max_iterations: u32,
    completion_promise: Option<String>,
    pause_promise: Option<String>,
    started_at: Option<String>,
    project: String,
    branch: String,
    state_file: Option<PathBuf>,
    status: Option<&'static str>,
    why: Option<String>,
    tool_calls: Option<u64>,
}

pub(super) fn view(path: Option<&PathBuf>, state: &SessionLoop, book: Option<&Book>) -> SessionLoopView {
    let token =
        |promise: &Option<swarm_state::promise::Promise>| promise.as_ref().map(|p| p.token().to_owned());
    SessionLoopView {
        session: state.session().map(ToString::to_string),
        kind: state.kind.word().to_owned(),
        active: state.active,
        iteration: state.iteration,
        max_iterations: state.max_iterations,
        completion_promise: token(&state.completion),
        pause_promise: token(&state.pause),
        started_at: state.started_at.map(|at| at.to_rfc3339()),
        project: state.project.clone(),
        branch: state.branch.clone(),
        state_file: path.cloned(),
        status: book.and_then(|book| book.status).map(swarm_state::session::SessionStatus::word),
        why: book.and_then(|book| book.why.clone()),
        tool_calls: book.map(|book| book.tool_calls),
    }
}

pub(super) fn run(sessions: &SessionStore, args: &SessionWhich, out: Out) -> CommandResult {
    let Some(found) = find_loop(sessions, &args.place)? else {
        let last = last_session(sessions, &args.place)?.map(|session| row(sessions, &session));
        let last = last.filter(|row| row.status.is_some());
        match (args.format, last) {
            (PageFormat::Json, last) => out.json(&last)?,
            (PageFormat::Text, Some(row)) => {
                out.lines(&[
                    format!("no loop; the last one ended: {}", ended(row.status, row.why.as_deref())),
                    format!("session: {}", row.session),
                ])?;
            }
            (PageFormat::Text, None) => out.line("no loop here")?,
        }
        return Ok(1);
    };
    let state = readable(&found)?;
    let book = state.session().map(|session| sessions.book(session)).unwrap_or_default();
    match args.format {
        PageFormat::Json => out.json(&view(Some(&found.path), state, Some(&book)))?,
        PageFormat::Text => out.lines(&[
            format!("{} loop, {}: {}", state.kind.word(), standing(state, &book), state.position()),
            format!("session: {}", printable(start::owner_of(state))),
            format!("state file: {}", found.path.display()),
            format!("tool calls so far: {}", book.tool_calls),
        ])?,
    }
    Ok(u8::from(!state.active))
}

fn readable(found: &LocatedLoop) -> Result<&SessionLoop, Failure> {
    match &found.file {
        Ok(file) => Ok(file.state()),
        Err(error) => Err(Error::invalid(format!("{} cannot be read: {error}", found.path.display()))
            .hint("fix that line, or remove the file to cancel the loop")
            .into()),
    }
}

fn standing(state: &SessionLoop, book: &Book) -> String {
    let ended = || ended(book.status.map(swarm_state::session::SessionStatus::word), book.why.as_deref());
    match (state.active, book.status) {
        (true, None) => "active".to_owned(),
        (true, Some(_)) => format!("let stop ({})", ended()),
        (false, Some(_)) => format!("paused ({})", ended()),
        (false, None) => "paused".to_owned(),
    }
}

fn ended(status: Option<&str>, why: Option<&str>) -> String {
    let status = status.unwrap_or_default();
    match why {
        Some(why) => format!("{status}: {}", printable(why)),
        None => status.to_owned(),
    }
}
