//! `swarm ralph ls`: the table of loops.

use chrono::Local;

use super::ls::{list, names, warn_of_login, worker_table};
use crate::cli::{Format, ListFormatArg};
use crate::client::context::ClientContext;
use crate::client::json;
use crate::client::worker::is_loop;
use crate::out::CommandResult;

pub(super) async fn run(ctx: &ClientContext, args: &ListFormatArg) -> CommandResult {
    let mut workers = list(ctx).await?;
    workers.retain(is_loop);
    match args.format {
        Format::Json => ctx.out.json_list(&json::workers(&workers))?,
        Format::Names => ctx.out.lines(&names(&workers))?,
        Format::Table if workers.is_empty() => ctx.out.note("no loops"),
        Format::Table => {
            ctx.out.lines(&worker_table(&workers, &[], ctx.out.width, Local::now().fixed_offset()))?;
            warn_of_login(ctx, &workers);
        }
    }
    Ok(0)
}
