//! `swarm ralph resume`: let paused or lost loops go on.

use swarm_state::model::Status;

use crate::cli::RalphResume;
use crate::client::context::ClientContext;
use crate::client::ralph::{change, loops};
use crate::client::spawn_params::named_env;
use crate::out::CommandResult;
use crate::protocol::{Call, ResumeParams};

pub(super) async fn run(ctx: &ClientContext, args: &RalphResume) -> CommandResult {
    let env = named_env(&args.env)?;
    let keys = env.keys().cloned().collect::<Vec<_>>().join(", ");
    let names = loops(ctx, &args.names, |status| matches!(status, Status::Paused | Status::Lost)).await?;
    if names.is_empty() {
        ctx.out.note("no paused or lost loops");
        return Ok(0);
    }
    let call = |name| Call::RalphResume(ResumeParams { name, env: env.clone() });
    let ended = change(ctx, names, call, ("resumed", "is not paused")).await?;
    if !keys.is_empty() {
        ctx.out.note(&format!("the agent's next run gets the new value of {keys}"));
    }
    Ok(ended)
}
