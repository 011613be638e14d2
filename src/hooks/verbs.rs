//! `swarm hooks` and `swarm plugin`, one file a verb. No daemon is needed.

use crate::cli::{HooksCommand, PluginCommand};
use crate::out::{CommandResult, Out};

mod hooks_install;
mod hooks_status;
mod hooks_uninstall;
mod plugin_install;
mod plugin_uninstall;

/// Carries out a verb of `swarm hooks`.
pub fn run_hooks(command: HooksCommand, out: Out) -> CommandResult {
    match command {
        HooksCommand::Install(args) => hooks_install::run(out, &args),
        HooksCommand::Uninstall(args) => hooks_uninstall::run(out, &args),
        HooksCommand::Status(args) => hooks_status::run(out, &args),
    }
}

/// Carries out a verb of `swarm plugin`.
pub fn run_plugin(command: PluginCommand, out: Out) -> CommandResult {
    match command {
        PluginCommand::Install(args) => plugin_install::run(out, &args),
        PluginCommand::Uninstall(args) => plugin_uninstall::run(out, &args),
    }
}
