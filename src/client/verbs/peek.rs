//! `swarm peek`: what is on a worker's screen.

use crate::cli::Peek;
use crate::client::connect::QUICK;
use crate::client::context::Context;
use crate::out::CommandResult;
use crate::protocol::{Call, PeekParams, Peeked};

pub(super) async fn run(ctx: &Context, args: &Peek) -> CommandResult {
    let params = PeekParams { name: args.name.to_string(), lines: args.lines };
    let peeked: Peeked = ctx.call(&Call::Peek(params), QUICK).await?;
    ctx.out.lines(&peeked.lines)?;
    Ok(0)
}
