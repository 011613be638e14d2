//! `swarm plugin uninstall`: remove the session commands from an agent.

use crate::cli::PluginPlace;
use crate::error::{Error, ErrorCode};
use crate::hooks::plugin;
use crate::hooks::words::{file_lines, quoted_path, removal_line};
use crate::out::{CommandResult, Out};
use crate::paths::Paths;

pub(super) fn run(out: Out, args: &PluginPlace) -> CommandResult {
    let done = plugin::uninstall(&Paths::from_env()?, args.agent, args.scope, args.dir.as_deref())?;
    for line in file_lines("removed", &done.removed, done.dir.as_deref()) {
        out.line(&line)?;
    }
    if let Some((file, change)) = &done.settings {
        out.line(&removal_line(file, *change, "plugins"))?;
    } else if done.removed.is_empty() {
        out.line("nothing to remove")?;
    }
    let Some(first) = done.left.first() else { return Ok(0) };
    let text = format!("{} was changed since its installation; it is kept", quoted_path(first));
    let more = done.left.len() - 1;
    let text = if more == 0 { text } else { format!("{text}, and {more} more") };
    Err(Error::new(ErrorCode::Conflict, text).hint("remove it yourself").into())
}
