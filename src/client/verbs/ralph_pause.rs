//! `swarm ralph pause`: start no further agent.

use crate::cli::RalphPause;
use crate::client::batch::{change, names};
use crate::client::context::ClientContext;
use crate::client::worker::is_loop;
use crate::out::CommandResult;
use crate::protocol::{Call, Named};

pub(super) async fn run(ctx: &ClientContext, args: &RalphPause) -> CommandResult {
    let names = names(ctx, &args.names, args.all, |w| is_loop(w) && w.status.is_live()).await?;
    if names.is_empty() {
        ctx.out.note("no live loops");
    }
    let call = |name| Call::RalphPause(Named { name });
    Ok(change(ctx, names, args.format, call, ("paused ralph loop for", "is already paused")).await?.0)
}
