//! `swarm respawn`: a worker once more, as it was spawned; a loop is followed as by `spawn`.

use std::time::Duration;

use crate::cli::{PageFormat, Respawn};
use crate::client::call::request_name;
use crate::client::connect::SLOW;
use crate::client::context::Context;
use crate::client::follow;
use crate::client::spawn_params::line;
use crate::client::worker::is_loop;
use crate::out::CommandResult;
use crate::protocol::{Call, RespawnParams, Spawned};

/// How long the end of the run before may take: its processes get some seconds to end by themselves.
const END: Duration = Duration::from_secs(60);

pub(super) async fn run(ctx: &Context, args: &Respawn) -> CommandResult {
    let call = Call::Respawn(RespawnParams {
        name: args.name.to_string(),
        clean_first: args.clean_first,
        discard_ignored: args.discard_ignored,
        request: Some(request_name()),
    });
    let spawned: Spawned = ctx.call(&call, END + SLOW).await?;
    for warning in &spawned.warnings {
        ctx.out.warn(warning);
    }
    let max = spawned.worker.metadata["max_iterations"].as_u64();
    let follows = is_loop(&spawned.worker) && !args.detach;
    let signals = follows.then(follow::Signals::new).transpose()?;
    let said = match args.format {
        PageFormat::Json => ctx.out.json(&spawned.worker),
        PageFormat::Text => ctx.out.line(&line("respawned", &spawned.worker, max)),
    };
    let said = said.map(|()| 0);
    let Some(signals) = signals else { return said };
    if said.is_err() {
        return follow::unread(said);
    }
    let lines = if args.format == PageFormat::Text { follow::Lines::Stdout } else { follow::Lines::Stderr };
    let options = follow::Options { stream: args.stream, lines, progress: false };
    follow::run(ctx, &spawned, options, signals).await
}
