//! The socket: accept, check who it is, shake hands, pass calls on.
//!
//! One task a connection. A connection that sends rubbish gets a clear refusal and is closed; nothing it
//! does can reach the supervisor but a whole, parsed call.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::supervisor::Input;
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Call, ClientHello, DaemonHello, MAX_LINE, Request, Response, VERSION};

/// How long a client may take to say hello.
const HELLO: std::time::Duration = std::time::Duration::from_secs(10);

/// Binds the socket. A left-over of a dead daemon is removed; what is no socket of ours is refused.
///
/// The caller holds the daemon's lock, so no live daemon of this directory can be behind it.
pub(crate) fn bind(path: &Path) -> Result<UnixListener> {
    let failed = |e: &dyn std::fmt::Display| Error::system(format!("cannot listen on {}", path.display()), e);
    if let Ok(found) = std::fs::symlink_metadata(path) {
        use std::os::unix::fs::FileTypeExt;
        let answers = || std::os::unix::net::UnixStream::connect(path).is_ok();
        if !found.file_type().is_socket() || answers() {
            return Err(failed(&"something that is not ours is there").hint("move it away"));
        }
        std::fs::remove_file(path).map_err(|e| failed(&e))?;
    }
    let listener = UnixListener::bind(path).map_err(|e| failed(&e))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(|e| failed(&e))?;
    Ok(listener)
}

/// Tells a daemon that holds the directory and cannot be reached to look after its socket. The signal is one
/// that does nothing to a daemon that is not that far yet.
pub(crate) fn remind(pid: u32, socket: &Path) {
    if let (Err(_), Ok(pid)) = (std::os::unix::net::UnixStream::connect(socket), i32::try_from(pid)) {
        // It may have ended just now.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGWINCH);
    }
}

/// Accepts clients for ever. A socket whose file somebody removed is made again when a client misses it.
pub(crate) async fn serve(mut listener: UnixListener, path: PathBuf, inbox: mpsc::UnboundedSender<Input>) {
    let mut file = identity(&path);
    let mut reminders = signal(SignalKind::window_change()).ok();
    loop {
        let reminded = async {
            match &mut reminders {
                Some(signals) => signals.recv().await,
                None => std::future::pending().await,
            }
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = reminded => {
                if identity(&path).is_none() || identity(&path) != file {
                    match bind(&path) {
                        Ok(fresh) => (listener, file) = (fresh, identity(&path)),
                        Err(error) => tracing::warn!(%error, "the socket is gone and cannot be made again"),
                    }
                }
                continue;
            }
        };
        match accepted {
            Ok((stream, _)) => {
                let inbox = inbox.clone();
                tokio::spawn(async move {
                    if let Err(error) = connection(stream, inbox).await {
                        tracing::debug!(%error, "a connection ended");
                    }
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: wait for some to come free.
                tracing::warn!(%error, "cannot accept");
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        }
    }
}

/// Which file a path names.
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

async fn connection(stream: UnixStream, inbox: mpsc::UnboundedSender<Input>) -> Result<()> {
    let peer = stream.peer_cred().map_err(|e| Error::system("no peer", e))?;
    if peer.uid() != nix::unistd::geteuid().as_raw() {
        return Err(Error::invalid("a client of another user"));
    }
    let (read, mut write) = stream.into_split();
    let mut lines = Lines { from: BufReader::new(read) };
    let hello =
        tokio::time::timeout(HELLO, lines.next()).await.map_err(|e| Error::system("no hello", e))??;
    let Some(hello) = hello else { return Ok(()) };
    let own =
        DaemonHello { swarm: VERSION, daemon: env!("CARGO_PKG_VERSION").into(), pid: std::process::id() };
    send(&mut write, &own).await?;
    match serde_json::from_slice::<ClientHello>(&hello) {
        // The client knows both versions now and says so; there is nothing to talk about.
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
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(e) => return refuse(&mut write, 0, Error::invalid(format!("no request: {e}"))).await,
        };
        let id = request.id;
        match parse(request) {
            Err(error) => refuse(&mut write, id, error).await?,
            Ok(Call::Subscribe(params)) => {
                let (reply, answer) = oneshot::channel();
                pass(&inbox, Input::Subscribe { params, reply })?;
                return follow(lines, write, id, answer).await;
            }
            Ok(call) => {
                let (reply, answer) = oneshot::channel();
                pass(&inbox, Input::Call { call: Box::new(call), peer: peer.pid(), reply })?;
                answer_call(&mut write, id, answer.await.unwrap_or_else(|_| Err(stopping()))).await?;
            }
        }
    }
}

/// A call from a request; the method's name decides which parameters it must have.
fn parse(request: Request) -> Result<Call> {
    let Request { method, params, .. } = request;
    let params = if params.is_null() { Value::Object(serde_json::Map::new()) } else { params };
    let whole = serde_json::json!({"method": method, "params": params});
    serde_json::from_value(whole).map_err(|e| Error::invalid(format!("{method}: {e}")))
}

async fn answer_call(write: &mut OwnedWriteHalf, id: u64, answer: Result<Value>) -> Result<()> {
    match answer {
        Ok(value) => send(write, &Response { id, ok: Some(value), err: None, notice: None }).await,
        Err(error) => refuse(write, id, error).await,
    }
}

async fn refuse(write: &mut OwnedWriteHalf, id: u64, error: Error) -> Result<()> {
    send(write, &Response { id, ok: None, err: Some(error), notice: None }).await
}

/// Sends notices until the client goes away.
async fn follow(
    mut lines: Lines,
    mut write: OwnedWriteHalf,
    id: u64,
    answer: oneshot::Receiver<Result<super::supervisor::Subscription>>,
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
            // A subscriber has nothing more to say; the end of its stream is the end of the subscription.
            line = lines.next() => if line?.is_none() { return Ok(()) },
        }
    }
}

fn pass(inbox: &mpsc::UnboundedSender<Input>, input: Input) -> Result<()> {
    inbox.send(input).map_err(|_| stopping())
}

fn stopping() -> Error {
    Error::new(ErrorCode::NoDaemon, "the daemon is stopping").hint("swarm daemon start")
}

async fn send<T: serde::Serialize>(write: &mut OwnedWriteHalf, value: &T) -> Result<()> {
    let mut line = serde_json::to_vec(value).map_err(|e| Error::system("cannot answer", e))?;
    line.push(b'\n');
    write.write_all(&line).await.map_err(|e| Error::system("the client went away", e))
}

/// Reads lines of a bounded length.
struct Lines {
    from: BufReader<OwnedReadHalf>,
}

impl Lines {
    /// The next line without its end; `None` at the end of the stream.
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = vec![];
        let mut limited = (&mut self.from).take(MAX_LINE as u64);
        limited.read_until(b'\n', &mut line).await.map_err(|e| Error::system("cannot read", e))?;
        match line.pop() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) if line.len() + 1 >= MAX_LINE => Err(Error::invalid("a line over 1 MiB")),
            // Cut off: the client went away in the middle of a line.
            Some(_) => Ok(None),
        }
    }
}
