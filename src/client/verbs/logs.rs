//! `swarm logs`: print what a worker printed, and follow it.
//!
//! A follower asks again twice a second and prints what it has not printed yet.

use serde_json::json;
use tokio::time::sleep;

use crate::cli::{Logs, PageFormat};
use crate::client::context::Context;
use crate::client::pages::{LOOK, is_gone, pages, print, worker_status};
use crate::client::tail::Tail;
use crate::out::CommandResult;
use crate::protocol::{Call, Lines, LogsParams};

pub(super) async fn run(ctx: &Context, args: &Logs) -> CommandResult {
    let name = args.name.as_str();
    let mut client = ctx.connect().await?;
    let lines = args.lines.or(args.follow.then_some(10));
    let (history, iteration) = (args.history, args.iteration);
    let params = LogsParams { name: name.to_owned(), lines, history, iteration, from: None };
    let mut call = Call::Logs(params);
    if !args.follow {
        match args.format {
            PageFormat::Text => print(ctx, &mut client, &mut call).await?,
            PageFormat::Json => {
                let mut lines = Collected::default();
                pages(&mut client, &mut call, async |page| {
                    lines.add(page);
                    Ok(())
                })
                .await?;
                ctx.out.json(&json!({
                    "worker": name, "iteration": iteration, "lines": lines.lines, "truncated": false
                }))?;
            }
        }
        return Ok(0);
    }
    // First, so that a line between the two is printed twice rather than never.
    let mut tail = Tail::from_now(name, &mut client).await?;
    print(ctx, &mut client, &mut call).await?;
    loop {
        sleep(LOOK).await;
        // Asked before the lines are: what a worker that has ended printed is all in them.
        let Some(worker) = worker_status(ctx, &mut client, name).await? else { return Ok(0) };
        match tail.look(&mut client).await {
            Ok(new) => ctx.out.lines(&new)?,
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(error.into()),
        }
        if !worker.status.is_live() {
            return Ok(0);
        }
    }
}

/// Lines from several answers.
#[derive(Default)]
struct Collected {
    lines: Vec<String>,
    /// The last of them goes on.
    open: bool,
}

impl Collected {
    fn add(&mut self, page: Lines) {
        let mut new = page.lines.into_iter();
        if self.open
            && let (Some(last), Some(more)) = (self.lines.last_mut(), new.next())
        {
            last.push_str(&more);
        }
        self.lines.extend(new);
        self.open = page.open;
    }
}
