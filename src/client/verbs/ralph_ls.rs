//! `swarm ralph ls`: the table of loops.

use super::ls::{list, names, warn_of_login};
use crate::cli::{Format, RalphLs};
use crate::client::context::ClientContext;
use crate::client::worker::{is_loop, iteration, loop_status};
use crate::out::{CommandResult, table};
use crate::protocol::WorkerView;

pub(super) async fn run(ctx: &ClientContext, args: &RalphLs) -> CommandResult {
    let mut workers = list(ctx).await?;
    workers.retain(is_loop);
    match args.format {
        Format::Json => ctx.out.json(&workers)?,
        Format::Names => ctx.out.lines(&names(&workers))?,
        Format::Table if workers.is_empty() => ctx.out.note("no loops"),
        Format::Table => {
            let rows: Vec<_> = workers.iter().map(loop_row).collect();
            let head = ["NAME", "LOOP", "ITER", "WORKER", "WHY"];
            ctx.out.lines(&table(&head, &rows, &[4, 0], ctx.out.width))?;
            warn_of_login(ctx, &workers);
        }
    }
    Ok(0)
}

fn loop_row(worker: &WorkerView) -> Vec<String> {
    vec![
        worker.name.clone(),
        loop_status(worker).to_owned(),
        iteration(worker),
        worker.status.to_string(),
        worker.reason.clone().unwrap_or_default(),
    ]
}
