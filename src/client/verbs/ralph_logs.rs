//! `swarm ralph logs`: print a loop's `iterations.log`, and follow it.

use tokio::time::sleep;

use crate::cli::RalphLogs;
use crate::client::connect::{Client, QUICK};
use crate::client::context::Context;
use crate::client::new_lines::{Look, Stream};
use crate::client::pages::{LOOK, print, worker_status};
use crate::client::worker::{is_loop, loop_status};
use crate::error::Result;
use crate::out::CommandResult;
use crate::protocol::{Call, Lines, LogsParams};

/// How many lines a look at `iterations.log` asks for at first.
const TAIL: u64 = 200;

pub(super) async fn run(ctx: &Context, args: &RalphLogs) -> CommandResult {
    let name = args.name.as_str();
    let mut client = ctx.connect().await?;
    if !args.follow {
        print(ctx, &mut client, &mut iterations_call(name, args.lines)).await?;
        return Ok(0);
    }
    let mut got = read_iterations(&mut client, name, args.lines.map(u64::from)).await?;
    let mut stream = Stream::from(0, first(&got));
    let mut going = true;
    loop {
        let look = Look { run: 0, first: first(&got), lines: &got.lines, picture: false, live: false };
        ctx.out.lines(&stream.feed(&look))?;
        if !going {
            return Ok(0);
        }
        sleep(LOOK).await;
        let Some(worker) = worker_status(ctx, &mut client, name).await? else { return Ok(0) };
        going = is_loop(&worker) && matches!(loop_status(&worker), "running" | "paused");
        let before = got.total;
        got = read_iterations(&mut client, name, Some(TAIL)).await?;
        if got.total > before.saturating_add(TAIL) {
            got = read_iterations(&mut client, name, Some(got.total - before + TAIL)).await?;
        }
    }
}

async fn read_iterations(client: &mut Client, name: &str, lines: Option<u64>) -> Result<Lines> {
    let lines = lines.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    client.call(&iterations_call(name, lines), QUICK).await
}

fn iterations_call(name: &str, lines: Option<u32>) -> Call {
    Call::RalphLogs(LogsParams { name: name.to_owned(), lines, history: true, iteration: None, from: None })
}

fn first(lines: &Lines) -> u64 {
    lines.total.saturating_sub(lines.lines.len() as u64)
}
