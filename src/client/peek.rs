//! `swarm peek`: what is on a worker's screen.

use super::connect::QUICK;
use super::{Ctx, Ended};
use crate::cli::Peek;
use crate::protocol::{Call, PeekParams, Peeked};

pub(super) async fn run(ctx: &Ctx, args: &Peek) -> Ended {
    let params = PeekParams { name: args.name.to_string(), lines: args.lines };
    let peeked: Peeked = ctx.ask(&Call::Peek(params), QUICK).await?;
    ctx.out.lines(&peeked.lines)?;
    Ok(0)
}
