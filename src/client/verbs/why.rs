//! `swarm why`: explain a worker's state, and suggest the next step.

use crate::cli::Why;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::report::fetch;
use crate::client::worker::is_loop;
use crate::out::CommandResult;
use crate::protocol::{Call, Named, WorkerView};

mod loop_page;
mod plain;

pub(super) async fn run(ctx: &ClientContext, args: &Why) -> CommandResult {
    let name = args.name.to_string();
    let worker: WorkerView = ctx.call(&Call::Status(Named { name: name.clone() }), QUICK_TIMEOUT).await?;
    let lines = if is_loop(&worker) {
        loop_page::page(&fetch(ctx, &name).await?)
    } else {
        plain::page(ctx, &worker).await?
    };
    ctx.out.lines(&lines)?;
    Ok(0)
}
