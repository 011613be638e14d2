//! `swarm ralph diff`: print what an iteration changed.

use crate::cli::RalphDiff;
use crate::client::connect::SLOW;
use crate::client::context::Context;
use crate::client::ralph::no_loop;
use crate::out::CommandResult;
use crate::protocol::{Call, DiffParams, DiffView};

pub(super) async fn run(ctx: &Context, args: &RalphDiff) -> CommandResult {
    let name = args.name.as_str();
    let call = Call::RalphDiff(DiffParams { name: name.to_owned(), iteration: args.iteration });
    let view: DiffView = ctx.call(&call, SLOW).await.map_err(|e| no_loop(name, e))?;
    ctx.out.raw(&swarm_state::screen::strip(&view.text))?;
    if view.truncated {
        ctx.out.warn("the diff is longer than this");
        ctx.out.hint(&format!("git diff {} {}", view.from, view.to));
    }
    Ok(0)
}
