//! `swarm spawn`: check what was typed, call, say what was spawned, and follow a loop.

use std::time::Duration;

use crate::cli::{PageFormat, Spawn};
use crate::client::connect::SLOW;
use crate::client::context::Context;
use crate::client::follow;
use crate::client::spawn_params::{line, load_settings, params};
use crate::out::CommandResult;
use crate::protocol::{Call, Spawned};

pub(super) async fn run(ctx: &Context, args: Spawn) -> CommandResult {
    let settings = load_settings(ctx)?;
    let mut warnings = Vec::new();
    let params = params(&args, &settings, &mut warnings)?;
    for warning in &warnings {
        ctx.out.warn(warning);
    }
    let limit = SLOW + Duration::from_secs(if params.ready_wait { params.ready_timeout } else { 0 });
    let max = params.ralph.as_ref().map(|r| r.max_iterations.into());
    let call = Call::Spawn(Box::new(params));
    let spawned: Spawned = ctx.call(&call, limit).await?;
    for warning in &spawned.warnings {
        ctx.out.warn(warning);
    }
    let follows = max.is_some() && !args.detach;
    let signals = follows.then(follow::Signals::new).transpose()?;
    let said = match args.format {
        PageFormat::Json => ctx.out.json(&spawned.worker),
        PageFormat::Text => ctx.out.line(&line("spawned", &spawned.worker, max)),
    };
    let said = said.map(|()| 0);
    let Some(signals) = signals else { return said };
    if said.is_err() {
        return follow::unread(said);
    }
    let lines = if args.format == PageFormat::Text { follow::Lines::Stdout } else { follow::Lines::Stderr };
    let options = follow::Options { stream: args.ralph.stream, lines, progress: false };
    follow::run(ctx, &spawned, options, signals).await
}
