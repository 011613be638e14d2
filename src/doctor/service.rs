//! The daemon and its sockets.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use super::Check;
use crate::client::connect::{self, Probe};
use crate::paths::Paths;
use crate::protocol::{Call, DaemonView, Empty};
use crate::store::DaemonLock;

/// How long a daemon may take to answer; it does so at once whatever else hangs.
const ANSWER: Duration = Duration::from_secs(5);

/// How long a daemon that holds the lock and is not there yet may take to come up.
const COMING_UP: Duration = Duration::from_secs(2);

/// The places of the sockets.
pub(super) fn sockets(paths: &Paths) -> Vec<Check> {
    let mut checks = vec![];
    for socket in [paths.socket(), paths.tmux_socket()] {
        let found = fs::symlink_metadata(&socket);
        if found.is_ok_and(|found| !found.file_type().is_socket()) {
            let message = format!("{} is there and is no socket of ours", socket.display());
            let cure = format!("look at it and move it away: mv '{0}' '{0}.old'", socket.display());
            checks.push(Check::fail("socket", message, cure));
        }
    }
    let dir = paths.socket().parent().map(Path::to_owned).unwrap_or_default();
    if dir == paths.root() {
        return checks;
    }
    match fs::symlink_metadata(&dir) {
        Ok(found)
            if !found.is_dir()
                || found.uid() != nix::unistd::geteuid().as_raw()
                || found.mode() & 0o077 != 0 =>
        {
            let message =
                format!("{} is not a directory of yours alone and cannot hold a socket", dir.display());
            checks.push(Check::fail("socket", message, "remove it, or use a shorter SWARM_DIR"));
        }
        Ok(_) | Err(_) => {
            let message = format!("SWARM_DIR is too long for a socket; it is {}", paths.socket().display());
            checks.push(Check::ok("socket", message));
        }
    }
    checks
}

/// The daemon; `live` panes would be without one.
pub(super) async fn daemon(paths: &Paths, live: usize) -> Vec<Check> {
    let holder = DaemonLock::holder(paths);
    let nobody = match connect::probe(paths).await {
        Ok(Probe::Ready(client)) => return vec![answers(paths, client).await],
        Ok(Probe::WrongVersion(daemon)) => {
            return vec![Check::of("daemon", connect::wrong_version(&daemon), "swarm daemon restart")];
        }
        Ok(Probe::Nobody) => true,
        Err(_) => false,
    };
    let socket = paths.socket();
    if !nobody {
        let Err(error) = connect::probe(paths).await else { return vec![] };
        let cure = format!("look who holds {} and move it away", socket.display());
        return vec![Check::of("daemon", error, &cure)];
    }
    if let Some(pid) = holder {
        return vec![without_socket(paths, pid).await];
    }
    let mut checks = vec![];
    if fs::symlink_metadata(&socket).is_ok_and(|found| found.file_type().is_socket()) {
        let message = format!("{} is what a daemon left that was killed", socket.display());
        checks.push(Check::warn("socket", message, "swarm daemon start replaces it"));
    }
    checks.push(match live {
        0 => Check::ok("daemon", "it does not run; the first command that needs it starts it"),
        _ => {
            let message = format!("it does not run, and nobody looks after {live} live workers");
            Check::warn("daemon", message, "swarm daemon start")
        }
    });
    checks
}

async fn answers(paths: &Paths, mut client: connect::Client) -> Check {
    let pid = client.daemon.pid;
    let view: DaemonView = match client.call(&Call::DaemonStatus(Empty {}), ANSWER).await {
        Ok(view) => view,
        Err(error) => {
            let cure = connect::last_resort(&paths.daemon_log(), pid);
            return Check::fail("daemon", format!("it runs (pid {pid}) and hangs: {}", error.message), cure);
        }
    };
    let own = env!("CARGO_PKG_VERSION");
    if view.version != own {
        let message = format!("it runs swarm {} (pid {pid}); this is swarm {own}", view.version);
        return Check::warn("daemon", message, "swarm daemon restart (nothing is paused by it)");
    }
    Check::ok("daemon", format!("it runs (pid {pid}), {} of {} workers live", view.live, view.workers))
}

/// A daemon holds the lock, and nobody is behind the socket.
async fn without_socket(paths: &Paths, pid: u32) -> Check {
    let until = tokio::time::Instant::now() + COMING_UP;
    while tokio::time::Instant::now() < until {
        match (connect::probe(paths).await, DaemonLock::holder(paths)) {
            (Ok(Probe::Ready(client)), _) => return answers(paths, client).await,
            (_, None) => return Check::ok("daemon", "it has just ended"),
            (_, Some(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    let message = format!("one runs (pid {pid}), and nobody answers at {}", paths.socket().display());
    Check::fail("daemon", message, format!("kill {pid} (agents go on); the next command starts another"))
}
