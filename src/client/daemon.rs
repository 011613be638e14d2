//! What the `daemon` verbs share: which loops a shutdown paused, and the end of a daemon.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use super::connect::{self, Client, Probe, QUICK};
use super::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Failure};
use crate::paths::Paths;
use crate::protocol::{Call, DaemonView, Empty};

/// How long a daemon may take, the connection included, to say that it ends.
pub(super) const ANSWER: Duration = Duration::from_secs(15);

/// How long a daemon may take to go away after it said it would.
pub(super) const GONE: Duration = Duration::from_secs(20);

pub(super) async fn say_started(ctx: &Context, mut client: Client, how: &str) -> CommandResult {
    let view: DaemonView = client.call(&Call::DaemonStatus(Empty {}), QUICK).await?;
    ctx.out.line(&format!("{how} (pid {})", view.pid))?;
    say_paused(ctx, &view.paused_by_shutdown)?;
    Ok(0)
}

/// Which loops a shutdown paused, and how each goes on.
pub(super) fn say_paused(ctx: &Context, paused: &[String]) -> Result<(), Failure> {
    if paused.is_empty() {
        return Ok(());
    }
    let loops =
        if paused.len() == 1 { "1 loop is".to_owned() } else { format!("{} loops are", paused.len()) };
    ctx.out.line(&format!("{loops} paused by the shutdown; to go on:"))?;
    let lines: Vec<String> = paused.iter().map(|name| format!("  swarm ralph resume {name}")).collect();
    ctx.out.lines(&lines)
}

/// Asks a daemon to end; of one that hangs, says what is left to do.
pub(super) async fn end<T: DeserializeOwned>(
    paths: &Paths,
    client: &mut Client,
    call: &Call,
    deadline: Instant,
) -> Result<T> {
    let pid = client.daemon.pid;
    let answer = client.call(call, deadline.saturating_duration_since(Instant::now())).await;
    answer.map_err(|error| match error.code {
        ErrorCode::Timeout => error.hint(connect::last_resort(&paths.daemon_log(), pid)),
        _ => error,
    })
}

/// Waits until the daemon has hung up, left its socket and ended.
pub(super) async fn gone(paths: &Paths, client: Client) -> Result<()> {
    let deadline = Instant::now() + GONE;
    let pid = client.daemon.pid;
    let _ = timeout_at(deadline, client.hang_up()).await;
    wait_gone(paths, pid, deadline).await
}

pub(super) async fn wait_gone(paths: &Paths, pid: u32, deadline: Instant) -> Result<()> {
    loop {
        let left = !matches!(connect::probe(paths).await, Ok(Probe::Ready(c)) if c.daemon.pid == pid);
        if left && !alive(pid) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let message = format!("the daemon (pid {pid}) has not ended after {} s", GONE.as_secs());
            let hint = connect::last_resort(&paths.daemon_log(), pid);
            return Err(Error::new(ErrorCode::Timeout, message).hint(hint));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

pub(super) fn process(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().filter(|pid| *pid > 1).map(Pid::from_raw)
}

fn alive(pid: u32) -> bool {
    process(pid).is_some_and(|pid| kill(pid, None) != Err(Errno::ESRCH))
}
