//! The connections of clients: checks the peer's uid, exchanges versions, and passes calls to the supervisor.
//!
//! Each connection has a task. A client that sends invalid data gets an error and is disconnected. Only complete,
//! parsed calls reach the supervisor.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use crate::daemon::messages::{DaemonInput, Inbox, Subscription};
use crate::daemon::reply::{Reply, stopping};
use crate::daemon::socket::SocketListener;
use crate::descriptors;
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Call, ClientHello, DaemonHello, MAX_LINE_BYTES, RELEASE, Request, Response, VERSION};

/// How long a client may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a write to a client may block. Then the client is disconnected; subscribers reconnect and continue.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a new client waits for another to disconnect when the maximum number is connected.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// The same right after another client was refused.
const CROWDED_PERMIT_TIMEOUT: Duration = Duration::from_millis(50);

/// The most clients of the socket for hooks, which exchange two lines each.
const MAX_HOOK_CLIENTS: usize = 64;

/// How long the refusal of a client may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Accepts clients forever. With `only_hooks`, the only call is the report of a hook.
pub(crate) async fn serve(listener: UnixListener, path: PathBuf, inbox: Inbox, only_hooks: bool) {
    let mut listener = SocketListener::new(listener, path);
    // An agent in a sandbox that keeps connections open may not keep other clients out.
    let most = if only_hooks { MAX_HOOK_CLIENTS } else { descriptors::share() };
    let permits = Arc::new(Semaphore::new(most));
    let mut permit_timeout = PERMIT_TIMEOUT;
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                // Most likely no file descriptor is left: wait until some are closed.
                tracing::warn!(%error, "cannot accept");
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        // Further clients wait in the listener's queue.
        let Ok(Ok(permit)) = timeout(permit_timeout, permits.clone().acquire_owned()).await else {
            permit_timeout = CROWDED_PERMIT_TIMEOUT;
            tracing::warn!(most, "too many clients");
            tokio::spawn(timeout(REFUSAL_TIMEOUT, turn_away(stream, most)));
            continue;
        };
        permit_timeout = PERMIT_TIMEOUT;
        let inbox = inbox.clone();
        tokio::spawn(async move {
            if let Err(error) = connection(stream, inbox, only_hooks).await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(permit);
        });
    }
}

/// Refuses a client because too many are connected.
async fn turn_away(stream: UnixStream, most: usize) -> Result<()> {
    let (read, mut write) = stream.into_split();
    send(&mut write, &own_hello()).await?;
    let error = Error::conflict(format!("the daemon already has {most} clients, the maximum"));
    let error = error.hint("end some waiting `swarm` commands, or raise `ulimit -n` and restart the daemon");
    refuse(&mut write, 0, error).await?;
    // The client reads only after it has written its call.
    let mut lines = RequestLines { from: BufReader::new(read) };
    while lines.next().await?.is_some() {}
    Ok(())
}

fn own_hello() -> DaemonHello {
    DaemonHello { swarm: VERSION, daemon: RELEASE.into(), pid: std::process::id() }
}

async fn connection(stream: UnixStream, inbox: Inbox, only_hooks: bool) -> Result<()> {
    let peer = stream.peer_cred().map_err(|e| Error::system("no peer", e))?;
    if peer.uid() != nix::unistd::geteuid().as_raw() {
        return Err(Error::invalid("a client of another user"));
    }
    let (read, mut write) = stream.into_split();
    let mut lines = RequestLines { from: BufReader::new(read) };
    let hello = timeout(HELLO_TIMEOUT, lines.next()).await.map_err(|e| Error::system("no hello", e))??;
    let Some(hello) = hello else { return Ok(()) };
    let is_gone = send(&mut write, &own_hello()).await.is_err();
    match serde_json::from_slice::<ClientHello>(&hello) {
        // The client has both versions now and reports the mismatch.
        Ok(hello) if hello.swarm != VERSION => return Ok(()),
        Ok(_) => {}
        Err(e) => return refuse(&mut write, 0, Error::invalid(format!("no hello: {e}"))).await,
    }
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(error) => return refuse(&mut write, 0, error).await,
        };
        let (id, call) = parse_line(&line);
        match call {
            // The line was complete, so the next one may be valid.
            Err(error) => refuse(&mut write, id, error).await?,
            // A hook does not wait for an answer: its report counts even if it has disconnected.
            Ok(call) if is_gone && !matches!(call, Call::Hook(_)) => return Ok(()),
            Ok(call) if only_hooks && !matches!(call, Call::Hook(_)) => {
                refuse(&mut write, id, Error::invalid("this socket accepts only reports of hooks")).await?;
            }
            Ok(Call::Subscribe(params)) => {
                let (reply, answer) = oneshot::channel();
                pass(&inbox, DaemonInput::Subscribe { params, reply })?;
                return follow(lines, write, id, answer).await;
            }
            Ok(call) => {
                let (reply, answer) = oneshot::channel();
                pass(
                    &inbox,
                    DaemonInput::Call { call: Box::new(call), peer: peer.pid(), reply: Reply(reply) },
                )?;
                answer_call(&mut write, id, answer.await.unwrap_or_else(|_| Err(stopping()))).await?;
            }
        }
    }
}

