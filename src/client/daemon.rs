//! Shared by the `daemon` verbs: ends a daemon, and prints which loops a shutdown paused.

use std::time::Duration;

use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use super::connect::{self, Client, DaemonProbe, QUICK_TIMEOUT};
use super::context::ClientContext;
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Failure};
use crate::procs;
use crate::protocol::{Call, DaemonView, Empty};
use crate::remote::Place;

/// How long a daemon may take, connection included, to answer a request to end.
pub(super) const STOP_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a daemon may take to exit after its answer.
pub(super) const DAEMON_EXIT_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) async fn print_started(ctx: &ClientContext, mut client: Client, how: &str) -> CommandResult {
    let view: DaemonView = client.call(&Call::DaemonStatus(Empty {}), QUICK_TIMEOUT).await?;
    ctx.out.line(&format!("{how} (pid {})", view.pid))?;
    print_paused(ctx, &view.paused_by_shutdown)?;
    Ok(0)
}

pub(super) fn print_paused(ctx: &ClientContext, paused: &[String]) -> Result<(), Failure> {
    if paused.is_empty() {
        return Ok(());
    }
    let loops =
        if paused.len() == 1 { "1 loop is".to_owned() } else { format!("{} loops are", paused.len()) };
    ctx.out.line(&format!("{loops} paused by the shutdown; to resume:"))?;
    paused.iter().try_for_each(|name| ctx.out.line(&format!("  swarm ralph resume {name}")))
}

/// Requests that a daemon ends. The error for a daemon that hangs has a hint how to kill it.
pub(super) async fn end<T: DeserializeOwned>(
    place: &Place,
    client: &mut Client,
    call: &Call,
    deadline: Instant,
) -> Result<T> {
    let pid = client.daemon.pid;
    let answer = client.call(call, deadline.saturating_duration_since(Instant::now())).await;
    answer.map_err(|error| match error.code {
        ErrorCode::Timeout => error.hint(connect::kill_hint(&place.daemon_log(), pid)),
        _ => error,
    })
}

/// Waits until the daemon has closed the connection, released its socket and exited.
pub(super) async fn wait_for_exit(place: &Place, client: Client) -> Result<()> {
    let deadline = Instant::now() + DAEMON_EXIT_TIMEOUT;
    let pid = client.daemon.pid;
    let _ = timeout_at(deadline, client.hang_up()).await;
    wait_for_exit_of(place, pid, deadline).await
}

pub(super) async fn wait_for_exit_of(place: &Place, pid: u32, deadline: Instant) -> Result<()> {
    loop {
        // A zombie has released everything; its parent may take seconds to collect it.
        let is_alive = pid_of(pid).is_some_and(|pid| procs::is_alive(pid.as_raw()));
        let left = !matches!(connect::probe(place).await, Ok(DaemonProbe::Ready(c)) if c.daemon.pid == pid);
        if left && !is_alive {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let message =
                format!("the daemon (pid {pid}) has not ended after {} s", DAEMON_EXIT_TIMEOUT.as_secs());
            let hint = connect::kill_hint(&place.daemon_log(), pid);
            return Err(Error::new(ErrorCode::Timeout, message).hint(hint));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

pub(super) fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().filter(|pid| *pid > 1).map(Pid::from_raw)
}
