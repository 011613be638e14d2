//! Which session, which directory and which loop a verb means.

use std::path::PathBuf;

use swarm_state::session::SessionId;

use super::start;
use super::store::{Located, Sessions};
use crate::cli::SessionPlace;
use crate::error::{Error, Result};

/// The session around this command, as Claude Code tells its children.
const AROUND: &str = "CLAUDE_CODE_SESSION_ID";

pub(super) fn around() -> Result<Option<SessionId>> {
    let Some(id) = std::env::var_os(AROUND).filter(|id| !id.is_empty()) else { return Ok(None) };
    let id = id.to_string_lossy();
    SessionId::new(&id).map(Some).map_err(|e| Error::invalid(format!("{AROUND}: {e}")))
}

pub(super) fn here(cwd: Option<&PathBuf>) -> Result<PathBuf> {
    match cwd {
        Some(dir) => Ok(dir.clone()),
        None => std::env::current_dir().map_err(|e| Error::system("cannot use the current directory", e)),
    }
}

/// The session that is named, else the one around this command.
pub(super) fn named(place: &SessionPlace) -> Result<Option<SessionId>> {
    place.session_id.clone().map_or_else(around, |session| Ok(Some(session)))
}

/// The session that is named or around this command, else the one that last had a loop in this directory.
pub(super) fn last(sessions: &Sessions, place: &SessionPlace) -> Result<Option<SessionId>> {
    Ok(match named(place)? {
        Some(session) => Some(session),
        None => sessions.last_around(&here(place.cwd.as_ref())?),
    })
}

pub(super) fn which(sessions: &Sessions, place: &SessionPlace) -> Result<Option<Located>> {
    start::chosen(sessions, named(place)?.as_ref(), &here(place.cwd.as_ref())?)
}
