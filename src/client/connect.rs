//! Connects to the daemon, and starts the daemon when it does not run.
//!
//! [`probe`] distinguishes three cases: the daemon is ready, it has another protocol version, or no daemon runs.
//! [`connect`] starts it in the last case. Two clients that do so at the same time both succeed: the daemon's lock
//! admits one daemon, and the other client connects to that one. The daemon of a remote host is reached through ssh.
//!
//! Every call has a timeout and every line a maximum length, so that a command never hangs on a stuck daemon. Used by
//! the verbs and `doctor`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::ChildStdin;
use tokio::time::{Instant, sleep, timeout};

use crate::error::{Error, ErrorCode, Result};
use crate::paths::Paths;
use crate::protocol::{Call, DaemonHello, MAX_LINE_BYTES, Notice, RELEASE, Request, Response, VERSION};
use crate::remote::Place;
use crate::remote::ssh::{self, RemoteFault};

mod lines;
mod release;
pub(crate) mod remote;
mod start;

pub(super) use start::run_in_job;

use lines::{DaemonLines, hello_line, lines_of};
use remote::{RemoteConnection, RemoteLink};
use start::{START_TIMEOUT, UNTIL_EOF, start};

/// How long the daemon may take for an answer from memory.
pub const QUICK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the daemon may take for an answer that waits for processes, tmux or git.
pub const SLOW_TIMEOUT: Duration = Duration::from_secs(90);

const DAEMON_HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Which daemon answers on the socket.
pub enum DaemonProbe {
    /// A daemon with our protocol version.
    Ready(Client),
    /// A daemon with another protocol version.
    WrongVersion(DaemonHello),
    /// No daemon.
    Nobody,
}

/// A connection after the handshake.
pub struct Client {
    lines: DaemonLines,
    writer: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    next_id: u64,
    peer: Peer,
    /// The daemon's handshake.
    pub daemon: DaemonHello,
}

enum Peer {
    /// A daemon on this machine, with this log.
    Local(PathBuf),
    /// A daemon on a remote host.
    Remote(Box<RemoteLink>),
}

/// Connects to the daemon of `place` and exchanges the handshake. Fails if something listens on the socket and does
/// not answer as a daemon does; [`ErrorCode::Unreachable`].
pub async fn probe(place: &Place) -> Result<DaemonProbe> {
    match place.host() {
        Some(host) => {
            let connection = remote::open(place, host, false).await?;
            Ok(connection.map_or(DaemonProbe::Nobody, |connection| DaemonProbe::Ready(of_remote(connection))))
        }
        None => probe_socket(place).await,
    }
}

fn of_remote(RemoteConnection { lines, writer, link, daemon }: RemoteConnection) -> Client {
    Client { lines, writer: Box::new(writer), next_id: 1, peer: Peer::Remote(Box::new(link)), daemon }
}

async fn probe_socket(paths: &Paths) -> Result<DaemonProbe> {
    if crate::sandbox::is_inside(paths) {
        let message = "this is the sandbox of a worker, in which only swarm hook reaches the daemon";
        return Err(Error::new(ErrorCode::NoDaemon, message).hint("run the command outside of the sandbox"));
    }
    let mut socket = paths.socket();
    if let Some(earlier) = paths.earlier_socket().filter(|earlier| !socket.exists() && earlier.exists()) {
        socket = earlier;
    }
    let stream = match timeout(DAEMON_HELLO_TIMEOUT, UnixStream::connect(&socket)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(e)) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(DaemonProbe::Nobody);
        }
        // The daemon ended while this connection was in its queue.
        Ok(Err(e)) if is_hang_up(e.kind()) => return Ok(DaemonProbe::Nobody),
        // The daemon's queue is full: it has accepted no connection for a long time.
        Ok(Err(e)) if e.kind() == ErrorKind::WouldBlock => return Err(no_answer(paths, None)),
        Ok(Err(e)) => return Err(Error::system(format!("cannot connect to {}", socket.display()), e)),
        Err(_) => return Err(no_answer(paths, None)),
    };
    let peer = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
    let (reader, mut writer) = stream.into_split();
    let mut lines = lines_of(reader);
    let exchange = async {
        writer.write_all(&hello_line()).await?;
        lines.next().await
    };
    let answer = match timeout(DAEMON_HELLO_TIMEOUT, exchange).await {
        Err(_) => return Err(no_answer(paths, peer)),
        Ok(Ok(Some(answer))) => answer,
        // The daemon hung up before the handshake: it is ending.
        Ok(Ok(None)) => return Ok(DaemonProbe::Nobody),
        Ok(Err(e)) if is_hang_up(e.kind()) => return Ok(DaemonProbe::Nobody),
        Ok(Err(e)) => return Err(Error::system("cannot exchange the handshake with the daemon", e)),
    };
    let daemon: DaemonHello = serde_json::from_slice(&answer).map_err(|_| {
        let what = format!("the program that listens on {} is not a swarm daemon", socket.display());
        Error::new(ErrorCode::NoDaemon, what)
    })?;
    if daemon.swarm != VERSION {
        return Ok(DaemonProbe::WrongVersion(daemon));
    }
    let peer = Peer::Local(paths.daemon_log());
    Ok(DaemonProbe::Ready(Client { lines, writer: Box::new(writer), next_id: 1, peer, daemon }))
}

