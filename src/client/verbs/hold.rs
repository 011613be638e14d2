//! `swarm hold` and `swarm release`: leave workers to a person until they are released.

use crate::cli::{HoldArgs, PageFormat};
use crate::client::batch::{change, names};
use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::protocol::{Call, Named};

pub(super) async fn run(ctx: &ClientContext, args: HoldArgs) -> CommandResult {
    let names = names(ctx, &args.names, false, |_| false).await?;
    let call = |name| Call::Hold(Named { name });
    let (status, held) = change(ctx, names, PageFormat::Text, call, ("holding", "is already held")).await?;
    if !held.is_empty() {
        ctx.out.hint(&format!("swarm goes on after: swarm release {}", held.join(" ")));
    }
    Ok(status)
}

pub(super) async fn release(ctx: &ClientContext, args: HoldArgs) -> CommandResult {
    let names = names(ctx, &args.names, false, |_| false).await?;
    let call = |name| Call::Release(Named { name });
    Ok(change(ctx, names, PageFormat::Text, call, ("released", "is not held")).await?.0)
}
