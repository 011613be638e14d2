//! `swarm session`: start, show and cancel loops within agent sessions, one file a verb.
//!
//! No daemon is needed: the state is in the project and in SWARM_DIR (see [`super::store`]).

use crate::cli::SessionCommand;
use crate::out::{CommandResult, Out};
use crate::paths::Paths;
use crate::session::store::SessionStore;

mod cancel;
mod logs;
mod ls;
mod start;
mod status;
mod view;

/// Carries out a verb of `swarm session`.
pub fn run(command: SessionCommand, out: Out) -> CommandResult {
    let sessions = SessionStore::of(&Paths::from_env()?);
    match command {
        SessionCommand::Start(args) => start::run(&sessions, *args, out),
        SessionCommand::Status(args) => status::run(&sessions, &args, out),
        SessionCommand::Ls(args) => ls::run(&sessions, &args, out),
        SessionCommand::Cancel(args) => cancel::run(&sessions, &args, out),
        SessionCommand::Logs(args) => logs::run(&sessions, &args, out),
    }
}
