//! `swarm daemon stop`: stop the daemon. Agents go on in tmux.

use swarm_state::notice::counted;
use tokio::time::Instant;

use crate::client::connect;
use crate::client::context::ClientContext;
use crate::client::daemon::{STOP_ANSWER_TIMEOUT, end, print_paused, wait_for_exit};
use crate::out::CommandResult;
use crate::owner;
use crate::protocol::{Call, DaemonStopped, Empty};

pub(super) async fn run(ctx: &ClientContext) -> CommandResult {
    let paths = ctx.place()?;
    let deadline = Instant::now() + STOP_ANSWER_TIMEOUT;
    let Some(mut client) = connect::connect_existing(&paths).await? else {
        if let Some(error) = owner::elsewhere(&paths) {
            return Err(error.into());
        }
        ctx.out.line("daemon not running")?;
        return Ok(0);
    };
    let stopped: DaemonStopped = end(&paths, &mut client, &Call::DaemonStop(Empty {}), deadline).await?;
    wait_for_exit(&paths, client).await?;
    ctx.out.line("daemon stopped")?;
    stopped.warnings.iter().for_each(|warning| ctx.out.warn(warning));
    if stopped.agents > 0 {
        let (agents, ending) = (counted(stopped.agents, "agent"), if stopped.agents == 1 { "s" } else { "" });
        ctx.out.line(&format!("{agents} keep{ending} running in tmux; to end them: swarm kill NAME"))?;
    }
    print_paused(ctx, &stopped.paused)?;
    Ok(0)
}
