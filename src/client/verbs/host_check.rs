//! `swarm host check`: connect to a host and print what it runs.

use serde_json::json;

use crate::cli::{HostCheck, PageFormat};
use crate::client::connect::{self, QUICK_TIMEOUT};
use crate::client::context::ClientContext;
use crate::client::fleet::named_place;
use crate::out::CommandResult;
use crate::protocol::{Call, Empty, Listing, RELEASE};

pub(super) async fn run(ctx: &ClientContext, args: &HostCheck) -> CommandResult {
    let place = named_place(ctx, &args.name)?;
    let mut client = connect::connect(&place).await?;
    let listing: Listing = client.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
    let (release, pid) = (&client.daemon.daemon, client.daemon.pid);
    if args.format == PageFormat::Json {
        let workers = listing.workers.len();
        ctx.out.json(&json!({"name": args.name, "swarm": release, "pid": pid, "workers": workers}))?;
        return Ok(0);
    }
    let count =
        swarm_state::notice::counted(u32::try_from(listing.workers.len()).unwrap_or(u32::MAX), "worker");
    ctx.out.line(&format!("{}: its daemon (pid {pid}) is swarm {release}, with {count}", args.name))?;
    if release != RELEASE {
        ctx.out.note(&format!("this is swarm {RELEASE}"));
    }
    Ok(0)
}
