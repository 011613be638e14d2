//! `swarm daemon start`: start the daemon when it does not run.

use crate::client::connect;
use crate::client::context::ClientContext;
use crate::client::daemon::print_started;
use crate::out::CommandResult;

pub(super) async fn run(ctx: &ClientContext) -> CommandResult {
    let (client, started) = connect::connect_or_start(&ctx.place()?).await?;
    print_started(ctx, client, if started { "daemon started" } else { "daemon already running" }).await
}
