//! Resolves which session, directory and loop a verb means.

use std::path::PathBuf;

use swarm_state::session::SessionId;

use super::start;
use super::store::{LocatedLoop, SessionStore};
use crate::cli::SessionPlace;
use crate::error::{Error, Result};

/// The variable in which Claude Code passes its session id to its child processes.
const SESSION_VARIABLE: &str = "CLAUDE_CODE_SESSION_ID";

pub(super) fn current_session() -> Result<Option<SessionId>> {
    let Some(id) = std::env::var_os(SESSION_VARIABLE).filter(|id| !id.is_empty()) else { return Ok(None) };
    let id = id.to_string_lossy();
    SessionId::new(&id).map(Some).map_err(|e| Error::invalid(format!("{SESSION_VARIABLE}: {e}")))
}

pub(super) fn project_dir(cwd: Option<&PathBuf>) -> Result<PathBuf> {
    match cwd {
        Some(dir) => Ok(dir.clone()),
        None => std::env::current_dir().map_err(|e| Error::system("cannot use the current directory", e)),
    }
}

/// Returns the session of `--session-id`, else the one that this command runs in.
pub(super) fn named_session(place: &SessionPlace) -> Result<Option<SessionId>> {
    place.session_id.clone().map_or_else(current_session, |session| Ok(Some(session)))
}

/// As [`named_session`], else the session that last had a loop in this directory.
pub(super) fn last_session(sessions: &SessionStore, place: &SessionPlace) -> Result<Option<SessionId>> {
    Ok(match named_session(place)? {
        Some(session) => Some(session),
        None => sessions.last_around(&project_dir(place.cwd.as_ref())?),
    })
}

pub(super) fn find_loop(sessions: &SessionStore, place: &SessionPlace) -> Result<Option<LocatedLoop>> {
    start::find_loop(sessions, named_session(place)?.as_ref(), &project_dir(place.cwd.as_ref())?)
}
