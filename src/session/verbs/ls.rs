//! `swarm session ls`: list the session loops.

use std::path::PathBuf;

use serde::Serialize;
use swarm_state::session::SessionId;

use crate::cli::{Format, SessionLs};
use crate::out::{CommandResult, Out, table};
use crate::session::store::SessionStore;

/// One row of `ls`.
#[derive(Debug, Serialize)]
pub(super) struct SessionRow {
    pub(super) session: String,
    pub(super) project: Option<PathBuf>,
    pub(super) kind: Option<String>,
    pub(super) active: bool,
    pub(super) iteration: Option<u32>,
    pub(super) max_iterations: Option<u32>,
    pub(super) status: Option<&'static str>,
    pub(super) why: Option<String>,
}

pub(super) fn row(sessions: &SessionStore, session: &SessionId) -> SessionRow {
    let book = sessions.book(session);
    let found = sessions.find(session, &[]);
    let state = found.as_ref().and_then(|found| found.file.as_ref().ok()).map(|file| file.state());
    SessionRow {
        session: session.to_string(),
        project: book.project_dir.clone(),
        kind: state.map(|state| state.kind).or(book.kind).map(|kind| kind.word().to_owned()),
        active: state.is_some_and(|state| state.active),
        iteration: state.map(|state| state.iteration).or(book.iteration),
        max_iterations: state.map(|state| state.max_iterations).or(book.max_iterations),
        status: book.status.map(swarm_state::session::SessionStatus::word),
        why: book.why,
    }
}

pub(super) fn run(sessions: &SessionStore, args: &SessionLs, out: Out) -> CommandResult {
    let rows: Vec<SessionRow> = sessions.known().iter().map(|session| row(sessions, session)).collect();
    match args.format {
        Format::Json => out.json(&rows)?,
        Format::Names => out.lines(&rows.iter().map(|row| row.session.clone()).collect::<Vec<_>>())?,
        Format::Table if rows.is_empty() => {
            out.note("no session loops (to start one: swarm session start --help)")
        }
        Format::Table => {
            let cells: Vec<_> = rows.iter().map(cells).collect();
            let head = ["SESSION", "KIND", "ITER", "STATUS", "PROJECT"];
            out.lines(&table(&head, &cells, &[(4, 8), (0, 8)], out.width))?;
        }
    }
    Ok(0)
}

fn cells(row: &SessionRow) -> Vec<String> {
    let at = match (row.iteration, row.max_iterations) {
        (Some(at), Some(0)) => format!("{at}/unlimited"),
        (Some(at), Some(max)) => format!("{at}/{max}"),
        _ => "-".to_owned(),
    };
    let standing = match (row.active, row.status) {
        (true, None) => "active",
        (_, Some(status)) => status,
        (false, None) => "gone",
    };
    let project = row.project.as_ref().map(|dir| dir.display().to_string()).unwrap_or_default();
    let kind = row.kind.clone().unwrap_or_else(|| "-".to_owned());
    vec![row.session.clone(), kind, at, standing.to_owned(), project]
}
