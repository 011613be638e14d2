//! `swarm interrupt`: press Ctrl-C in a worker.

use crate::cli::Interrupt;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::protocol::{Call, Empty, Named};

pub(super) async fn run(ctx: &ClientContext, args: &Interrupt) -> CommandResult {
    let call = Call::Interrupt(Named { name: args.name.to_string() });
    let Empty {} = ctx.call(&call, QUICK_TIMEOUT).await?;
    Ok(0)
}
