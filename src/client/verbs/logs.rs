//! `swarm logs`: show a worker's output, and follow it with `--follow`.

use serde_json::json;
use tokio::time::sleep;

use crate::cli::{Logs, PageFormat};
use crate::client::context::ClientContext;
use crate::client::pages::{LOG_POLL_INTERVAL, is_disconnected, lines, print, worker_status};
use crate::client::tail::OutputTail;
use crate::out::CommandResult;
use crate::protocol::{Call, LogsParams};

/// How often the log is read until the worker prints nothing meanwhile.
const MAX_LOG_READS: u32 = 5;

/// More lines are read once, since that takes a while.
const MAX_REREAD_LINES: usize = 1000;

pub(super) async fn run(ctx: &ClientContext, args: &Logs) -> CommandResult {
    let name = args.name.as_str();
    let mut client = ctx.connect().await?;
    let (history, iteration) = (args.history, args.iteration);
    let last = args.lines.or(args.follow.then_some(10));
    let params = LogsParams { name: name.to_owned(), lines: last, history, iteration, from: None };
    let call = || Call::Logs(params.clone());
    if !args.follow {
        match args.format {
            PageFormat::Text => print(ctx, &mut client, &mut call()).await?,
            PageFormat::Json => {
                let lines = lines(&mut client, &mut call()).await?;
                ctx.out.json(&json!({"name": name, "iteration": iteration, "lines": lines}))?;
            }
        }
        return Ok(0);
    }
    let mut attempts = 0;
    let mut tail = loop {
        // Before the log is read: of a worker that never pauses, a line appears twice rather than never.
        let tail = OutputTail::from_now(name, &mut client).await?;
        let shown = lines(&mut client, &mut call()).await?;
        attempts += 1;
        let is_last = attempts == MAX_LOG_READS || shown.len() > MAX_REREAD_LINES;
        if is_last || tail.is_current(&mut client).await.unwrap_or(true) {
            ctx.out.lines(&shown)?;
            break tail;
        }
    };
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
