//! `swarm logs`: show what a worker printed, and follow it with `--follow`.

use serde_json::json;
use tokio::time::sleep;

use crate::cli::{Logs, PageFormat};
use crate::client::context::ClientContext;
use crate::client::pages::{LOG_POLL_INTERVAL, is_disconnected, lines, print, worker_status};
use crate::client::tail::OutputTail;
use crate::out::CommandResult;
use crate::protocol::{Call, LogsParams};

pub(super) async fn run(ctx: &ClientContext, args: &Logs) -> CommandResult {
    let name = args.name.as_str();
    let mut client = ctx.connect().await?;
    let (history, iteration) = (args.history, args.iteration);
    let last = args.lines.or(args.follow.then_some(10));
    let params = LogsParams { name: name.to_owned(), lines: last, history, iteration, from: None };
    let mut call = Call::Logs(params);
    if !args.follow {
        match args.format {
            PageFormat::Text => print(ctx, &mut client, &mut call).await?,
            PageFormat::Json => {
                let lines = lines(&mut client, &mut call).await?;
                ctx.out.json(&json!({"name": name, "iteration": iteration, "lines": lines}))?;
            }
        }
        return Ok(0);
    }
    // Before the log is printed: a line that is printed in between appears twice, and not never.
    let mut tail = OutputTail::from_now(name, &mut client).await?;
    print(ctx, &mut client, &mut call).await?;
    loop {
        sleep(LOG_POLL_INTERVAL).await;
        // The status is read before the lines: when the worker has ended, the lines are complete.
        let Some(worker) = worker_status(ctx, &mut client, name).await? else { return Ok(0) };
        match tail.poll(&mut client).await {
            Ok(new) => ctx.out.lines(&new)?,
            Err(error) if is_disconnected(&error) => continue,
            Err(error) => return Err(error.into()),
        }
        if !worker.status.is_live() {
            return Ok(0);
        }
    }
}
