//! `swarm logs` and `swarm ralph logs`: print, and follow.
//!
//! A follower asks again twice a second and prints what is beyond what it saw.

use std::time::Duration;

use tokio::time::sleep;

use super::connect::{Client, QUICK};
use super::ls::{is_loop, loop_status};
use super::stream::{Look, Stream};
use super::{Ctx, Ended};
use crate::cli::{Logs, RalphLogs};
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Call, Lines, LogsParams, Named, WorkerView};

/// Between two looks of a follower.
const LOOK: Duration = Duration::from_millis(500);

/// How many lines a look asks for at first.
const TAIL: u64 = 200;

/// Which text is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// What the worker printed.
    Output { history: bool },
    /// `iterations.log`.
    Iterations,
}

impl Text {
    async fn read(self, client: &mut Client, name: &str, lines: Option<u64>) -> Result<Lines> {
        let lines = lines.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let name = name.to_owned();
        let call = match self {
            Self::Output { history } => Call::Logs(LogsParams { name, lines, history }),
            Self::Iterations => Call::RalphLogs(LogsParams { name, lines, history: true }),
        };
        client.call(&call, QUICK).await
    }

    /// Whether more may come.
    fn goes_on(self, worker: &WorkerView) -> bool {
        match self {
            Self::Output { .. } => worker.status.is_live(),
            Self::Iterations => is_loop(worker) && matches!(loop_status(worker), "running" | "paused"),
        }
    }
}

pub(super) async fn run(ctx: &Ctx, args: &Logs) -> Ended {
    let text = Text::Output { history: args.history };
    let lines = args.lines.or(args.follow.then_some(10));
    show(ctx, args.name.as_str(), text, lines, args.follow).await
}

pub(super) async fn iterations(ctx: &Ctx, args: &RalphLogs) -> Ended {
    show(ctx, args.name.as_str(), Text::Iterations, args.lines, args.follow).await
}

async fn show(ctx: &Ctx, name: &str, text: Text, lines: Option<u32>, follow: bool) -> Ended {
    let mut client = ctx.connect().await?;
    let got = text.read(&mut client, name, lines.map(u64::from)).await?;
    if got.truncated && lines.is_none() {
        ctx.out.warn("earlier lines are left out (the whole is too long for one answer)");
    }
    if !follow {
        ctx.out.lines(&got.lines)?;
        return Ok(0);
    }
    let mut stream = Stream::from(0, first(&got));
    let mut got = got;
    let mut live = true;
    loop {
        ctx.out.lines(&stream.feed(&look(&got, live)))?;
        if !live {
            return Ok(0);
        }
        sleep(LOOK).await;
        // Asked before the lines are: what a worker that has ended printed is all in them.
        live = match status(&mut client, name).await {
            Ok(worker) => text.goes_on(&worker),
            Err(error) if error.code == ErrorCode::NotFound => return Ok(0),
            Err(error) if error.code == ErrorCode::NoDaemon => {
                client = ctx.connect().await?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let before = got.total;
        got = text.read(&mut client, name, Some(TAIL)).await?;
        if got.total > before.saturating_add(TAIL) {
            got = text.read(&mut client, name, Some(got.total - before + TAIL)).await?;
        }
    }
}

fn first(lines: &Lines) -> u64 {
    lines.total.saturating_sub(lines.lines.len() as u64)
}

fn look(lines: &Lines, live: bool) -> Look<'_> {
    Look { run: 0, first: first(lines), lines: &lines.lines, picture: lines.picture, live }
}

async fn status(client: &mut Client, name: &str) -> Result<WorkerView, Error> {
    client.call(&Call::Status(Named { name: name.to_owned() }), QUICK).await
}
