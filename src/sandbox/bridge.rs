//! The way from the sandbox's own loopback interface to the proxy outside: `swarm __inside` and `swarm __bridge`.
//!
//! `__inside SOCKET COMMAND…` is the first program in the sandbox. It binds a port of the loopback interface, starts the
//! bridge, names the port in the proxy variables and becomes the command. The bridge copies each connection to the
//! proxy's Unix socket. It decides nothing and protects nothing: an agent that ends it has no network.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::io::copy_bidirectional;
use tokio::net::UnixStream;

use crate::error::Error;
use crate::out::Out;

/// The argument of the first program in the sandbox.
pub const INSIDE_ARGUMENT: &str = "__inside";
/// The argument of the bridge. Without a further one it only starts the bridge, so that the bridge is no child of
/// the agent.
pub const BRIDGE_ARGUMENT: &str = "__bridge";
const SERVE_ARGUMENT: &str = "serve";

/// The variables that name the proxy. Programs read either case.
const PROXY_VARIABLES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
/// The variables that name the hosts to reach without the proxy.
const DIRECT_VARIABLES: [&str; 2] = ["no_proxy", "NO_PROXY"];
const DIRECT_HOSTS: &str = "localhost,127.0.0.1,::1";
/// Node.js uses the proxy variables only if this one is 1.
const NODE_VARIABLE: &str = "NODE_USE_ENV_PROXY";

/// Carries out `swarm __inside`. Returns only if the command could not be started.
pub fn inside(args: &[OsString]) -> u8 {
    let why = match args.split_first() {
        Some((socket, [program, rest @ ..])) => start(Path::new(socket))
            .map(|port| become_command(program, rest, port))
            .unwrap_or_else(|error| error),
        _ => io::Error::other("no command given"),
    };
    Out::from_env().error(&Error::system("cannot start in the sandbox", why));
    127
}

/// Starts the bridge and returns its port.
fn start(socket: &Path) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let status = bridge_command(OwnedFd::from(listener)).arg(socket).status()?;
    if status.success() { Ok(port) } else { Err(io::Error::other("the bridge to the proxy did not start")) }
}

fn bridge_command(listener: OwnedFd) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(BRIDGE_ARGUMENT).stdin(Stdio::from(listener)).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn become_command(program: &OsString, args: &[OsString], port: u16) -> io::Error {
    let proxy = format!("http://127.0.0.1:{port}");
    let mut command = Command::new(program);
    command.args(args).env(NODE_VARIABLE, "1");
    command.envs(PROXY_VARIABLES.map(|name| (name, proxy.as_str())));
    command.envs(DIRECT_VARIABLES.map(|name| (name, DIRECT_HOSTS)));
    command.exec()
}

/// Carries out `swarm __bridge SOCKET [serve]`, with the listener as standard input.
pub fn bridge(args: &[OsString]) -> u8 {
    let result = match args {
        [socket] => detach(socket),
        [socket, word] if word == SERVE_ARGUMENT => serve(Path::new(socket)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    u8::from(result.is_err())
}

/// Starts the bridge and leaves it to the sandbox's init.
fn detach(socket: &OsString) -> io::Result<()> {
    let listener = io::stdin().as_fd().try_clone_to_owned()?;
    bridge_command(listener)
        .args([socket, &OsString::from(SERVE_ARGUMENT)])
        .process_group(0)
        .spawn()
        .map(drop)
}

fn serve(socket: &Path) -> io::Result<()> {
    let listener = TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let socket: &'static Path = Box::leak(PathBuf::from(socket).into_boxed_path());
        loop {
            let (mut near, _) = listener.accept().await?;
            tokio::spawn(async move {
                if let Ok(mut far) = UnixStream::connect(socket).await {
                    // The agent sees an error as the end of its connection.
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    })
}
