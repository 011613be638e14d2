//! `swarm daemon restart`: replace the daemon by a new one without pausing anything.

use nix::sys::signal::{Signal, kill};
use tokio::time::Instant;

use crate::client::connect::{self, DaemonProbe};
use crate::client::context::ClientContext;
use crate::client::daemon::{
    DAEMON_EXIT_TIMEOUT, STOP_ANSWER_TIMEOUT, end, pid_of, print_started, wait_for_exit, wait_for_exit_of,
};
use crate::error::{Error, Result};
use crate::out::CommandResult;
use crate::protocol::{Call, DaemonHello, Empty};
use crate::remote::Place;

pub(super) async fn run(ctx: &ClientContext) -> CommandResult {
    let place = ctx.place()?;
    let deadline = Instant::now() + STOP_ANSWER_TIMEOUT;
    match connect::probe(&place).await? {
        DaemonProbe::Ready(mut client) => {
            let Empty {} = end(&place, &mut client, &Call::DaemonHandover(Empty {}), deadline).await?;
            wait_for_exit(&place, client).await?;
        }
        DaemonProbe::WrongVersion(daemon) => end_other_version(ctx, &place, &daemon).await?,
        DaemonProbe::Nobody => {}
    }
    // A follower may have started the new daemon already.
    let client = connect::connect(&place).await?;
    print_started(ctx, client, "daemon started").await
}

/// Ends a daemon of another protocol version, which cannot hand over. SIGTERM ends every version in order. It pauses
/// the loops, and the new daemon lists them.
async fn end_other_version(ctx: &ClientContext, place: &Place, daemon: &DaemonHello) -> Result<()> {
    let Some(pid) = pid_of(daemon.pid) else { return Err(connect::wrong_version(daemon)) };
    ctx.out
        .warn(&format!("ending the daemon of swarm {} with a signal, which pauses its loops", daemon.daemon));
    kill(pid, Signal::SIGTERM).map_err(|e| Error::system(format!("cannot end the daemon (pid {pid})"), e))?;
    wait_for_exit_of(place, daemon.pid, Instant::now() + DAEMON_EXIT_TIMEOUT).await
}
