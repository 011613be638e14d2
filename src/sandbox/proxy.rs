//! The proxy through which a sandboxed agent reaches the hosts that its user allowed.
//!
//! Serves HTTP's CONNECT and absolute-form requests on a Unix socket, one request a connection: a second one could
//! name another host. [`swarm_state::network`] decides; names are resolved here, outside the sandbox. Used by the
//! wrapper of a pane for the agent, and by `checks` for the time of a check. Deliberately absent: reading the traffic.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use swarm_state::network::{AllowList, HostRefusal, RequestHost, RequestTarget};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The name of the socket in its directory.
pub(super) const SOCKET_NAME: &str = "socket";
/// The time for a request's head, for resolving a name, and for a connection to one address.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum size of a request's head.
const MAX_HEAD_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 100;
/// The maximum number of connections at a time; more wait.
const MAX_CONNECTIONS: usize = 512;
/// Headers that concern only the connection to the proxy.
const OWN_HEADERS: [&str; 6] =
    ["connection", "proxy-connection", "keep-alive", "proxy-authorization", "te", "host"];

/// The source of the list, which is asked for each request, and the receiver of refused ones.
pub(crate) trait ProxyRules: Send + Sync + 'static {
    /// The present list.
    fn list(&self) -> AllowList;
    fn refused(&self, target: &RequestTarget, why: &HostRefusal);
    /// The command with which a person allows `target`.
    fn hint(&self, target: &RequestTarget) -> String;
}

/// A running proxy. It ends when this is dropped; its connections end with their processes.
pub(crate) struct Proxy(JoinHandle<()>);

impl Proxy {
    /// Serves on a socket in `dir`, which must have none.
    pub(crate) fn start(dir: &Path, rules: Arc<dyn ProxyRules>) -> io::Result<Self> {
        // The name of a socket is short, and the path of `dir` may be long.
        let opened = std::fs::File::open(dir)?;
        let short = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let listener = UnixListener::bind(short.join(SOCKET_NAME))?;
        Ok(Self(tokio::spawn(serve(listener, rules))))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(listener: UnixListener, rules: Arc<dyn ProxyRules>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((client, _)) => {
                let rules = Arc::clone(&rules);
                tokio::spawn(async move {
                    // The client sees the error as the end of its connection.
                    let _ = answer(client, &*rules).await;
                    drop(place);
                });
            }
            // Too many open files: others will end.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn answer(mut client: UnixStream, rules: &dyn ProxyRules) -> io::Result<()> {
    let Some((request, rest)) = within(read_request(&mut client)).await? else {
        return say(&mut client, "400 Bad Request", "this is not a request for a proxy").await;
    };
    let target = &request.target;
    if let Err(why) = rules.list().admits(target) {
        return refuse(&mut client, rules, target, &why).await;
    }
    let addresses = match resolve(target).await {
        Ok(addresses) => addresses,
        Err(error) => return say(&mut client, "502 Bad Gateway", &format!("{target}: {error}")).await,
    };
    let public = addresses.iter().filter(|at| AllowList::admits_address(target, at.ip()).is_ok());
    let public: Vec<SocketAddr> = public.copied().collect();
    if let (true, Some(at)) = (public.is_empty(), addresses.first()) {
        return refuse(&mut client, rules, target, &HostRefusal::PrivateAddress(at.ip())).await;
    }
    let mut server = match connect(&public).await {
        Ok(server) => server,
        Err(error) => return say(&mut client, "502 Bad Gateway", &format!("{target}: {error}")).await,
    };
    match request.forwarded {
        Some(head) => server.write_all(&head).await?,
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
    }
    server.write_all(&rest).await?;
    copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}

async fn refuse(
    client: &mut UnixStream,
    rules: &dyn ProxyRules,
    target: &RequestTarget,
    why: &HostRefusal,
) -> io::Result<()> {
    rules.refused(target, why);
    let text = match why {
        HostRefusal::NotListed => {
            format!("{target} is not an allowed host. A person can allow it: {}", rules.hint(target))
        }
        HostRefusal::PrivateAddress(address) => {
            format!("{target} has the private address {address}, which only an entry for the address allows")
        }
    };
    say(client, "403 Forbidden", &text).await
}

/// Answers with a status and one sentence.
async fn say(client: &mut UnixStream, status: &str, text: &str) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\n");
    let body = format!("swarm: {text}\n");
    client.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    client.shutdown().await
}

/// A request as the proxy understands it.
struct ProxyRequest {
    target: RequestTarget,
    /// The head for the server; `None` for CONNECT.
    forwarded: Option<Vec<u8>>,
}

/// Reads a request's head. Returns it and what followed it, or `None` if it is malformed.
async fn read_request(client: &mut UnixStream) -> io::Result<Option<(ProxyRequest, Vec<u8>)>> {
    let mut bytes = Vec::with_capacity(1024);
    while bytes.len() <= MAX_HEAD_BYTES {
        if client.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        match head.parse(&bytes) {
            Ok(httparse::Status::Complete(len)) => {
                let request = understood(&head);
                return Ok(request.map(|request| (request, bytes.split_off(len))));
            }
            Ok(httparse::Status::Partial) => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// The meaning of a head; `None` if it is not for a proxy.
fn understood(head: &httparse::Request<'_, '_>) -> Option<ProxyRequest> {
    let (method, uri) = (head.method?, head.path?);
    if method == "CONNECT" {
        return Some(ProxyRequest { target: RequestTarget::parse(uri, None)?, forwarded: None });
    }
    let rest = uri.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://")).and(uri.get(7..))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let target = RequestTarget::parse(authority, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let version = head.version?;
    // The Host header is written anew, so that it cannot name another site of the same server.
    let mut text =
        format!("{method} {slash}{path} HTTP/1.{version}\r\nHost: {authority}\r\nConnection: close\r\n")
            .into_bytes();
    for header in head.headers.iter() {
        if !OWN_HEADERS.iter().any(|own| header.name.eq_ignore_ascii_case(own)) {
            text.extend_from_slice(header.name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(header.value);
            text.extend_from_slice(b"\r\n");
        }
    }
    text.extend_from_slice(b"\r\n");
    Some(ProxyRequest { target, forwarded: Some(text) })
}

async fn resolve(target: &RequestTarget) -> io::Result<Vec<SocketAddr>> {
    match &target.host {
        RequestHost::Address(address) => Ok(vec![SocketAddr::new(*address, target.port)]),
        RequestHost::Name(name) => {
            within(lookup_host((name.as_str(), target.port))).await.map(Iterator::collect)
        }
    }
}

/// Connects to the first address that answers.
async fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match within(TcpStream::connect(address)).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn within<T>(step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(STEP_TIMEOUT, step).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests;
