//! `swarm hooks install`: put the session hooks into an agent's settings file.

use crate::cli::{HookAgent, HookPlace};
use crate::hooks::file::Change;
use crate::hooks::install;
use crate::hooks::words::shown;
use crate::out::{CommandResult, Out};
use crate::paths::Paths;

pub(super) fn run(out: Out, args: &HookPlace) -> CommandResult {
    let place = install::place(args.agent, args.scope)?;
    let change = install::install(&Paths::from_env()?, &place, &install::program()?)?;
    let file = shown(&place.file);
    out.line(&match change {
        Change::None => format!("{file} has the hooks already"),
        Change::Created => format!("made {file} with the hooks"),
        Change::Changed | Change::Restored | Change::Removed => format!("put the hooks into {file}"),
    })?;
    match args.agent {
        HookAgent::Claude => {
            out.hint("they hold for sessions from now on; for the commands: swarm plugin install")
        }
        HookAgent::Codex => out.hint("start codex once and trust them there; see: man swarm-hooks"),
    }
    Ok(0)
}
