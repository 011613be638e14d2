//! `swarm respawn`: start a worker again with the parameters of its spawn, and follow it if it is a loop.

use std::time::Duration;

use crate::cli::Respawn;
use crate::client::connect::SLOW_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::spawn_params::request_name;
use crate::out::CommandResult;
use crate::protocol::{Call, RespawnParams, Spawned};

use super::spawn::{StartReport, print_and_follow};

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
    let report = StartReport {
        word: "respawned",
        note: String::new(),
        format: args.format,
        detach: args.detach,
        stream: args.stream,
    };
    print_and_follow(ctx, &spawned, report).await
}
