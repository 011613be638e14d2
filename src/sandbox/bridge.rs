//! The way from the sandbox's own loopback interface to the proxy outside: `swarm __bridge DIR`.
//!
//! The first process in the sandbox binds a port of the loopback interface and starts the bridge, which copies each
//! connection to the proxy's socket in DIR. The bridge decides nothing and protects nothing: an agent that ends it has
//! no network. Used by [`super::inside`] and `main`.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::UnixStream;

use super::proxy::SOCKET_NAME;

const BRIDGE_ARGUMENT: &str = "__bridge";
/// Its last argument once it has left its parent: the agent shall have no child that it did not start.
const SERVE_ARGUMENT: &str = "serve";

/// How long the bridge waits before it accepts again after an error: too many files are open.
const ACCEPT_DELAY: Duration = Duration::from_millis(50);

/// The variables that name the proxy. Programs read either case.
const PROXY_VARIABLES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
/// Variables with fixed values: hosts to reach without the proxy, and whether Node.js uses the variables above.
const FIXED_VARIABLES: [(&str, &str); 3] = [
    ("no_proxy", "localhost,127.0.0.1,::1"),
    ("NO_PROXY", "localhost,127.0.0.1,::1"),
    ("NODE_USE_ENV_PROXY", "1"),
];

/// Starts the bridge to the proxy in `dir`, and returns the variables that name it.
pub(super) fn start(dir: &Path) -> io::Result<Vec<(&'static str, String)>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let proxy = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
    if !command(OwnedFd::from(listener)).arg(dir).status()?.success() {
        return Err(io::Error::other("the bridge did not start"));
    }
    let fixed = FIXED_VARIABLES.map(|(name, value)| (name, value.to_owned()));
    Ok(PROXY_VARIABLES.map(|name| (name, proxy.clone())).into_iter().chain(fixed).collect())
}

fn command(listener: OwnedFd) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(BRIDGE_ARGUMENT).stdin(Stdio::from(listener)).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Carries out `swarm __bridge DIR [serve]`, with the listener as standard input.
pub fn main(args: &[OsString]) -> u8 {
    let result = match args {
        [dir] => detach(dir),
        [dir, word] if word == SERVE_ARGUMENT => serve(Path::new(dir)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    u8::from(result.is_err())
}

/// Starts the bridge and leaves it to the sandbox's init.
fn detach(dir: &OsString) -> io::Result<()> {
    let listener = io::stdin().as_fd().try_clone_to_owned()?;
    command(listener).arg(dir).arg(SERVE_ARGUMENT).process_group(0).spawn().map(drop)
}

fn serve(dir: &Path) -> io::Result<()> {
    // The name of a socket is short.
    std::env::set_current_dir(dir)?;
    let listener = TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let Ok((mut near, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_DELAY).await;
                continue;
            };
            tokio::spawn(async move {
                if let Ok(mut far) = UnixStream::connect(SOCKET_NAME).await {
                    // The agent sees an error as the end of its connection.
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    })
}
