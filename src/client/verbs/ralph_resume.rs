//! `swarm ralph resume`: let paused or lost loops go on.

use swarm_state::model::Status;

use crate::cli::RalphResume;
use crate::client::batch::names;
use crate::client::context::ClientContext;
use crate::client::ralph::change;
use crate::client::spawn_params::named_env;
use crate::client::worker::is_loop;
use crate::out::CommandResult;
use crate::protocol::{Call, ResumeParams, WorkerView};

pub(super) async fn run(ctx: &ClientContext, args: &RalphResume) -> CommandResult {
    let env = named_env(&args.env)?;
    let keys = env.keys().cloned().collect::<Vec<_>>().join(", ");
    let can_resume = |w: &WorkerView| is_loop(w) && matches!(w.status, Status::Paused | Status::Lost);
    let names = names(ctx, &args.names, args.all, can_resume).await?;
    if names.is_empty() {
        ctx.out.note("no paused or lost loops");
        return Ok(0);
    }
    let call = |name| Call::RalphResume(ResumeParams { name, env: env.clone() });
    let ended = change(ctx, names, args.format, call, ("resumed", "is not paused")).await?;
    if !keys.is_empty() {
        ctx.out.note(&format!("the agent's next run gets the new value of {keys}"));
    }
    Ok(ended)
}
