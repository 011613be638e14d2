//! `swarm peek`: show a worker's screen.

use serde_json::json;

use crate::cli::{PageFormat, Peek};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::protocol::{Call, PeekParams, Peeked};

pub(super) async fn run(ctx: &ClientContext, args: &Peek) -> CommandResult {
    let params = PeekParams { name: args.name.to_string(), lines: args.lines, styled: false };
    let peeked: Peeked = ctx.call(&Call::Peek(params), QUICK_TIMEOUT).await?;
    match args.format {
        PageFormat::Text => ctx.out.lines(&peeked.lines)?,
        PageFormat::Json => ctx.out.json(&json!({
            "name": args.name, "run": peeked.run, "live": peeked.live, "alternate": peeked.alternate,
            "lines": peeked.lines
        }))?,
    }
    Ok(0)
}
