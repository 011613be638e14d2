//! `swarm ralph restore`: check out an iteration's tree into a new worktree.

use serde_json::json;

use crate::cli::{PageFormat, RalphRestore};
use crate::client::connect::SLOW_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::ralph::no_loop;
use crate::client::typed_path::absolute;
use crate::out::CommandResult;
use crate::protocol::{Call, RestoreParams, Restored};

pub(super) async fn run(ctx: &ClientContext, args: &RalphRestore) -> CommandResult {
    let name = args.name.as_str();
    let call = Call::RalphRestore(RestoreParams {
        name: name.to_owned(),
        iteration: args.iteration,
        dir: args.dir.as_deref().map(absolute).transpose()?,
        branch: args.branch.clone(),
    });
    let made: Restored = ctx.call(&call, SLOW_TIMEOUT).await.map_err(|e| no_loop(name, e))?;
    if args.format == PageFormat::Json {
        ctx.out.json(&json!({
            "name": name, "iteration": args.iteration, "path": made.path, "branch": made.branch,
            "ref": made.reference
        }))?;
        return Ok(0);
    }
    ctx.out.note(&format!("restored {} on branch {}", made.reference, made.branch));
    ctx.out.line(&made.path.display().to_string())?;
    Ok(0)
}
