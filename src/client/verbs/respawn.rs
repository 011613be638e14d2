//! `swarm respawn`: start a worker again with the parameters of its spawn, and follow it if it is a loop.

use std::time::Duration;

use crate::cli::{PageFormat, Respawn};
use crate::client::call::request_name;
use crate::client::connect::SLOW_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::follow;
use crate::client::spawn_params::spawn_line;
use crate::client::worker::is_loop;
use crate::out::CommandResult;
use crate::protocol::{Call, RespawnParams, Spawned};

/// How long the end of the previous run may take. Its processes get some seconds to end by themselves.
const RUN_END_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn run(ctx: &ClientContext, args: &Respawn) -> CommandResult {
    let call = Call::Respawn(RespawnParams {
        name: args.name.to_string(),
        clean_first: args.clean_first,
        discard_ignored: args.discard_ignored,
        request: Some(request_name()),
    });
    let spawned: Spawned = ctx.call(&call, RUN_END_TIMEOUT + SLOW_TIMEOUT).await?;
    for warning in &spawned.warnings {
        ctx.out.warn(warning);
    }
    let max = spawned.worker.metadata["max_iterations"].as_u64();
    let follows = is_loop(&spawned.worker) && !args.detach;
    let signals = follows.then(follow::FollowSignals::new).transpose()?;
    let printed = match args.format {
        PageFormat::Json => ctx.out.json(&spawned.worker),
        PageFormat::Text => ctx.out.line(&spawn_line("respawned", &spawned.worker, max)),
    };
    let printed = printed.map(|()| 0);
    let Some(signals) = signals else { return printed };
    if printed.is_err() {
        return follow::failed_if_unread(printed);
    }
    let lines =
        if args.format == PageFormat::Text { follow::LineTarget::Stdout } else { follow::LineTarget::Stderr };
    let options = follow::FollowOptions { stream: args.stream, lines, progress: false };
    follow::run(ctx, &spawned, options, signals).await
}