fn is_hang_up(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof)
}

fn no_answer(paths: &Paths, pid: Option<u32>) -> Error {
    let hint = match pid {
        Some(pid) => kill_hint(&paths.daemon_log(), pid),
        None => format!(
            "its log is {}; its process id is in {}",
            paths.daemon_log().display(),
            paths.lock().display()
        ),
    };
    Error::new(ErrorCode::Timeout, "the daemon does not answer").hint(hint)
}

/// The hint for a daemon that does not answer. After the kill, the next command starts another daemon.
pub fn kill_hint(log: &Path, pid: u32) -> String {
    format!("see its log: {}; as a last resort: kill -9 {pid} (agents keep running)", log.display())
}

/// The error that names both protocol versions and how to fix the mismatch.
pub fn wrong_version(daemon: &DaemonHello) -> Error {
    let message = format!(
        "this swarm {} speaks protocol {VERSION}, the running daemon (swarm {}, pid {}) speaks protocol {}",
        RELEASE, daemon.daemon, daemon.pid, daemon.swarm
    );
    Error::new(ErrorCode::Version, message).hint("swarm daemon restart")
}

/// Connects to the daemon; returns `None` when it does not run. Never starts it. Fails if the daemon does not
/// answer or has another protocol version.
pub async fn connect_existing(place: &Place) -> Result<Option<Client>> {
    match probe(place).await? {
        DaemonProbe::Ready(client) => Ok(Some(client)),
        DaemonProbe::WrongVersion(daemon) => Err(wrong_version(&daemon)),
        DaemonProbe::Nobody => Ok(None),
    }
}

/// As [`connect_existing`]; an absent daemon is an error.
pub(crate) async fn require_existing(place: &Place) -> Result<Client> {
    let absent = || Error::new(ErrorCode::NoDaemon, "the daemon is not running");
    connect_existing(place).await?.ok_or_else(absent)
}

/// Connects to the daemon, and starts it when it does not run. Warns about a daemon of another release.
/// Fails as [`connect_existing`] does, and with [`ErrorCode::NoDaemon`] when the daemon does not start.
pub async fn connect(place: &Place) -> Result<Client> {
    Ok(connect_or_start(place).await?.0)
}

