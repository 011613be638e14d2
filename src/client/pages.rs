//! Reads long answers page by page, for `logs` and `ralph logs`.

use std::time::Duration;

use super::connect::{Client, QUICK_TIMEOUT};
use super::context::ClientContext;
use crate::error::{Error, ErrorCode, Result};
use crate::out::Failure;
use crate::protocol::{Call, Lines, Named, WorkerView};

pub(super) const LOG_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How often the status is requested, each time on a new connection, before a follower gives up.
const MAX_STATUS_ATTEMPTS: u32 = 5;

pub(super) async fn print(ctx: &ClientContext, client: &mut Client, call: &mut Call) -> Result<(), Failure> {
    pages(client, call, async |page| {
        let end = if page.open || page.lines.is_empty() { "" } else { "\n" };
        ctx.out.raw(&(page.lines.join("\n") + end))
    })
    .await
}

/// Passes all pages to `take`, the first lines first.
async fn pages(
    client: &mut Client,
    call: &mut Call,
    mut take: impl AsyncFnMut(Lines) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let got: Lines = client.call(call, QUICK_TIMEOUT).await?;
    let Some(mut from) = got.whole else { return take(got).await };
    let run = got.run;
    loop {
        let (Call::Logs(params) | Call::RalphLogs(params)) = &mut *call else { return Ok(()) };
        params.from = Some(from);
        let hint = format!("swarm logs {} --history", params.name);
        let page: Lines = client.call(call, QUICK_TIMEOUT).await?;
        if page.run != run {
            let message = "another run has started; the rest of this run is in the history";
            return Err(Error::new(ErrorCode::Conflict, message).hint(hint).into());
        }
        let next = page.next;
        take(page).await?;
        match next {
            Some(next) if next > from => from = next,
            Some(_) | None => return Ok(()),
        }
    }
}

pub(super) async fn lines(client: &mut Client, call: &mut Call) -> Result<Vec<String>, Failure> {
    let (mut lines, mut is_open): (Vec<String>, bool) = (vec![], false);
    pages(client, call, async |page| {
        let mut new = page.lines.into_iter();
        // The last line of an open page continues on this one.
        if is_open && let (Some(last), Some(more)) = (lines.last_mut(), new.next()) {
            last.push_str(&more);
        }
        lines.extend(new);
        is_open = page.open;
        Ok(())
    })
    .await?;
    Ok(lines)
}

pub(super) fn is_disconnected(error: &Error) -> bool {
    matches!(error.code, ErrorCode::NoDaemon | ErrorCode::Unreachable)
}

/// Returns the worker's view; `None` when the worker no longer exists. Starts the daemon when it was killed.
pub(super) async fn worker_status(
    ctx: &ClientContext,
    client: &mut Client,
    name: &str,
) -> Result<Option<WorkerView>> {
    let call = Call::Status(Named { name: name.to_owned() });
    let mut answer = client.call(&call, QUICK_TIMEOUT).await;
    let mut attempts = 1;
    // A link may be cut again as soon as it is back.
    while answer.as_ref().is_err_and(is_disconnected) && attempts < MAX_STATUS_ATTEMPTS {
        attempts += 1;
        *client = ctx.reconnect().await?;
        answer = client.call(&call, QUICK_TIMEOUT).await;
    }
    match answer {
        Ok(worker) => Ok(Some(worker)),
        Err(error) if error.code == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
