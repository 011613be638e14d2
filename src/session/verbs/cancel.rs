//! `swarm session cancel`: end a session's loop.

use crate::cli::SessionPlace;
use crate::error::Error;
use crate::out::{CommandResult, Out};
use crate::session::selection::{here, named};
use crate::session::start;
use crate::session::store::Sessions;

pub(super) fn run(sessions: &Sessions, args: &SessionPlace, out: Out) -> CommandResult {
    let dir = here(args.cwd.as_ref())?;
    match start::end(sessions, named(args)?.as_ref(), &dir)? {
        Some(found) => {
            out.line(&format!("cancelled: {} is removed", found.path.display()))?;
            Ok(0)
        }
        None => Err(Error::invalid("there is no loop to cancel").hint("swarm session ls").into()),
    }
}
