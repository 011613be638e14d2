//! `swarm ralph ls`: the table of loops.

use super::ls::{list, print_list};
use crate::cli::ListFormatArg;
use crate::client::context::ClientContext;
use crate::client::worker::is_loop;
use crate::out::CommandResult;

pub(super) async fn run(ctx: &ClientContext, args: &ListFormatArg) -> CommandResult {
    let mut workers = list(ctx).await?;
    workers.retain(is_loop);
    print_list(ctx, args.format, &workers, &[], "no loops")
}
