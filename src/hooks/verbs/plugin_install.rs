//! `swarm plugin install`: install the session commands into an agent.

use crate::cli::PluginPlace;
use crate::hooks::file::Change;
use crate::hooks::words::{shown, told};
use crate::hooks::{install, plugin};
use crate::out::{CommandResult, Out};
use crate::paths::Paths;

pub(super) fn run(out: Out, args: &PluginPlace) -> CommandResult {
    let program = install::program()?;
    let done = plugin::install(&Paths::from_env()?, args.agent, args.scope, args.dir.as_deref(), &program)?;
    for line in told("wrote", &done.written, done.dir.as_deref()) {
        out.line(&line)?;
    }
    if let Some((file, change)) = &done.settings {
        match change {
            Change::None => {}
            Change::Created | Change::Changed | Change::Restored | Change::Removed => {
                out.line(&format!("enabled the plugins in {}", shown(file)))?;
            }
        }
    }
    let idle = done.settings.as_ref().is_none_or(|(_, change)| *change == Change::None);
    if done.written.is_empty() && idle {
        out.line("everything is there already")?;
    }
    if let Some(dir) = &done.dir {
        out.note(&format!(
            "Sessions that start from now on have /ralph-loop. By Claude Code's own means it is:\n  \
             claude plugin marketplace add {}\n  claude plugin install swarm@swarm\n  \
             claude plugin install do-it@swarm",
            shown(dir)
        ));
    }
    Ok(0)
}
