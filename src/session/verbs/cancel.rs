//! `swarm session cancel`: end a session's loop.

use crate::cli::SessionPlace;
use crate::error::Error;
use crate::out::{CommandResult, Out};
use crate::session::start::{self, named_session, project_dir};
use crate::session::store::SessionStore;

pub(super) fn run(sessions: &SessionStore, args: &SessionPlace, out: Out) -> CommandResult {
    let dir = project_dir(args.cwd.as_ref())?;
    match start::cancel_loop(sessions, named_session(args)?.as_ref(), &dir)? {
        Some(found) => {
            out.line(&format!("canceled: removed {}", found.path.display()))?;
            Ok(0)
        }
        None => Err(Error::invalid("no loop to cancel").hint("swarm session ls").into()),
    }
}
