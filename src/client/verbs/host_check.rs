//! `swarm host check`: connect to a host and print what it runs.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::cli::{HostCheck, PageFormat};
use crate::client::connect::{self, QUICK_TIMEOUT};
use crate::client::context::ClientContext;
use crate::client::fleet::named_place;
use crate::error::Result;
use crate::out::CommandResult;
use crate::protocol::{Call, Empty, Listing, RELEASE};
use crate::remote::{Place, RemoteHost, ssh};

/// The plugin with which Slurm tracks the processes of a job; fails if it loses some.
async fn tracking(place: &Place, host: &RemoteHost) -> Result<String> {
    let printed = ssh::output(place, host, "swarm connect --check-slurm").await?;
    // A login may print lines of its own before it.
    let printed = String::from_utf8_lossy(&printed);
    Ok(swarm_state::screen::printable(printed.lines().next_back().unwrap_or_default()))
}

pub(super) async fn run(ctx: &ClientContext, args: &HostCheck) -> CommandResult {
    let place = named_place(ctx, &args.host)?;
    place.host().inspect(|host| host.is_checked.store(true, Ordering::Relaxed));
    let tracking = match place.host().filter(|host| host.spec.slurm.is_some()) {
        Some(host) => Some(tracking(&place, host).await?),
        None => None,
    };
    let mut client = connect::connect(&place).await?;
    let listing: Listing = client.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
    let (release, pid) = (&client.daemon.daemon, client.daemon.pid);
    if args.format == PageFormat::Json {
        let workers = listing.workers.len();
        ctx.out.json(&json!({"name": args.host, "swarm": release, "pid": pid, "workers": workers, "proctrack": tracking}))?;
        return Ok(0);
    }
    let count = swarm_state::notice::counted(listing.workers.len(), "worker");
    let found = match tracking {
        Some(kind) => format!("Slurm answers and uses {kind}; swarm {release}"),
        None => format!("its daemon (pid {pid}) is swarm {release}"),
    };
    ctx.out.line(&format!("{}: {found}, with {count}", args.host))?;
    if release != RELEASE {
        ctx.out.note(&format!("this is swarm {RELEASE}"));
    }
    Ok(0)
}
