//! `swarm spawn`: start a worker, and follow it if it is a loop.

use std::time::Duration;

use crate::cli::{PageFormat, Spawn};
use crate::client::connect::SLOW_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::follow;
use crate::client::spawn_params::{load_settings, params, spawn_line};
use crate::out::CommandResult;
use crate::protocol::{Call, Spawned};

pub(super) async fn run(ctx: &ClientContext, args: Spawn) -> CommandResult {
    let settings = load_settings(ctx)?;
    let mut warnings = Vec::new();
    let params = params(&args, &settings, &mut warnings)?;
    for warning in &warnings {
        ctx.out.warn(warning);
    }
    let limit = SLOW_TIMEOUT + Duration::from_secs(if params.ready_wait { params.ready_timeout } else { 0 });
    let max = params.ralph.as_ref().map(|r| r.max_iterations.into());
    let call = Call::Spawn(Box::new(params));
    let spawned: Spawned = ctx.call(&call, limit).await?;
    for warning in &spawned.warnings {
        ctx.out.warn(warning);
    }
    let follows = max.is_some() && !args.detach;
    let signals = follows.then(follow::FollowSignals::new).transpose()?;
    let printed = match args.format {
        PageFormat::Json => ctx.out.json(&spawned.worker),
        PageFormat::Text => ctx.out.line(&spawn_line("spawned", &spawned.worker, max)),
    };
    let printed = printed.map(|()| 0);
    let Some(signals) = signals else { return printed };
    if printed.is_err() {
        return follow::failed_if_unread(printed);
    }
    let lines =
        if args.format == PageFormat::Text { follow::LineTarget::Stdout } else { follow::LineTarget::Stderr };
    let options = follow::FollowOptions { stream: args.ralph.stream, lines, progress: false };
    follow::run(ctx, &spawned, options, signals).await
}
