//! `swarm allow`: let a sandboxed worker reach further hosts.

use crate::cli::Allow;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::protocol::{AllowParams, Call, Empty};

pub(super) async fn run(ctx: &ClientContext, args: Allow) -> CommandResult {
    let hosts = args.hosts.into_iter().flat_map(|list| list.0).collect();
    let params = AllowParams { name: args.name.to_string(), hosts };
    let _: Empty = ctx.call(&Call::Allow(params), QUICK_TIMEOUT).await?;
    Ok(0)
}
