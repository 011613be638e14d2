//! `swarm completions`: print the script that makes a shell complete swarm's command lines.

use crate::cli::Completions;
use crate::client::completion;
use crate::error::Error;
use crate::out::{CommandResult, Out};

pub(super) fn run(args: &Completions, out: Out) -> CommandResult {
    let script = completion::registration(&args.shell);
    out.raw(&script.ok_or_else(|| Error::usage(format!("unknown shell '{}'", args.shell)))?)?;
    Ok(0)
}
