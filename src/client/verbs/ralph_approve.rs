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
    let files = approved.files.iter().map(|file| format!("approved {}", printable(file)));
    let tests =
        approved.tests.iter().map(|tests| format!("approved the tests that ran: {}", printable(tests)));
    ctx.out.lines(&files.chain(tests).collect::<Vec<_>>())?;
    Ok(0)
}
