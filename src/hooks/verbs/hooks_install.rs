//! `swarm hooks install`: put the session hooks into an agent's settings file.

use crate::cli::{HookAgent, HookPlace};
use crate::hooks::file::FileChange;
use crate::hooks::install;
use crate::hooks::words::quoted_path;
use crate::out::{CommandResult, Out};
use crate::paths::Paths;

pub(super) fn run(out: Out, args: &HookPlace) -> CommandResult {
    let place = install::place(args.agent, args.scope)?;
    let change = install::install(&Paths::from_env()?, &place, &install::program()?)?;
    let file = quoted_path(&place.file);
    out.line(&match change {
        FileChange::None => format!("{file} has the hooks already"),
        FileChange::Created => format!("created {file} with the hooks"),
        FileChange::Changed | FileChange::Restored | FileChange::Removed => {
            format!("added the hooks to {file}")
        }
    })?;
    match args.agent {
        HookAgent::Claude => {
            out.hint("new sessions run the hooks; to add the slash commands: swarm plugin install")
        }
        HookAgent::Codex => out.hint("start codex once and trust the hooks there; see: man swarm-hooks"),
    }
    Ok(0)
}
