//! `swarm release`: end the hold of workers.

use super::hold::change;
use crate::cli::ReleaseArgs;
use crate::client::batch::names;
use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::protocol::Call;

pub(super) async fn run(ctx: &ClientContext, args: ReleaseArgs) -> CommandResult {
    let names = names(ctx, &args.names, false, |_| false).await?;
    let (status, _) = change(ctx, names, Call::Release, ("released", "is not held")).await?;
    Ok(status)
}
