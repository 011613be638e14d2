//! `swarm why`: explain the state of one worker or of all, and suggest the next step.

use crate::cli::{PageFormat, Why};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::report::fetch;
use crate::client::worker::is_loop;
use crate::out::CommandResult;
use crate::protocol::{Call, Lines, Named, Report, WorkerView};

mod loop_page;
mod overview;
mod plain;

pub(super) async fn run(ctx: &ClientContext, args: &Why) -> CommandResult {
    let Some(name) = args.name.as_ref().map(ToString::to_string) else {
        return overview::run(ctx, args.format).await;
    };
    let worker: WorkerView = ctx.call(&Call::Status(Named { name: name.clone() }), QUICK_TIMEOUT).await?;
    if args.format == PageFormat::Json {
        return print_json(ctx, &worker).await;
    }
    let lines = if is_loop(&worker) {
        loop_page::page(&fetch(ctx, &name).await?)
    } else {
        plain::page(ctx, &worker).await?
    };
    ctx.out.lines(&lines)?;
    Ok(0)
}

async fn print_json(ctx: &ClientContext, worker: &WorkerView) -> CommandResult {
    let (report, output): (Option<Report>, Lines) = if is_loop(worker) {
        (Some(fetch(ctx, &worker.name).await?), Lines::default())
    } else {
        (None, ctx.call(&plain::output_call(&worker.name), QUICK_TIMEOUT).await?)
    };
    let detail = overview::Detail { report: report.as_ref(), output: &output.lines };
    ctx.out.json(&overview::object(worker, &detail, None))?;
    Ok(0)
}
