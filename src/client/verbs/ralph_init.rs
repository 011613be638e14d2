//! `swarm ralph init`: write a starter PROMPT.md.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use swarm_state::template::PROMPT_TEMPLATE;

use crate::cli::RalphInit;
use crate::client::context::ClientContext;
use crate::error::Error;
use crate::out::CommandResult;

pub(super) fn run(ctx: &ClientContext, args: &RalphInit) -> CommandResult {
    const FILE: &str = "PROMPT.md";
    let there = std::fs::symlink_metadata(FILE).is_ok();
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(FILE).and_then(|mut file| file.write_all(PROMPT_TEMPLATE.as_bytes()));
    match written {
        Ok(()) if there => ctx.out.line("created PROMPT.md (overwritten)")?,
        Ok(()) => ctx.out.line("created PROMPT.md")?,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            return Err(Error::invalid("PROMPT.md already exists (use --force to overwrite)").into());
        }
        Err(e) => return Err(Error::system("cannot write PROMPT.md", e).into()),
    }
    Ok(0)
}
