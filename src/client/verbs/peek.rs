//! `swarm peek`: show a worker's screen.

use crate::cli::Peek;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::protocol::{Call, PeekParams, Peeked};

pub(super) async fn run(ctx: &ClientContext, args: &Peek) -> CommandResult {
    let params = PeekParams { name: args.name.to_string(), lines: args.lines };
    let peeked: Peeked = ctx.call(&Call::Peek(params), QUICK_TIMEOUT).await?;
    ctx.out.lines(&peeked.lines)?;
    Ok(0)
}
