//! `swarm ralph diff`: print what an iteration changed.

use serde_json::json;

use crate::cli::{PageFormat, RalphDiff};
use crate::client::connect::SLOW_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::ralph::no_loop;
use crate::out::CommandResult;
use crate::protocol::{Call, DiffParams, DiffView};

pub(super) async fn run(ctx: &ClientContext, args: &RalphDiff) -> CommandResult {
    let name = args.name.as_str();
    let call = Call::RalphDiff(DiffParams { name: name.to_owned(), iteration: args.iteration });
    let view: DiffView = ctx.call(&call, SLOW_TIMEOUT).await.map_err(|e| no_loop(name, e))?;
    if args.format == PageFormat::Json {
        ctx.out.json(&json!({
            "name": name, "iteration": args.iteration, "from": view.from, "to": view.to, "diff": view.text,
            "truncated": view.truncated
        }))?;
        return Ok(0);
    }
    ctx.out.raw(&swarm_state::screen::strip(&view.text))?;
    if view.truncated {
        ctx.out.warn("the diff is truncated");
        ctx.out.hint(&format!("git diff {} {}", view.from, view.to));
    }
    Ok(0)
}
