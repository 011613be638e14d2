//! `swarm hooks uninstall`: take the session hooks out of an agent's settings file.

use crate::cli::HookPlace;
use crate::hooks::words::removal_line;
use crate::hooks::{file, install, merge};
use crate::out::{CommandResult, Out};
use crate::paths::Paths;

pub(super) fn run(out: Out, args: &HookPlace) -> CommandResult {
    let place = install::place(args.agent, args.scope)?;
    let change = file::change(&Paths::from_env()?, &place.file, |value| Ok(merge::without_hooks(value)))?;
    out.line(&removal_line(&place.file, change, "hooks"))?;
    Ok(0)
}
