//! The verbs of the service.

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use clap_complete::Shell;

use super::PageFormat;

/// `swarm daemon`
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DaemonCommand,
}

/// Every verb of `swarm daemon`.
#[derive(Debug, Subcommand)]
pub enum DaemonCommand {
    /// Start it in the background
    Start,
    /// Pause the loops and end the daemon; agents at work go on
    Stop,
    /// End it and start it anew; nothing is paused
    Restart,
    /// Say whether it runs
    #[command(after_long_help = "Exit status:\n  0  It runs.\n  3  It does not.")]
    Status(DaemonStatus),
    /// Be the daemon, in the foreground (for service managers)
    Run(DaemonRun),
}

/// `swarm daemon status`
#[derive(Debug, Args)]
pub struct DaemonStatus {
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm daemon run`
#[derive(Debug, Args)]
pub struct DaemonRun {
    /// Print `ready` on standard output once clients can connect
    #[arg(long, hide = true)]
    pub ready_on_stdout: bool,
}

/// `swarm doctor`
#[derive(Debug, Args)]
#[command(
    after_long_help = "Exit status:\n  0  Nothing failed (a warning is no failure).\n  1  Something did."
)]
pub struct Doctor {
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm completions`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  bash:  swarm completions bash > ~/.local/share/bash-completion/completions/swarm
  zsh:   swarm completions zsh > ~/.zfunc/_swarm    (with ~/.zfunc in your fpath)
  fish:  swarm completions fish > ~/.config/fish/completions/swarm.fish")]
pub struct Completions {
    /// Your shell
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(["bash", "zsh", "fish"])
        .map(|name| name.parse::<Shell>().unwrap_or(Shell::Bash)))]
    pub shell: Shell,
}
