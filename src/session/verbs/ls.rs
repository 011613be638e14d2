//! `swarm session ls`: list the session loops.

use super::view::SessionView;
use crate::cli::{Format, ListFormatArg};
use crate::out::{CommandResult, Out, table};
use crate::session::store::SessionStore;

pub(super) fn run(sessions: &SessionStore, args: &ListFormatArg, out: Out) -> CommandResult {
    let known = sessions.known();
    let rows: Vec<_> = known.iter().map(|session| SessionView::of_session(sessions, session)).collect();
    match args.format {
        Format::Json => out.json_list(&rows)?,
        Format::Names => out.lines(&rows.iter().filter_map(|row| row.session.clone()).collect::<Vec<_>>())?,
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

fn cells(row: &SessionView) -> Vec<String> {
    let at = match (row.iteration, row.max_iterations) {
        (Some(at), None) => format!("{at}/unlimited"),
        (Some(at), Some(max)) => format!("{at}/{max}"),
        (None, _) => "-".to_owned(),
    };
    let standing = match (row.active, row.status) {
        (true, None) => "active",
        (_, Some(status)) => status,
        (false, None) if row.state_file.is_some() => "paused",
        (false, None) => "gone",
    };
    let project = row.project_dir.as_ref().map(|dir| dir.display().to_string()).unwrap_or_default();
    let kind = row.kind.unwrap_or("-").to_owned();
    vec![row.session.clone().unwrap_or_default(), kind, at, standing.to_owned(), project]
}