/// Parses a line. Returns the call and the id for its answer; 0 if the line has none.
pub(crate) fn parse_line(line: &[u8]) -> (u64, Result<Call>) {
    match serde_json::from_slice::<Request>(line) {
        Ok(request) => (request.id, parse(request)),
        Err(error) => {
            #[derive(serde::Deserialize)]
            struct Numbered {
                id: u64,
            }
            let id = serde_json::from_slice::<Numbered>(line).map_or(0, |line| line.id);
            (id, Err(Error::invalid(format!("not a request: {error}"))))
        }
    }
}

fn parse(request: Request) -> Result<Call> {
    let Request { method, params, .. } = request;
    let params = if params.is_null() { Value::Object(serde_json::Map::new()) } else { params };
    let whole = serde_json::json!({"method": method, "params": params});
    serde_json::from_value(whole).map_err(|e| Error::invalid(format!("{method}: {e}")))
}

async fn answer_call(write: &mut OwnedWriteHalf, id: u64, answer: Result<Value>) -> Result<()> {
    match answer {
        Ok(value) => match send(write, &Response { id, ok: Some(value), err: None, notice: None }).await {
            // Nothing of it was sent.
            Err(error) if error.code == ErrorCode::Internal => refuse(write, id, error).await,
            sent => sent,
        },
        Err(error) => refuse(write, id, error).await,
    }
}

async fn refuse(write: &mut OwnedWriteHalf, id: u64, error: Error) -> Result<()> {
    send(write, &Response { id, ok: None, err: Some(error), notice: None }).await
}

/// Sends notices until the client goes away.
async fn follow(
    mut lines: RequestLines,
    mut write: OwnedWriteHalf,
    id: u64,
    answer: oneshot::Receiver<Result<Subscription>>,
) -> Result<()> {
    let (snapshot, mut notices) = match answer.await.unwrap_or_else(|_| Err(stopping())) {
        Ok(subscription) => subscription,
        Err(error) => return refuse(&mut write, id, error).await,
    };
    let snapshot = serde_json::to_value(snapshot).map_err(|e| Error::system("cannot answer", e))?;
    answer_call(&mut write, id, Ok(snapshot)).await?;
    loop {
        tokio::select! {
            notice = notices.recv() => match notice {
                Some(notice) => {
                    send(&mut write, &Response { id, ok: None, err: None, notice: Some(notice) }).await?;
                }
                None => return Ok(()),
            },
            // A subscriber sends nothing more. The end of its stream ends the subscription.
            line = lines.next() => if line?.is_none() { return Ok(()) },
        }
    }
}

fn pass(inbox: &Inbox, input: DaemonInput) -> Result<()> {
    inbox.send(input).map_err(|_| stopping())
}

async fn send<T: serde::Serialize>(write: &mut OwnedWriteHalf, value: &T) -> Result<()> {
    let mut line = serde_json::to_vec(value).map_err(|e| Error::system("cannot answer", e))?;
    line.push(b'\n');
    if line.len() > MAX_LINE_BYTES {
        // All known long answers are shortened before; this is the last guard.
        return Err(Error::internal(format!("the answer is too long: {} bytes", line.len())));
    }
    let written = timeout(WRITE_TIMEOUT, write.write_all(&line)).await;
    written
        .map_err(|e| Error::system("the client does not read", e))?
        .map_err(|e| Error::system("the client went away", e))
}

/// Reads lines of a bounded length.
struct RequestLines {
    from: BufReader<OwnedReadHalf>,
}

impl RequestLines {
    /// The next line without its end; `None` at the end of the stream.
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = vec![];
        let mut limited = (&mut self.from).take(MAX_LINE_BYTES as u64);
        limited.read_until(b'\n', &mut line).await.map_err(|e| Error::system("cannot read", e))?;
        match line.pop() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) if line.len() + 1 >= MAX_LINE_BYTES => Err(Error::invalid("a line over 1 MiB")),
            // Cut off: the client went away in the middle of a line.
            Some(_) => Ok(None),
        }
    }
}
