//! `swarm ralph init`: write a starter PROMPT.md and TODO.md, or the files of a task list ([`tasks`]).
//!
//! Standard output has the documented line about PROMPT.md. Everything else goes to standard error, so that a script
//! that reads the output is not affected.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};

use swarm_state::template::{DONE_TEXT, PROMPT_TEMPLATE, TODO_TEMPLATE};

use crate::cli::RalphInit;
use crate::client::context::ClientContext;
use crate::error::Error;
use crate::out::CommandResult;

mod tasks;

const PROMPT_FILE: &str = "PROMPT.md";
const TODO_FILE: &str = "TODO.md";

pub(super) async fn run(ctx: &ClientContext, args: &RalphInit) -> CommandResult {
    if args.tasks {
        return tasks::run(ctx, args).await;
    }
    let there = std::fs::symlink_metadata(PROMPT_FILE).is_ok();
    match write(PROMPT_FILE, PROMPT_TEMPLATE, args.force) {
        Ok(()) if there => ctx.out.line("created PROMPT.md (overwritten)")?,
        Ok(()) => ctx.out.line("created PROMPT.md")?,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            return Err(Error::invalid("PROMPT.md already exists (use --force to overwrite)").into());
        }
        Err(e) => return Err(Error::system("cannot write PROMPT.md", e).into()),
    }
    match write(TODO_FILE, TODO_TEMPLATE, false) {
        Ok(()) => ctx.out.note("created TODO.md with two example tasks; replace them with your own"),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            ctx.out.note("kept the existing TODO.md; the agent works through its tasks");
        }
        Err(e) => return Err(Error::system("cannot write TODO.md", e).into()),
    }
    ctx.out.hint("to start the loop, in a container or a VM (the last option turns off permission prompts):");
    ctx.out.note(&next_command());
    Ok(0)
}

/// The command that starts a loop with the files. Without --name, swarm chooses a name that is free.
fn next_command() -> String {
    format!(
        "  swarm spawn --ralph --prompt-file {PROMPT_FILE} -n 10 --done-pattern '{DONE_TEXT}' \\\n    \
         -- claude -p --dangerously-skip-permissions"
    )
}

/// Writes a file. Without `overwrite`, an existing file is an error.
fn write(file: &str, text: &str, overwrite: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if overwrite {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(file)?.write_all(text.as_bytes())
}
