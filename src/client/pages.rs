//! Long answers, page by page, for `logs` and `ralph logs`.

use std::time::Duration;

use super::connect::{Client, QUICK};
use super::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::out::Failure;
use crate::protocol::{Call, Lines, Named, WorkerView};

/// Between two looks of a follower.
pub(super) const LOOK: Duration = Duration::from_millis(500);

/// Prints all that is asked for, also where it takes many answers.
pub(super) async fn print(ctx: &Context, client: &mut Client, call: &mut Call) -> Result<(), Failure> {
    pages(client, call, async |page| {
        let end = if page.open || page.lines.is_empty() { "" } else { "\n" };
        ctx.out.raw(&(page.lines.join("\n") + end))
    })
    .await
}

/// Hands on all that is asked for, an answer at a time, the earliest first.
pub(super) async fn pages(
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

pub(super) fn is_gone(error: &Error) -> bool {
    error.code == ErrorCode::NoDaemon
}

/// How the worker is; `None` when there is none any more. A daemon that went away is started again.
pub(super) async fn worker_status(
    ctx: &Context,
    client: &mut Client,
    name: &str,
) -> Result<Option<WorkerView>> {
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
