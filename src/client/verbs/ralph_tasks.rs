//! `swarm ralph tasks`: work on the file of a task list. Only the import asks the daemon, which loops there are.

use crate::cli::RalphTasksCommand;
use crate::client::context::ClientContext;
use crate::out::CommandResult;

mod check;
mod export;
mod graph;
mod import;
mod ls;

pub(super) async fn run(ctx: &ClientContext, command: &RalphTasksCommand) -> CommandResult {
    match command {
        RalphTasksCommand::Check(args) => check::run(ctx, args),
        RalphTasksCommand::Ls(args) => ls::run(ctx, args),
        RalphTasksCommand::Graph(args) => graph::run(ctx, args),
        RalphTasksCommand::Import(args) => import::run(ctx, args).await,
        RalphTasksCommand::Export(args) => export::run(ctx, args),
    }
}
