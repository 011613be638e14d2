//! `swarm daemon status`: show the daemon.

use serde_json::{Value, json};

use crate::cli::{PageFormat, PageFormatArg};
use crate::client::connect::{self, QUICK_TIMEOUT};
use crate::client::context::ClientContext;
use crate::client::daemon::print_paused;
use crate::client::worker::local_time;
use crate::out::CommandResult;
use crate::owner;
use crate::protocol::{Call, DaemonView, Empty};

pub(super) async fn run(ctx: &ClientContext, args: &PageFormatArg) -> CommandResult {
    let place = ctx.place()?;
    let Some(mut client) = connect::connect_existing(&place).await? else {
        if let Some(error) = owner::elsewhere(&place) {
            return Err(error.into());
        }
        match args.format {
            PageFormat::Json => ctx.out.json(&object(None))?,
            PageFormat::Text => ctx.out.line("daemon not running")?,
        }
        return Ok(3);
    };
    let view: DaemonView = client.call(&Call::DaemonStatus(Empty {}), QUICK_TIMEOUT).await?;
    match args.format {
        PageFormat::Json => ctx.out.json(&object(Some(&view)))?,
        PageFormat::Text => {
            ctx.out.lines(&page(&view))?;
            print_paused(ctx, &view.paused_by_shutdown)?;
        }
    }
    Ok(0)
}

/// The fields of a daemon; null if none is running.
fn object(view: Option<&DaemonView>) -> Value {
    let keys = ["pid", "version", "protocol", "started", "swarm_dir", "socket", "tmux", "live", "workers"];
    let (mut object, view) = (json!({"running": view.is_some()}), json!(view));
    for key in keys.into_iter().chain(["paused_by_shutdown"]) {
        object[key] = view[key].clone();
    }
    object
}

fn page(view: &DaemonView) -> Vec<String> {
    vec![
        format!("daemon running (pid {})", view.pid),
        format!("  version    {} (protocol {})", view.version, view.protocol),
        format!("  started    {}", local_time(&view.started)),
        format!("  directory  {}", view.swarm_dir.display()),
        format!("  socket     {}", view.socket.display()),
        format!("  tmux       {}", view.tmux.as_deref().unwrap_or("not used yet")),
        format!("  workers    {} live, {} in all", view.live, view.workers),
    ]
}