/// As [`connect`]; also returns whether this call started the daemon.
pub async fn connect_or_start(place: &Place) -> Result<(Client, bool)> {
    if let Some(host) = place.host() {
        let connection = remote::open(place, host, true).await?;
        let client = connection.map(of_remote).ok_or_else(|| host.silent("its daemon ends"))?;
        return Ok((client, false));
    }
    let mut deadline = None;
    loop {
        if let Some(client) = connect_existing(place).await? {
            release::report(place, &client.daemon);
            return Ok((client, false));
        }
        let failed = match start(place, &[]).await {
            Ok(_) => match connect_existing(place).await? {
                Some(client) => return Ok((client, true)),
                None => Error::new(ErrorCode::NoDaemon, "the daemon started and is gone").into(),
            },
            Err(failed) => failed,
        };
        // Another client may be starting a daemon, or an old daemon may be ending.
        if let Some(client) = connect_existing(place).await? {
            return Ok((client, false));
        }
        // The first attempt is not part of the wait: on a busy disk it can take as long.
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + START_TIMEOUT);
        if !failed.is_running_already || Instant::now() >= deadline {
            return Err(failed.error);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Connects to a daemon over a process that relays to it. `None` if no daemon runs there. Fails if the process fails
/// before the handshake; the place names the host in the message.
pub(super) async fn connect_over(place: &Place, relay: std::process::Command) -> Result<Option<Client>> {
    let Some(host) = place.host() else { return Ok(None) };
    let started = ssh::start_process(relay)?;
    let connection = remote::exchange(place, host, false, started).await.map_err(RemoteFault::into_error)?;
    Ok(connection.map(of_remote))
}

/// Starts a daemon that resumes no loop by itself and ends with its input, which is returned. Connects to it.
pub(super) async fn connect_for_reading(place: &Place) -> Result<(Client, ChildStdin)> {
    let input = start(place, &[UNTIL_EOF]).await.map_err(|failed| failed.error)?;
    let gone = || Error::new(ErrorCode::NoDaemon, "the daemon started and is gone");
    let client = connect_existing(place).await?.ok_or_else(gone)?;
    Ok((client, input.ok_or_else(gone)?))
}

impl Client {
    /// Sends a call and waits for the answer, at most `limit`.
    ///
    /// # Errors
    /// The daemon's error; [`ErrorCode::Timeout`]; [`ErrorCode::NoDaemon`] when the connection ended.
    pub async fn call<T: DeserializeOwned>(&mut self, call: &Call, limit: Duration) -> Result<T> {
        let (id, method, line) = self.request(call)?;
        let answer = async {
            self.writer.write_all(&line).await.map_err(|e| hung_up(&e))?;
            loop {
                let response = self.response().await?;
                // An error without a request id concerns the connection: too many clients, or a line that cannot be
                // parsed.
                let refused = response.id == 0 && response.err.is_some();
                if refused || response.id == id && response.notice.is_none() {
                    return Ok(response);
                }
            }
        };
        let response = match timeout(limit, answer).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.broken(error).await),
            Err(_) => return Err(self.no_answer(&method, limit).await),
        };
        match (response.ok, response.err) {
            (_, Some(error)) => Err(error),
            (ok, None) => serde_json::from_value(ok.unwrap_or(Value::Null)).map_err(|e| bad_answer(&e)),
        }
    }

    /// Returns the next notice of a subscription; [`ErrorCode::NoDaemon`] when the connection ended. Cancel-safe: no
    /// notice is lost when the future is dropped.
    pub async fn notice(&mut self) -> Result<Notice> {
        loop {
            let response = match self.response().await {
                Ok(response) => response,
                Err(error) => return Err(self.broken(error).await),
            };
            if let Some(notice) = response.notice {
                return Ok(notice);
            }
            if let Some(error) = response.err {
                return Err(error);
            }
        }
    }

    /// The error of a connection that ended. The link to a remote host may be the reason.
    async fn broken(&mut self, error: Error) -> Error {
        match &mut self.peer {
            Peer::Remote(link) if error.code == ErrorCode::NoDaemon => link.fault().await.unwrap_or(error),
            Peer::Local(_) | Peer::Remote(_) => error,
        }
    }

    async fn no_answer(&self, method: &str, limit: Duration) -> Error {
        let message = format!("the daemon did not answer `{method}` within {} s", limit.as_secs());
        let error = Error::new(ErrorCode::Timeout, message);
        match &self.peer {
            Peer::Local(log) => error.hint(format!("its log is {}", log.display())),
            Peer::Remote(link) => link.no_answer(method, limit).await.unwrap_or(error),
        }
    }

    /// Waits until the daemon closes the connection.
    pub async fn hang_up(mut self) {
        while self.response().await.is_ok() {}
    }

    fn request(&mut self, call: &Call) -> Result<(u64, String, Vec<u8>)> {
        let bug = |e: serde_json::Error| {
            Error::new(ErrorCode::Internal, format!("cannot serialize a request: {e}"))
        };
        let mut value = serde_json::to_value(call).map_err(bug)?;
        let method = value["method"].as_str().unwrap_or_default().to_owned();
        let id = self.next_id;
        self.next_id += 1;
        let request = Request { id, method: method.clone(), params: value["params"].take() };
        let mut line = serde_json::to_vec(&request).map_err(bug)?;
        line.push(b'\n');
        if line.len() > MAX_LINE_BYTES {
            let message = format!("the request is too long: {} bytes, at most {MAX_LINE_BYTES}", line.len());
            return Err(Error::invalid(message).hint(
                "put a long text into a file and name the file: spawn --prompt-file FILE, or in the text",
            ));
        }
        Ok((id, method, line))
    }

    async fn response(&mut self) -> Result<Response> {
        let line = self.lines.next().await.map_err(|e| hung_up(&e))?;
        let line = line.ok_or_else(|| Error::new(ErrorCode::NoDaemon, "the daemon hung up"))?;
        serde_json::from_slice(&line).map_err(|e| bad_answer(&e))
    }
}

fn hung_up(error: &std::io::Error) -> Error {
    Error::new(ErrorCode::NoDaemon, format!("the connection to the daemon broke: {error}"))
}

fn bad_answer(error: &serde_json::Error) -> Error {
    Error::new(ErrorCode::Internal, format!("cannot parse the daemon's answer: {error}"))
        .hint("if swarm was updated: swarm daemon restart")
}

#[cfg(test)]
mod tests;
