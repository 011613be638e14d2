//! `swarm daemon take-over`: make this host the owner of swarm's directory in place of a host that is gone.
//!
//! The lock file is replaced first. A daemon on the former host that still runs notices that and ends without writing
//! and without ending an agent. Only after it had time for that, a daemon starts here. It ends the runs of the former
//! host in its records, and starts none of them by itself.

use std::io::IsTerminal;
use std::time::Duration;

use swarm_state::advice::start_again;
use swarm_state::cause::Cause;
use swarm_state::notice::counted;
use swarm_state::owner::{DirectoryOwner, Ownership};
use tokio::time::sleep;

use crate::cli::DaemonTakeOver;
use crate::client::connect::{self, QUICK_TIMEOUT};
use crate::client::context::ClientContext;
use crate::client::daemon::print_started;
use crate::client::worker::is_loop;
use crate::error::{Error, ErrorCode, Result};
use crate::out::CommandResult;
use crate::owner;
use crate::paths::Paths;
use crate::protocol::{Call, Empty, Listing};
use crate::shell::quote_path;

/// How long a daemon on the former host has to notice that it was replaced; it looks every two seconds.
const NOTICE_PERIOD: Duration = Duration::from_secs(5);

pub(super) async fn run(ctx: &ClientContext, args: &DaemonTakeOver) -> CommandResult {
    let place = ctx.place()?;
    let paths: &Paths = &place;
    if let Some(client) = connect::connect_existing(&place).await? {
        return Err(runs_here(paths, client.daemon.pid).into());
    }
    let former = match owner::look(paths) {
        (Some(former), Ownership::OtherHost | Ownership::Ask) => former,
        (Some(former), Ownership::Live) => return Err(runs_here(paths, former.pid).into()),
        _ => {
            ctx.out.line("no daemon on another host owns the directory; nothing to take over")?;
            return Ok(0);
        }
    };
    if !args.yes && !confirm(ctx, paths, &former)? {
        ctx.out.line("nothing was changed")?;
        return Ok(1);
    }
    owner::replace(paths, &former)?;
    sleep(NOTICE_PERIOD).await;
    if let Some(error) = owner::elsewhere(paths) {
        return Err(error.into());
    }
    let client = connect::connect(&place).await?;
    print_started(
        ctx,
        client,
        &format!("took over '{}' from {}; daemon started", shown(paths), former.describe()),
    )
    .await?;
    if let Some(machine) = &former.machine {
        let (host, socket) = (&machine.host, quote_path(&paths.tmux_socket()));
        ctx.out.hint(&format!(
            "to end agents that still run on {host}: ssh {host} tmux -S {socket} kill-server"
        ));
    }
    print_lost(ctx).await
}

fn shown(paths: &Paths) -> String {
    paths.root().display().to_string()
}

fn runs_here(paths: &Paths, pid: u32) -> Error {
    let message = format!("a daemon on this host owns '{}' (pid {pid})", shown(paths));
    Error::new(ErrorCode::Conflict, message).hint("swarm daemon restart")
}

/// Asks a person. Without a terminal, the flag is required.
fn confirm(ctx: &ClientContext, paths: &Paths, former: &DirectoryOwner) -> Result<bool> {
    let (dir, who) = (shown(paths), former.describe());
    if !std::io::stdin().is_terminal() {
        let message = format!("'{dir}' belongs to {who}; to take it over without a question, use --yes");
        return Err(Error::usage(message).hint("swarm daemon take-over --yes"));
    }
    ctx.out.note(&format!(
        "'{dir}' belongs to {who}.\nIts runs are lost and can be repeated here. If that host still runs, its agents go on \
         without a daemon: end them there.\nTake it over? [y/N]"
    ));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| Error::system("cannot read the answer", e))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

async fn print_lost(ctx: &ClientContext) -> CommandResult {
    let listing: Listing = ctx.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
    let is_lost = |cause: &Option<Cause>| matches!(cause, Some(Cause::Lost { host: Some(_) }));
    let lost: Vec<_> = listing.workers.iter().filter(|worker| is_lost(&worker.cause)).collect();
    if lost.is_empty() {
        return Ok(0);
    }
    ctx.out.line(&format!("{} lost; to start again:", counted(lost.len(), "worker")))?;
    let lines = lost.iter().map(|worker| format!("  {}", start_again(&worker.name, is_loop(worker))));
    ctx.out.lines(&lines.collect::<Vec<_>>())?;
    Ok(0)
}
