//! `swarm completions`: generated from the command line's definition.

use clap::CommandFactory;

use crate::cli::{Cli, Completions};
use crate::out::{CommandResult, Out};

pub(super) fn run(args: &Completions, out: Out) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "swarm", &mut script);
    out.raw(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
