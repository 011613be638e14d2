//! `swarm logs` and `swarm ralph logs`: print, and follow.
//!
//! A follower asks again twice a second and prints what it has not printed yet.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::connect::{Client, QUICK};
use super::ls::{is_loop, loop_status};
use super::stream::{Look, Stream};
use super::tail::Tail;
use super::{Ctx, Ended, Failure};
use crate::cli::{Logs, PageFormat, RalphLogs};
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Call, Lines, LogsParams, Named, WorkerView};

/// Between two looks of a follower.
const LOOK: Duration = Duration::from_millis(500);

/// How many lines a look at `iterations.log` asks for at first.
const TAIL: u64 = 200;

pub(super) async fn run(ctx: &Ctx, args: &Logs) -> Ended {
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
        let Some(worker) = status(ctx, &mut client, name).await? else { return Ok(0) };
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

pub(super) async fn iterations(ctx: &Ctx, args: &RalphLogs) -> Ended {
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
        let Some(worker) = status(ctx, &mut client, name).await? else { return Ok(0) };
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

/// Prints all that is asked for, also where it takes many answers.
async fn print(ctx: &Ctx, client: &mut Client, call: &mut Call) -> Result<(), Failure> {
    pages(client, call, async |page| {
        let end = if page.open || page.lines.is_empty() { "" } else { "\n" };
        ctx.out.raw(&(page.lines.join("\n") + end))
    })
    .await
}

/// Hands on all that is asked for, an answer at a time, the earliest first.
async fn pages(
    client: &mut Client,
    call: &mut Call,
    mut take: impl AsyncFnMut(Lines) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let got: Lines = client.call(call, QUICK).await?;
    let Some(mut from) = got.whole else { return take(got).await };
    let run = got.run;
    loop {
        let (Call::Logs(params) | Call::RalphLogs(params)) = &mut *call else { return Ok(()) };
        params.from = Some(from);
        let cure = format!("swarm logs {} --history", params.name);
        let page: Lines = client.call(call, QUICK).await?;
        if page.run != run {
            let message = "another run has begun meanwhile, and the rest of this one is in the history";
            return Err(Error::new(ErrorCode::Conflict, message).hint(cure).into());
        }
        let next = page.next;
        take(page).await?;
        match next {
            Some(next) if next > from => from = next,
            Some(_) | None => return Ok(()),
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

fn is_gone(error: &Error) -> bool {
    error.code == ErrorCode::NoDaemon
}

/// How the worker is; `None` when there is none any more. A daemon that went away is started again.
async fn status(ctx: &Ctx, client: &mut Client, name: &str) -> Result<Option<WorkerView>> {
    let call = Call::Status(Named { name: name.to_owned() });
    let mut answer = client.call(&call, QUICK).await;
    if answer.as_ref().is_err_and(is_gone) {
        *client = ctx.connect().await?;
        answer = client.call(&call, QUICK).await;
    }
    match answer {
        Ok(worker) => Ok(Some(worker)),
        Err(error) if error.code == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
