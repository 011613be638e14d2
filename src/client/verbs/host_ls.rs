//! `swarm host ls`: list the hosts of the settings and whether they answer.

use chrono::Local;
use serde_json::json;

use crate::cli::{PageFormat, PageFormatArg};
use crate::client::context::ClientContext;
use crate::client::fleet::{HostListing, listings};
use crate::out::json::error_object;
use crate::out::{CommandResult, table};

pub(super) async fn run(ctx: &ClientContext, args: &PageFormatArg) -> CommandResult {
    let listings = listings(ctx).await?;
    let live = |host: &HostListing| host.workers.iter().filter(|worker| worker.status.is_live()).count();
    if args.format == PageFormat::Json {
        let object = |host: &HostListing| {
            json!({
                "name": host.name(),
                "ssh": host.place.host().and_then(|host| host.spec.ssh.as_ref()),
                "reachable": host.error.is_none(),
                "live": live(host),
                "workers": host.workers.len(),
                "answered": host.answered.map(|at| at.to_rfc3339()),
                "error": host.error.as_ref().map(error_object),
            })
        };
        ctx.out.json_list(&listings.iter().map(object).collect::<Vec<_>>())?;
        return Ok(0);
    }
    let now = Local::now().fixed_offset();
    let row = |host: &HostListing| {
        let state = if host.error.is_some() { host.silent_for(now) } else { "reachable".to_owned() };
        let ssh = host.place.host().and_then(|host| host.spec.ssh.as_deref()).unwrap_or("-").to_owned();
        let reason = host.error.as_ref().map_or_else(String::new, |error| error.message.clone());
        vec![host.name().to_owned(), ssh, state, live(host).to_string(), reason]
    };
    let rows: Vec<Vec<String>> = listings.iter().map(row).collect();
    ctx.out.lines(&table(
        &["HOST", "SSH", "STATUS", "LIVE", "WHY"],
        &rows,
        &[(4, 8), (1, 8)],
        ctx.out.width,
    ))?;
    Ok(0)
}
