//! `swarm ralph tasks`: work on the file of a task list, without a daemon.

use crate::cli::RalphTasksCommand;
use crate::client::context::ClientContext;
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
