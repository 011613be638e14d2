//! `swarm ralph pause`: start no further agent.

use crate::cli::RalphPause;
use crate::client::context::ClientContext;
use crate::client::ralph::change;
use crate::out::CommandResult;
use crate::protocol::{Call, Named};

pub(super) async fn run(ctx: &ClientContext, args: &RalphPause) -> CommandResult {
    let call = Call::RalphPause(Named { name: args.name.to_string() });
    change(ctx, args.name.as_str(), call, "paused", "is already paused").await
}
