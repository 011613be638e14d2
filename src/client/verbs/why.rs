//! `swarm why`: explain the state of one worker or of all, and suggest the next step.

use crate::cli::Why;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::report::fetch;
use crate::client::worker::is_loop;
use crate::out::CommandResult;
use crate::protocol::{Call, Named, WorkerView};

mod loop_page;
mod overview;
mod plain;

pub(super) async fn run(ctx: &ClientContext, args: &Why) -> CommandResult {
    let Some(name) = args.name.as_ref().map(ToString::to_string) else { return overview::run(ctx).await };
    let worker: WorkerView = ctx.call(&Call::Status(Named { name: name.clone() }), QUICK_TIMEOUT).await?;
    let lines = if is_loop(&worker) {
        loop_page::page(&fetch(ctx, &name).await?)
    } else {
        plain::page(ctx, &worker).await?
    };
    ctx.out.lines(&lines)?;
    Ok(0)
}
