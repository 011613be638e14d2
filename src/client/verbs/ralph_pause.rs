//! `swarm ralph pause`: start no further agent.

use swarm_state::model::Status;

use crate::cli::RalphPause;
use crate::client::context::ClientContext;
use crate::client::ralph::{change, loops};
use crate::out::CommandResult;
use crate::protocol::{Call, Named};

pub(super) async fn run(ctx: &ClientContext, args: &RalphPause) -> CommandResult {
    let names = loops(ctx, &args.names, Status::is_live).await?;
    if names.is_empty() {
        ctx.out.note("no live loops");
    }
    change(ctx, names, |name| Call::RalphPause(Named { name }), ("paused", "is already paused")).await
}
