//! `swarm ralph approve`: accept changes to watched files.

use serde_json::json;
use swarm_state::screen::printable;

use crate::cli::{PageFormat, WorkerPage};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::protocol::{Approved, Call, Named};

pub(super) async fn run(ctx: &ClientContext, args: &WorkerPage) -> CommandResult {
    let name = args.name.as_str();
    let call = Call::RalphApprove(Named { name: name.to_owned() });
    let approved: Approved = ctx.call(&call, QUICK_TIMEOUT).await?;
    if approved.files.is_empty() && approved.tests.is_empty() {
        ctx.out.warn(&format!("no protected file of '{name}' has changed"));
    }
    if args.format == PageFormat::Json {
        ctx.out.json(&json!({"name": name, "files": approved.files, "tests": approved.tests}))?;
        return Ok(0);
    }
    for file in &approved.files {
        ctx.out.line(&format!("approved {}", printable(file)))?;
    }
    for tests in &approved.tests {
        ctx.out.line(&format!("approved the tests that ran: {}", printable(tests)))?;
    }
    Ok(0)
}
