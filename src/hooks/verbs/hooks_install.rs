//! `swarm hooks install`: put the session hooks into an agent's settings file.

use crate::cli::{HookAgent, HookPlace};
use crate::hooks::file::{self, FileChange};
use crate::hooks::words::quoted_path;
use crate::hooks::{install, merge};
use crate::out::{CommandResult, Out};
use crate::paths::Paths;

pub(super) fn run(out: Out, args: &HookPlace) -> CommandResult {
    let place = install::place(args.agent, args.scope)?;
    let (paths, program) = (Paths::from_env()?, install::program()?);
    let change = file::change(&paths, &place.file, |value| {
        merge::with_hooks(value, install::needed(place.agent), &program)
    })?;
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
