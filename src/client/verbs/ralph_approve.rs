//! `swarm ralph approve`: accept changes to watched files.

use serde_json::json;
use swarm_state::screen::printable;

use crate::cli::{PageFormat, RalphApprove};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::ralph::no_loop;
use crate::out::CommandResult;
use crate::protocol::{Approved, Call, Named};

pub(super) async fn run(ctx: &ClientContext, args: &RalphApprove) -> CommandResult {
    let name = args.name.as_str();
    let call = Call::RalphApprove(Named { name: name.to_owned() });
    let approved: Approved = ctx.call(&call, QUICK_TIMEOUT).await.map_err(|e| no_loop(name, e))?;
    if approved.files.is_empty() {
        ctx.out.warn(&format!("no protected file of '{name}' has changed"));
    }
    if args.format == PageFormat::Json {
        ctx.out.json(&json!({"name": name, "files": approved.files}))?;
        return Ok(0);
    }
    for file in &approved.files {
        ctx.out.line(&format!("approved {}", printable(file)))?;
    }
    Ok(0)
}
