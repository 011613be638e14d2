//! `config`: the settings files.

use clap::{Args, Subcommand};

use super::format::PageFormatArg;

/// Every verb of `swarm config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show every setting with its file and line
    #[command(long_about = "Show every setting with its file and line.\n\n\
        The list has every key, also those that no file sets, and the values that a setting overrides. It has a key of \
        an agent's profile only if a file sets it. Options on the command line override the settings.")]
    Show(PageFormatArg),
    /// Check the settings files
    #[command(after_long_help = "Exit status:\n  0  No file has an error, or there is no file.\n  \
        1  A file has an error. Every error is printed with its file and line.")]
    Check,
    /// Edit your settings, then check them
    #[command(
        long_about = "Edit your settings, then check them.\n\n\
        Opens ~/.config/swarm/config.toml, or the file of --config, in the editor of VISUAL or EDITOR, or else in vi. If the file does not exist, \
        swarm creates it with a commented template. The file stays as you saved it, also if it has an error.",
        after_long_help = "Exit status:\n  0  No file has an error.\n  1  A file has an error, or the editor failed."
    )]
    Edit(ConfigEdit),
}

/// `swarm config edit`
#[derive(Debug, Args)]
pub struct ConfigEdit {
    /// Edit ./swarm.toml, the settings of this project
    #[arg(long)]
    pub project: bool,
}
