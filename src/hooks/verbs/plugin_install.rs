//! `swarm plugin install`: install the session commands into an agent.

use crate::cli::PluginPlace;
use crate::hooks::file::FileChange;
use crate::hooks::words::{file_lines, quoted_path};
use crate::hooks::{install, plugin};
use crate::out::{CommandResult, Out};
use crate::paths::Paths;

pub(super) fn run(out: Out, args: &PluginPlace) -> CommandResult {
    let program = install::program()?;
    let done = plugin::install(&Paths::from_env()?, args.agent, args.scope, args.dir.as_deref(), &program)?;
    for line in file_lines("wrote", &done.written, done.dir.as_deref()) {
        out.line(&line)?;
    }
    let changed = done.settings.as_ref().filter(|(_, change)| *change != FileChange::None);
    if let Some((file, _)) = changed {
        out.line(&format!("enabled the plugins in {}", quoted_path(file)))?;
    } else if done.written.is_empty() {
        out.line("already installed")?;
    }
    if let Some(dir) = &done.dir {
        out.note(&format!(
            "New sessions have /ralph-loop. To install with Claude Code's own commands instead:\n  \
             claude plugin marketplace add {}\n  claude plugin install swarm@swarm\n  \
             claude plugin install do-it@swarm",
            quoted_path(dir)
        ));
    }
    Ok(0)
}
