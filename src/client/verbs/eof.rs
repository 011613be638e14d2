//! `swarm eof`: send end-of-input (Ctrl-D) to a worker.

use crate::cli::Eof;
use crate::client::connect::SLOW_TIMEOUT;
use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::protocol::{Call, Empty, Named};

pub(super) async fn run(ctx: &ClientContext, args: &Eof) -> CommandResult {
    let call = Call::Eof(Named { name: args.name.to_string() });
    // Behind what was sent before it, which may wait for the agent.
    let Empty {} = ctx.call(&call, SLOW_TIMEOUT).await?;
    Ok(0)
}
