//! `swarm ralph tasks import`: add the stories of another program to a task list.

use std::io::{self, IsTerminal};
use std::path::Path;

use swarm_state::tasks::import::{ImportFault, ImportFormat, MergedList, merge, read};
use swarm_state::words::counted;

use crate::cli::TasksImport;
use crate::client::context::ClientContext;
use crate::client::task_list_file::{CHECK_HINT, TaskListFile, read_input};
use crate::error::Error;
use crate::out::CommandResult;

pub(super) async fn run(ctx: &ClientContext, args: &TasksImport) -> CommandResult {
    let file = TaskListFile::in_dir(&args.ralph_dir);
    if !args.dry_run {
        file.refuse_used().await?;
    }
    let target = file.read()?;
    let is_stdin = args.input == Path::new("-");
    let name = if is_stdin { "standard input".to_owned() } else { args.input.display().to_string() };
    if is_stdin && io::stdin().is_terminal() {
        ctx.out.note("reading standard input; Ctrl-D ends it");
    }
    let text = read_input(&args.input).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::invalid(format!("no such file: {name}")),
        io::ErrorKind::IsADirectory => Error::invalid(format!("cannot read {name}: it is a directory")),
        _ => Error::system(format!("cannot read {name}"), error),
    })?;
    let refuse = |fault| refused(&name, &file, &fault);
    let stories = read(&text, args.from, args.tag.as_deref()).map_err(refuse)?;
    let (format, left_out) = (stories.format, stories.left_out);
    let merged = merge(&target, stories, args.replace).map_err(refuse)?;
    let summary = summary(&merged, &name, format, &file.shown());
    if args.dry_run {
        ctx.out.raw(&merged.list.to_text())?;
        ctx.out.note(&format!("would have {summary}; nothing is written"));
    } else {
        // A loop may have started while standard input was read.
        file.refuse_used().await?;
        file.write(&merged.list.to_text())?;
        ctx.out.line(&summary)?;
    }
    if merged.derived > 0 {
        let have = if merged.derived == 1 { "story had" } else { "stories had" };
        let text =
            format!("{} {have} no acceptance criteria, so swarm wrote one from the title", merged.derived);
        ctx.out.warn(&text);
    }
    if merged.checks > 0 {
        let checks = counted(merged.checks as u64, "check command");
        ctx.out.note(&format!("the stories have {checks}, which the loop runs"));
    }
    if left_out > 0 {
        ctx.out.note(&format!(
            "left out {} that {} canceled or deleted",
            stories_of(left_out),
            was(left_out)
        ));
    }
    Ok(0)
}

/// `imported 3 stories from plan.md (Markdown) into ralph/tasks.json: 2 added, 1 replaced`
fn summary(merged: &MergedList, name: &str, format: ImportFormat, file: &str) -> String {
    let (added, replaced) = (merged.added.len(), merged.replaced.len());
    let stories = stories_of(added + replaced);
    let counts = if replaced == 0 { String::new() } else { format!(": {added} added, {replaced} replaced") };
    format!("imported {stories} from {name} ({}) into {file}{counts}", format.name())
}

fn stories_of(count: usize) -> String {
    if count == 1 { "1 story".to_owned() } else { format!("{count} stories") }
}

fn was(count: usize) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

fn refused(name: &str, file: &TaskListFile, fault: &ImportFault) -> Error {
    if fault.is_in_target {
        return Error::invalid(format!("{}: {fault}", file.shown())).hint(CHECK_HINT);
    }
    let error = Error::invalid(format!("cannot import {name}: {fault}"));
    match fault.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
