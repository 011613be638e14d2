//! `swarm daemon start`: start the daemon when it does not run.

use crate::client::connect;
use crate::client::context::Context;
use crate::client::daemon::say_started;
use crate::out::CommandResult;

pub(super) async fn run(ctx: &Context) -> CommandResult {
    let (client, started) = connect::connect_or_start(&ctx.paths()?).await?;
    say_started(ctx, client, if started { "daemon started" } else { "daemon already running" }).await
}
