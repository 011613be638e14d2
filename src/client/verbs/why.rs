//! `swarm why`: explain the state of one worker or of all, and suggest the next step.

use crate::cli::{PageFormat, Why};
use crate::client::batch::BatchErrors;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::report::fetch;
use crate::client::worker::is_loop;
use crate::out::{CommandResult, for_hosts};
use crate::protocol::{Call, Named, WorkerView};

mod json;
mod loop_page;
mod overview;
mod plain;
mod worst_first;

use overview::facts;
use worst_first::worst_first;

pub(super) async fn run(ctx: &ClientContext, args: &Why) -> CommandResult {
    let Some(name) = args.name.as_ref().map(ToString::to_string) else {
        let workers = worst_first(ctx, args.since).await?;
        return print(ctx, &workers, args).await;
    };
    let worker: WorkerView = ctx.call(&Call::Status(Named { name: name.clone() }), QUICK_TIMEOUT).await?;
    if args.format == PageFormat::Json {
        return print(ctx, &[worker], args).await;
    }
    let lines = if is_loop(&worker) {
        loop_page::page(&fetch(ctx, &name).await?)
    } else {
        plain::page(ctx, &worker).await?
    };
    ctx.out.lines(&for_hosts(&lines))?;
    ctx.report_seen(&name, worker.status.is_finished()).await;
    Ok(0)
}

/// Prints the blocks of the workers, or their objects: an array, unless one worker was named.
async fn print(ctx: &ClientContext, workers: &[WorkerView], args: &Why) -> CommandResult {
    let mut errors = BatchErrors::new(ctx.out, args.format, false);
    let mut objects = vec![];
    let report_call = match args.format {
        PageFormat::Json => overview::last_iterations,
        PageFormat::Text => overview::report_call,
    };
    for (worker, facts) in workers.iter().zip(facts(ctx, workers, report_call).await?) {
        match args.format {
            PageFormat::Json => objects.push(json::object(worker, &facts)),
            PageFormat::Text => {
                ctx.out.lines(&for_hosts(&overview::block(worker, &facts.detail(), ctx.out)))?;
            }
        }
        for error in [facts.report.err(), facts.output.err()].into_iter().flatten() {
            errors.add_text(&worker.name, error)?;
        }
    }
    match (&objects[..], args.format) {
        ([object], PageFormat::Json) if args.name.is_some() => ctx.out.json(object)?,
        (objects, PageFormat::Json) => ctx.out.json_list(objects)?,
        (_, PageFormat::Text) => {}
    }
    errors.end()
}
