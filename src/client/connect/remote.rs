//! Connects to the daemon of a remote host: ssh runs `swarm connect --stdio` there, which relays to the socket.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep, timeout_at};

use super::lines::{DaemonLines, hello_line, lines_of};
use super::start::START_TIMEOUT;
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{DaemonHello, RELEASE, VERSION};
use crate::remote::ssh::{self, MAX_SSH_ATTEMPTS, RemoteFault, SSH_RETRY_DELAY, SshProcess};
use crate::remote::{Place, RemoteHost};

/// How long ssh and the daemon may take until the handshake: twice the timeout of ssh's own connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The line of a relay that starts the daemon, which takes longer.
pub(crate) const STARTING: &str = "swarm: starting the daemon";

/// The exit status of a relay that found no daemon and was not permitted to start one.
pub(crate) const NOBODY_STATUS: u8 = 3;

/// A connection after the handshake.
pub(super) struct RemoteConnection {
    pub(super) lines: DaemonLines,
    pub(super) writer: ChildStdin,
    pub(super) link: RemoteLink,
    pub(super) daemon: DaemonHello,
}

pub(super) struct RemoteLink {
    place: Place,
    process: SshProcess,
}

impl RemoteLink {
    /// The error for a connection that has ended; `None` when the daemon ended it.
    pub(super) async fn fault(&mut self) -> Option<Error> {
        let host = self.place.host()?;
        host.was_lost.store(true, Ordering::Relaxed);
        self.process.fault(host).await.map(RemoteFault::into_error)
    }

    /// The error for a call without an answer. The shared connection may be stuck, so it ends.
    pub(super) async fn no_answer(&self, method: &str, limit: Duration) -> Option<Error> {
        let host = self.place.host()?;
        ssh::drop_shared(&self.place, host).await;
        Some(host.silent(&format!("it did not answer `{method}` within {} s", limit.as_secs())))
    }
}

/// Connects, and starts the daemon there if none runs and `may_start`. `None` if none runs. Errors
/// ([`ErrorCode::Unreachable`], [`ErrorCode::Version`]) have the next step.
pub(super) async fn open(
    place: &Place,
    host: &RemoteHost,
    may_start: bool,
) -> Result<Option<RemoteConnection>> {
    let mut attempts = 1;
    loop {
        // Many clients that have lost one connection would make one each, all at once.
        let turn = if host.was_lost.load(Ordering::Relaxed) {
            ssh::turn_to_connect(place, host).await
        } else {
            None
        };
        let started = ssh::start(place, host, &host.connect_command(may_start))?;
        let outcome = exchange(place, host, may_start, started).await;
        drop(turn);
        match outcome {
            Err(RemoteFault::LostShare(_)) if attempts < MAX_SSH_ATTEMPTS => attempts += 1,
            outcome => return outcome.map_err(RemoteFault::into_error),
        }
        host.was_lost.store(true, Ordering::Relaxed);
        sleep(SSH_RETRY_DELAY).await;
    }
}

pub(super) async fn exchange(
    place: &Place,
    host: &RemoteHost,
    may_start: bool,
    (mut process, mut writer, reader): (SshProcess, ChildStdin, ChildStdout),
) -> Result<Option<RemoteConnection>, RemoteFault> {
    let mut lines = lines_of(reader);
    // A relay that ends at once has closed its input, and its message has the reason.
    let _ = writer.write_all(&hello_line()).await;
    let Some(answer) = hello(&mut lines).await else {
        process.end();
        ssh::drop_shared(place, host).await;
        return Err(RemoteFault::Stuck(host.no_connection()));
    };
    let Some(daemon) = answer else {
        return match process.fault(host).await {
            Some(RemoteFault::Exit(code, _)) if !may_start && code == i32::from(NOBODY_STATUS) => Ok(None),
            Some(fault) => Err(fault),
            None => Ok(None),
        };
    };
    if daemon.swarm != VERSION {
        let name = &host.name;
        let message = format!(
            "host '{name}': its daemon is swarm {} and speaks protocol {}; this is swarm {RELEASE}, with protocol \
             {VERSION}",
            daemon.daemon, daemon.swarm
        );
        let error = Error::new(ErrorCode::Version, message).hint(format!("swarm host install {name}"));
        return Err(RemoteFault::Stuck(error));
    }
    let link = RemoteLink { place: place.clone(), process };
    Ok(Some(RemoteConnection { lines, writer, link, daemon }))
}

/// Returns the daemon's handshake, or `None` inside when the connection ended before it; `None` when neither came in
/// time. Skips the lines that the login of the host prints.
async fn hello(lines: &mut DaemonLines) -> Option<Option<DaemonHello>> {
    let mut deadline = Instant::now() + CONNECT_TIMEOUT;
    loop {
        let Ok(Some(line)) = timeout_at(deadline, lines.next()).await.ok()? else { return Some(None) };
        if let Ok(hello) = serde_json::from_slice(&line) {
            return Some(Some(hello));
        }
        if line == STARTING.as_bytes() {
            deadline = Instant::now() + START_TIMEOUT;
        }
    }
}
