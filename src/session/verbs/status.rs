//! `swarm session status`: show a session's loop.

use swarm_state::screen::printable;
use swarm_state::session::{Book, SessionLoop};

use super::view::SessionView;
use crate::cli::{PageFormat, SessionWhich};
use crate::out::{CommandResult, Out};
use crate::session::start::{self, find_named_loop, last_session, readable};
use crate::session::store::SessionStore;

pub(super) fn run(sessions: &SessionStore, args: &SessionWhich, out: Out) -> CommandResult {
    let Some(found) = find_named_loop(sessions, &args.place)? else {
        let last =
            last_session(sessions, &args.place)?.map(|session| SessionView::of_session(sessions, &session));
        let last = last.filter(|last| last.status.is_some());
        match (args.format, last) {
            (PageFormat::Json, last) => out.json(&last.unwrap_or_default())?,
            (PageFormat::Text, Some(last)) => {
                out.lines(&[
                    format!("no loop; the last one ended: {}", ended(last.status, last.reason.as_deref())),
                    format!("session: {}", last.session.unwrap_or_default()),
                ])?;
            }
            (PageFormat::Text, None) => out.line("no loop here")?,
        }
        return Ok(1);
    };
    let state = readable(&found)?;
    let book = state.session().map(|session| sessions.book(session)).unwrap_or_default();
    match args.format {
        PageFormat::Json => out.json(&SessionView::of(&found.path, state, Some(&book)))?,
        PageFormat::Text => out.lines(&[
            format!("{} loop, {}: {}", state.kind.word(), standing(state, &book), state.position()),
            format!("session: {}", printable(start::owner_of(state))),
            format!("state file: {}", found.path.display()),
            format!("tool calls so far: {}", book.tool_calls),
        ])?,
    }
    Ok(u8::from(!state.active))
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
