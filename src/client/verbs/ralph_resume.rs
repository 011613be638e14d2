//! `swarm ralph resume`: let a paused or lost loop go on.

use crate::cli::RalphResume;
use crate::client::context::ClientContext;
use crate::client::ralph::change;
use crate::client::spawn_params::named_env;
use crate::out::CommandResult;
use crate::protocol::{Call, ResumeParams};

pub(super) async fn run(ctx: &ClientContext, args: &RalphResume) -> CommandResult {
    let env = named_env(&args.env)?;
    let keys = env.keys().cloned().collect::<Vec<_>>().join(", ");
    let call = Call::RalphResume(ResumeParams { name: args.name.to_string(), env });
    let ended = change(ctx, args.name.as_str(), call, "resumed", "is not paused").await?;
    if !keys.is_empty() {
        ctx.out.note(&format!("the agent's next run gets the new value of {keys}"));
    }
    Ok(ended)
}
