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
    json!({
        "running": view.is_some(),
        "pid": view.map(|view| view.pid),
        "version": view.map(|view| &view.version),
        "protocol": view.map(|view| view.protocol),
        "started": view.map(|view| &view.started),
        "swarm_dir": view.map(|view| &view.swarm_dir),
        "socket": view.map(|view| &view.socket),
        "tmux": view.and_then(|view| view.tmux.as_ref()),
        "live": view.map(|view| view.live),
        "workers": view.map(|view| view.workers),
        "paused_by_shutdown": view.map(|view| &view.paused_by_shutdown),
    })
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
