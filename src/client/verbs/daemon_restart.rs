//! `swarm daemon restart`: replace the daemon by a new one without pausing anything.

use nix::sys::signal::{Signal, kill};
use tokio::time::Instant;

use crate::client::connect::{self, Probe};
use crate::client::context::Context;
use crate::client::daemon::{ANSWER, GONE, end, gone, process, say_started, wait_gone};
use crate::error::{Error, Result};
use crate::out::CommandResult;
use crate::paths::Paths;
use crate::protocol::{Call, DaemonHello, Empty};

pub(super) async fn run(ctx: &Context) -> CommandResult {
    let paths = ctx.paths()?;
    let deadline = Instant::now() + ANSWER;
    match connect::probe(&paths).await? {
        Probe::Ready(mut client) => {
            let Empty {} = end(&paths, &mut client, &Call::DaemonHandover(Empty {}), deadline).await?;
            gone(&paths, client).await?;
        }
        Probe::WrongVersion(daemon) => end_other_version(ctx, &paths, &daemon).await?,
        Probe::Nobody => {}
    }
    // A follower may have started it before us; it is a new one all the same.
    let client = connect::connect(&paths).await?;
    say_started(ctx, client, "daemon started").await
}

/// A daemon that speaks another protocol cannot be asked for a handover. A SIGTERM ends every version of
/// it in order; it pauses the loops, and the new daemon says which.
async fn end_other_version(ctx: &Context, paths: &Paths, daemon: &DaemonHello) -> Result<()> {
    let Some(pid) = process(daemon.pid) else { return Err(connect::wrong_version(daemon)) };
    ctx.out
        .warn(&format!("the daemon of swarm {} is ended by a signal, which pauses its loops", daemon.daemon));
    kill(pid, Signal::SIGTERM).map_err(|e| Error::system(format!("cannot end the daemon (pid {pid})"), e))?;
    wait_gone(paths, daemon.pid, Instant::now() + GONE).await
}
