//! Finds the process that listens at a socket by connecting, without a tmux command.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::types::Socket;
use crate::procs;

/// A server at the time of its last answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownServer {
    pub(super) pid: i32,
    /// Distinguishes the process from a later one with the same pid, where the system has start times.
    pub(super) start_time: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerProbe {
    /// A process listens: this one, if the system reports it.
    Listening(Option<i32>),
    /// There is no socket, or no process listens at it.
    Absent,
    /// Unknown: full backlog, no permission, or no descriptors.
    Unsure,
}

impl KnownServer {
    /// Whether it is the same process, and not a zombie.
    pub(super) fn is_alive(&self) -> bool {
        procs::is_alive(self.pid) && procs::start_time(self.pid) == self.start_time
    }
}

/// The socket's absolute path; for a name, by tmux's own rule.
pub(super) fn absolute(socket: &Socket) -> PathBuf {
    match socket {
        Socket::Path(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        Socket::Name(name) => {
            let wanted = std::env::var_os("TMUX_TMPDIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
            let base = wanted.into_iter().chain(["/tmp".into()]).find_map(|dir| dir.canonicalize().ok());
            let uid = nix::unistd::getuid();
            base.unwrap_or_else(|| "/tmp".into()).join(format!("tmux-{uid}")).join(name)
        }
    }
}

/// The process name of a server, and of its children until they start their program.
pub(crate) const SERVER_NAME: &str = "tmux: server";

/// Whether a process is the server for this socket.
pub fn is_server_at(pid: i32, socket: &Path) -> bool {
    procs::name(pid).is_some_and(|name| name == SERVER_NAME)
        && procs::arguments(pid)
            .windows(2)
            .any(|two| two[0] == b"-S" && two[1] == socket.as_os_str().as_bytes())
}

/// The program of the hidden session, which waits for input forever.
pub(super) const IDLE_ARGV: [&str; 2] = ["cat", "-"];

/// Whether a process is the program of the hidden session.
pub fn is_idle_program(pid: i32) -> bool {
    let is_cat = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ["cat", "gcat", "coreutils", "busybox"].iter().any(|program| name.starts_with(program))
    };
    procs::arguments(pid) == IDLE_ARGV.map(str::as_bytes) && procs::program(pid).is_some_and(is_cat)
}

/// Tries to connect. tmux treats a connection without data as a client that left.
pub(super) async fn probe(socket: &Path) -> ServerProbe {
    let attempt = tokio::net::UnixStream::connect(socket);
    match tokio::time::timeout(Duration::from_secs(2), attempt).await {
        Ok(Ok(stream)) => ServerProbe::Listening(stream.peer_cred().ok().and_then(|peer| peer.pid())),
        Ok(Err(cause)) => match cause.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory => {
                ServerProbe::Absent
            }
            // No socket can have such a path.
            ErrorKind::InvalidInput => ServerProbe::Absent,
            _ => ServerProbe::Unsure,
        },
        Err(_) => ServerProbe::Unsure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn socket_is_absent_only_without_a_listener() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        assert_eq!(probe(&path).await, ServerProbe::Absent);
        assert_eq!(probe(&path.join("below")).await, ServerProbe::Absent);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let listening = probe(&path).await;
        assert!(matches!(listening, ServerProbe::Listening(_)), "{listening:?}");
        #[cfg(target_os = "linux")]
        assert_eq!(listening, ServerProbe::Listening(i32::try_from(std::process::id()).ok()));
        drop(listener);
        assert_eq!(probe(&path).await, ServerProbe::Absent, "a stale socket file");
    }

    #[test]
    fn socket_name_becomes_the_path_that_tmux_uses() {
        let path = absolute(&Socket::Name("x".into()));
        assert!(
            path.is_absolute() && path.ends_with(format!("tmux-{}/x", nix::unistd::getuid())),
            "{path:?}"
        );
    }
}
