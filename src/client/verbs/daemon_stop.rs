//! `swarm daemon stop`: stop the daemon. Agents go on in tmux.

use tokio::time::Instant;

use crate::client::connect;
use crate::client::context::Context;
use crate::client::daemon::{ANSWER, end, gone, say_paused};
use crate::out::CommandResult;
use crate::protocol::{Call, DaemonStopped, Empty};

pub(super) async fn run(ctx: &Context) -> CommandResult {
    let paths = ctx.paths()?;
    let deadline = Instant::now() + ANSWER;
    let Some(mut client) = connect::connect_existing(&paths).await? else {
        ctx.out.line("daemon not running")?;
        return Ok(0);
    };
    let stopped: DaemonStopped = end(&paths, &mut client, &Call::DaemonStop(Empty {}), deadline).await?;
    gone(&paths, client).await?;
    ctx.out.line("daemon stopped")?;
    stopped.warnings.iter().for_each(|warning| ctx.out.warn(warning));
    if stopped.agents > 0 {
        let agents =
            if stopped.agents == 1 { "1 agent goes".into() } else { format!("{} agents go", stopped.agents) };
        ctx.out.line(&format!("{agents} on in tmux; end them with swarm kill"))?;
    }
    say_paused(ctx, &stopped.paused)?;
    Ok(0)
}
