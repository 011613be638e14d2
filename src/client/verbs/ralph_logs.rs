//! `swarm ralph logs`: print a loop's `iterations.log`, and follow it.

use serde_json::json;
use swarm_state::model::LoopStatus;
use tokio::time::sleep;

use crate::cli::{PageFormat, RalphLogs};
use crate::client::connect::{Client, QUICK_TIMEOUT};
use crate::client::context::ClientContext;
use crate::client::pages::{LOG_POLL_INTERVAL, is_disconnected, lines, print, worker_status};
use crate::client::worker::is_loop;
use crate::error::Result;
use crate::out::CommandResult;
use crate::protocol::{Call, Lines, LogsParams};

/// How many lines of `iterations.log` a poll requests first.
const FIRST_LINES: u64 = 200;

pub(super) async fn run(ctx: &ClientContext, args: &RalphLogs) -> CommandResult {
    let name = args.name.as_str();
    let mut client = ctx.connect().await?;
    if !args.follow {
        let mut call = iterations_call(name, args.lines);
        match args.format {
            PageFormat::Text => print(ctx, &mut client, &mut call).await?,
            PageFormat::Json => {
                let lines = lines(&mut client, &mut call).await?;
                ctx.out.json(&json!({"name": name, "lines": lines}))?;
            }
        }
        return Ok(0);
    }
    let mut got = read_iterations(&mut client, name, args.lines.map(u64::from)).await?;
    let mut next = first(&got);
    let mut going = true;
    loop {
        ctx.out.lines(new_from(next, &got))?;
        next = got.total;
        if !going {
            return Ok(0);
        }
        sleep(LOG_POLL_INTERVAL).await;
        let Some(worker) = worker_status(ctx, &mut client, name).await? else { return Ok(0) };
        going = is_loop(&worker)
            && matches!(worker.metadata().status, Some(LoopStatus::Running | LoopStatus::Paused));
        match read_new(&mut client, name, got.total).await {
            Ok(new) => got = new,
            // The next status is requested on a new connection.
            Err(error) if is_disconnected(&error) => going = true,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads the end of the log, with all lines after the first `known`.
async fn read_new(client: &mut Client, name: &str, known: u64) -> Result<Lines> {
    let got = read_iterations(client, name, Some(FIRST_LINES)).await?;
    if got.total > known.saturating_add(FIRST_LINES) {
        return read_iterations(client, name, Some(got.total - known + FIRST_LINES)).await;
    }
    Ok(got)
}

async fn read_iterations(client: &mut Client, name: &str, lines: Option<u64>) -> Result<Lines> {
    let lines = lines.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    client.call(&iterations_call(name, lines), QUICK_TIMEOUT).await
}

fn iterations_call(name: &str, lines: Option<u32>) -> Call {
    Call::RalphLogs(LogsParams { name: name.to_owned(), lines, history: true, iteration: None, from: None })
}

/// The lines from number `next` on. A log that became shorter has no new lines.
fn new_from(next: u64, got: &Lines) -> &[String] {
    let printed = next.min(got.total).saturating_sub(first(got));
    usize::try_from(printed).ok().and_then(|printed| got.lines.get(printed..)).unwrap_or_default()
}

fn first(lines: &Lines) -> u64 {
    lines.total.saturating_sub(lines.lines.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_printed_once() {
        let got = |total: u64, text: &str| Lines {
            total,
            lines: text.split_whitespace().map(str::to_owned).collect(),
            ..Lines::default()
        };
        for (next, total, text, new) in [
            (7, 8, "f g h", "h"),
            (8, 8, "f g h", ""),
            (5, 9, "h i", "h i"),
            (9, 2, "a b", ""),
            (0, 0, "", ""),
        ] {
            assert_eq!(new_from(next, &got(total, text)).join(" "), new, "{next} {total}");
        }
    }
}
