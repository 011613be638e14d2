//! `swarm hooks uninstall`: take the session hooks out of an agent's settings file.

use crate::cli::HookPlace;
use crate::hooks::install;
use crate::hooks::words::removal_line;
use crate::out::{CommandResult, Out};
use crate::paths::Paths;

pub(super) fn run(out: Out, args: &HookPlace) -> CommandResult {
    let place = install::place(args.agent, args.scope)?;
    let change = install::uninstall(&Paths::from_env()?, &place)?;
    out.line(&removal_line(&place.file, change, "hooks"))?;
    Ok(0)
}
