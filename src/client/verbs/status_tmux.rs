//! `swarm status --format tmux`: one line for the status line of tmux.
//!
//! tmux runs it every few seconds, so it starts no daemon, waits for at most two seconds and always succeeds.

use std::time::Duration;

use swarm_state::attention::Attention;
use swarm_state::model::Status;
use tokio::time::timeout;

use crate::client::connect;
use crate::client::context::ClientContext;
use crate::error::Result;
use crate::out::CommandResult;
use crate::protocol::{Call, Empty, Listing, WorkerView};

const STATUS_LINE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) async fn run(ctx: &ClientContext) -> CommandResult {
    let text = match timeout(STATUS_LINE_TIMEOUT, listing(ctx)).await {
        Ok(Ok(Some(listing))) => line(&listing.workers),
        Ok(Ok(None)) => "no daemon".to_owned(),
        Ok(Err(_)) | Err(_) => "no answer from the daemon".to_owned(),
    };
    ctx.out.line(&text)?;
    Ok(0)
}

async fn listing(ctx: &ClientContext) -> Result<Option<Listing>> {
    let Some(mut client) = connect::connect_existing(&ctx.place()?).await? else { return Ok(None) };
    client.call(&Call::Ls(Empty {}), STATUS_LINE_TIMEOUT).await.map(Some)
}

fn line(workers: &[WorkerView]) -> String {
    let count = |group: Attention, is_counted: fn(Status) -> bool| {
        let groups = workers.iter().filter(|view| is_counted(view.status));
        groups.filter(|view| Attention::of(view.status, view.cause.as_ref(), view.seen) == group).count()
    };
    let need = count(Attention::NeedsYou, |_| true);
    let parts = [
        (need, if need == 1 { "needs you" } else { "need you" }),
        (count(Attention::FailedOrLost, |status| status == Status::Failed), "failed"),
        (count(Attention::FailedOrLost, |status| status != Status::Failed), "lost"),
        (count(Attention::Working, |_| true), "working"),
        (count(Attention::Parked, |_| true), "parked"),
        (count(Attention::FinishedUnseen, |_| true), "done"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, group)| format!("{count} {group}")).collect();
    if parts.is_empty() { "no workers".to_owned() } else { parts.join(" · ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::testing::view;

    #[test]
    fn the_line_counts_each_group() {
        assert_eq!(line(&[]), "no workers");
        let views = |all: &[&str]| all.iter().map(|status| view("a", status, json!({}))).collect::<Vec<_>>();
        assert_eq!(line(&views(&["killed"])), "no workers");
        let all =
            ["done", "running", "waiting", "failed", "lost", "unreachable", "starting", "done", "paused"];
        let expected = "2 need you · 1 failed · 2 lost · 2 working · 2 done";
        assert_eq!(line(&views(&all)), expected);
        assert_eq!(line(&views(&["waiting"])), "1 needs you");
    }
}
