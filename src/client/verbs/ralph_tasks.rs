//! `swarm ralph tasks`: work on the file of a task list, without a daemon.

use swarm_state::tasks::TaskList;

use crate::cli::{RalphTasksCommand, TaskListPlace};
use crate::client::context::ClientContext;
use crate::client::task_list::{CHECK_HINT, TaskListFile};
use crate::error::{Error, Result};
use crate::out::CommandResult;

mod check;
mod export;
mod graph;
mod import;
mod ls;

pub(super) fn run(ctx: &ClientContext, command: &RalphTasksCommand) -> CommandResult {
    match command {
        RalphTasksCommand::Check(args) => check::run(ctx, args),
        RalphTasksCommand::Ls(args) => ls::run(ctx, args),
        RalphTasksCommand::Graph(args) => graph::run(ctx, args),
        RalphTasksCommand::Import(args) => import::run(ctx, args),
        RalphTasksCommand::Export(args) => export::run(ctx, args),
    }
}

/// The file that the arguments name.
fn file_of(place: &TaskListPlace) -> TaskListFile {
    match &place.file {
        Some(file) => TaskListFile::of_path(file),
        None => TaskListFile::in_dir(&place.ralph_dir),
    }
}

/// Reads a list that must be valid.
fn valid_list(file: &TaskListFile) -> Result<TaskList> {
    TaskList::parse(&file.read()?)
        .map_err(|fault| Error::invalid(format!("{}: {fault}", file.shown())).hint(CHECK_HINT))
}
