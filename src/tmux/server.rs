//! The server: started when it is absent, asked how it is, ended by tests and the demo.
//!
//! Only the socket identifies it. "Gone" is said only when nothing can be listening there; a time-out is
//! never taken for death.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tmux_interface::{HasSession, KillServer, NewSession};

use super::control::Broken;
use super::empty::EMPTY;
use super::plain::{self, Words};
use super::{Health, Inner, Socket, Tmux, Version, config, lock, quote};
use crate::error::{Error, ErrorCode, Result};
use crate::procs;

/// The longest socket path, in bytes, that the system takes.
const LONGEST_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// How long a server that was told to end usually takes at most.
const GOODBYE: Duration = Duration::from_millis(300);

/// A server, as it was when it last answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) pid: i32,
    /// Tells the process from a later one with the same pid, where the system says.
    start_time: Option<u64>,
}

/// What a connection attempt shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// Somebody listens: this process, where the system says so.
    Listening(Option<i32>),
    /// There is no socket, or nobody behind it.
    Absent,
    /// It cannot be told: full backlog, no permission, no descriptors.
    Unsure,
}

/// The socket's absolute path, by tmux's own rule for names.
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

impl Tmux {
    /// Makes sure that the server is there, starting it if it is absent, and gives its pid.
    ///
    /// # Errors
    /// When tmux is missing or too old, the socket cannot be used, or the server does not answer. A server
    /// that is there but silent is never replaced.
    pub async fn ensure_server(&self) -> Result<i32> {
        let inner = &*self.0;
        let installed = inner.installed().await?;
        let _creating = inner.creating.lock().await;
        match self.health().await {
            Health::Alive { pid } => return Ok(pid),
            Health::Unresponsive => return Err(inner.silent()),
            Health::Gone => inner.end_empty().await?,
        }
        inner.check_socket()?;
        config::write(&inner.options, installed)?;
        inner.start_hidden_session().await?;
        match self.health().await {
            Health::Alive { pid } => Ok(pid),
            Health::Gone | Health::Unresponsive => Err(inner.silent()),
        }
    }

    /// How the server is. Takes some ten seconds when it does not answer.
    pub async fn health(&self) -> Health {
        let inner = &*self.0;
        let found = probe(inner.socket_path()).await;
        if found == Probe::Absent && !inner.revive().await {
            return Health::Gone;
        }
        let listener = if let Probe::Listening(pid) = found { pid } else { None };
        let empty = inner.until_empty(listener);
        tokio::pin!(empty);
        tokio::select! {
            biased;
            asked = inner.ask_pid() => if let Some(pid) = asked {
                inner.note_server(pid);
                return Health::Alive { pid };
            },
            () = &mut empty => return Health::Gone,
        }
        // It may have ended just now, or have refused at once.
        if inner.is_gone().await || tokio::time::timeout(EMPTY, empty).await.is_ok() {
            Health::Gone
        } else {
            Health::Unresponsive
        }
    }

    /// The version of the tmux that is installed, as it says it (`3.3a`); None when there is none.
    pub async fn version(&self) -> Option<String> {
        said_version().await.ok()
    }

    /// Tells this handle which process the server is, as saved by an earlier daemon. With it, a server
    /// whose socket file somebody deleted is found again instead of being taken for gone. A pid that is not
    /// a tmux server is ignored.
    pub fn expect_server(&self, pid: i32) {
        if procs::name(pid).is_some_and(|name| name.contains("tmux")) {
            self.0.note_server(pid);
        }
    }

    /// Makes the server look at its dead children again. On the tmux of Debian 12 the news of a child's end
    /// is mostly lost, and with it the exit status, until the next child or this call.
    pub async fn nudge(&self) {
        let inner = &*self.0;
        let seen = *lock(&inner.server);
        let seen = match seen {
            Some(seen) => Some(seen),
            None => {
                if let Some(pid) = inner.ask_pid().await {
                    inner.note_server(pid);
                }
                *lock(&inner.server)
            }
        };
        if let Some(seen) = seen.filter(Seen::is_alive) {
            // SIGCHLD is harmless to whoever gets it.
            let _ = kill(Pid::from_raw(seen.pid), Signal::SIGCHLD);
        }
    }

    /// Ends the server and everything in it, and waits until it is gone. For tests and the demo.
    ///
    /// # Errors
    /// When it is still there after some seconds.
    pub async fn kill_server(&self) -> Result<()> {
        let inner = &*self.0;
        let seen = *lock(&inner.server);
        let output = inner.run(&[KillServer::new().build().into()]).await?;
        if !output.ok && !plain::says_absent(&output.stderr) {
            return Err(plain::refusal("end the server", &output.stderr));
        }
        if let Some(seen) = seen.filter(Seen::is_alive) {
            if tokio::time::timeout(GOODBYE, procs::wait_gone(seen.pid)).await.is_err() {
                inner.end_stuck_clients();
            }
            let gone = procs::wait_gone(seen.pid);
            tokio::time::timeout(plain::TIMEOUT, gone).await.map_err(|_| inner.silent())?;
        }
        Ok(())
    }

    /// Ends the server when no worker's window is left in it. True when it is gone, and its socket too.
    ///
    /// # Errors
    /// As [`Tmux::list`] and [`Tmux::kill_server`].
    pub async fn shutdown_if_empty(&self) -> Result<bool> {
        let _creating = self.0.creating.lock().await;
        if self.health().await != Health::Gone {
            if !self.list().await?.is_empty() {
                return Ok(false);
            }
            self.kill_server().await?;
        }
        self.0.end_empty().await?;
        // tmux leaves it. Nothing listens there, and who would make another server is the caller, who ends.
        let _ = std::fs::remove_file(self.socket_path());
        Ok(true)
    }
}

impl Seen {
    /// Whether it is the same process, and not a dead one that nobody reaped.
    fn is_alive(&self) -> bool {
        procs::is_alive(self.pid) && procs::start_time(self.pid) == self.start_time
    }
}

impl Inner {
    fn note_server(&self, pid: i32) {
        *lock(&self.server) = Some(Seen { pid, start_time: procs::start_time(pid) });
    }

    /// The server's pid, as the server says it.
    async fn ask_pid(&self) -> Option<i32> {
        let text = self.query(&["display-message", "-p", "#{pid}"]).await.ok()?;
        String::from_utf8_lossy(&text).trim().parse().ok()
    }

    /// True when nothing listens, for sure.
    async fn is_gone(&self) -> bool {
        match probe(self.socket_path()).await {
            Probe::Absent => !self.revive().await,
            Probe::Listening(_) | Probe::Unsure => false,
        }
    }

    /// A server whose socket was deleted makes it again when it is asked to (SIGUSR1). True when it did.
    async fn revive(&self) -> bool {
        let known = *lock(&self.server);
        let Some(seen) = known.filter(Seen::is_alive).or_else(|| self.search()) else { return false };
        // Without a start time this might be anybody, and SIGUSR1 ends most programs.
        if seen.start_time.is_none() || !seen.is_alive() {
            return false;
        }
        if kill(Pid::from_raw(seen.pid), Signal::SIGUSR1).is_err() {
            return false;
        }
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            if matches!(probe(self.socket_path()).await, Probe::Listening(_)) {
                return true;
            }
            if !seen.is_alive() {
                return false;
            }
        }
        // It lives but cannot be reached: not gone.
        true
    }

    /// Ends control clients of daemons that are dead. When one has left a reply unread, the server keeps the
    /// client for ever (seen on 3.3a), and a server that is told to end waits for it.
    pub(super) fn end_stuck_clients(&self) {
        let Socket::Path(socket) = &self.options.socket else { return };
        let args: [&[u8]; 4] = [b"-S", socket.as_os_str().as_bytes(), b"-C", b"attach-session"];
        let own_name = procs::name(std::process::id().cast_signed());
        for client in procs::find_all("tmux: client", &args) {
            // The parent of a live daemon's client is that daemon.
            if procs::name(client.ppid) != own_name {
                procs::signal_one(client.pid, Signal::SIGKILL);
            }
        }
    }

    /// The server that was started for this very socket, when no daemon that lived tells its pid: it may be
    /// empty, or of a daemon that died before it wrote one down.
    pub(super) fn search(&self) -> Option<Seen> {
        let Socket::Path(socket) = &self.options.socket else { return None };
        let (socket, config) = (socket.as_os_str().as_bytes(), self.options.config.as_os_str().as_bytes());
        let pid = procs::find("tmux: server", &[b"-S", socket, b"-f", config])?;
        Some(Seen { pid, start_time: procs::start_time(pid) })
    }

    /// The version that is installed; None for one that cannot be read (a build from tmux's own tree).
    async fn installed(&self) -> Result<Option<Version>> {
        let check = async {
            let said = said_version().await?;
            let version = Version::parse(&said);
            if version.is_some_and(|version| version < Version::MINIMUM) {
                let message = format!("tmux {said} is too old: swarm needs {} or later", Version::MINIMUM);
                return Err(Error::new(ErrorCode::System, message).hint("install a newer tmux"));
            }
            Ok(version)
        };
        self.installed.get_or_try_init(|| check).await.copied()
    }

    /// The error for a server that should answer and does not.
    pub(super) fn silent(&self) -> Error {
        let path = self.socket_path().display();
        Error::new(ErrorCode::Timeout, format!("the tmux server at {path} does not answer"))
            .hint(format!("look at it with: tmux -S '{path}' ls"))
    }

    /// Makes sure that a server can be started at the socket, without harm to what is there.
    fn check_socket(&self) -> Result<()> {
        let path = self.socket_path();
        let length = path.as_os_str().len();
        if length > LONGEST_PATH {
            let message =
                format!("the tmux socket path is {length} bytes long, at most {LONGEST_PATH} are possible");
            return Err(Error::invalid(message).hint("choose a shorter SWARM_DIR or --tmux-socket"));
        }
        // tmux deletes whatever is in its way.
        if path.symlink_metadata().is_ok_and(|meta| !meta.file_type().is_socket()) {
            return Err(Error::invalid(format!("{} exists and is no socket", path.display())));
        }
        let dir = path.parent().unwrap_or(Path::new("/"));
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|cause| Error::system(format_args!("cannot create {}", dir.display()), cause))?;
        if matches!(self.options.socket, Socket::Name(_)) {
            // The directory is in /tmp: somebody else may have been there first.
            let meta = dir.symlink_metadata().map_err(|cause| Error::system(dir.display(), cause))?;
            if !meta.is_dir() || meta.uid() != nix::unistd::getuid().as_raw() || meta.mode() & 0o007 != 0 {
                return Err(Error::new(ErrorCode::System, format!("{} is not safe to use", dir.display())));
            }
        }
        Ok(())
    }

    /// Makes the control client's session, if it is missing, in a server that is there.
    pub(super) async fn ensure_hidden_session(&self) -> Result<()> {
        let target = format!("={}", self.hidden_session());
        let output = self.run(&[HasSession::new().target_session(target).build().into()]).await?;
        if output.ok {
            return Ok(());
        }
        // The second is what a server without any session says: one that lost all of them, or that was
        // started by a command which found nothing to do.
        if ["can't find session", "no current target"].iter().any(|said| output.stderr.contains(said)) {
            return self.start_hidden_session().await;
        }
        Err(plain::refusal("find the server", &output.stderr))
    }

    /// Makes it, starting the server if there is none.
    async fn start_hidden_session(&self) -> Result<()> {
        let (columns, rows) = config::DEFAULT_SIZE;
        let session = NewSession::new().detached().session_name(self.hidden_session());
        let session = session.width(columns.into()).height(rows.into()).build();
        // Two words: one alone would go through a shell.
        let output = self.run(&[Words::from(session).and(["cat", "-"])]).await?;
        if output.ok || output.stderr.contains("duplicate session") {
            return Ok(());
        }
        Err(plain::refusal("start the server", &output.stderr))
    }

    /// One read-only command: through the control client, or by a process. Gives its output.
    pub(super) async fn query(&self, words: &[&str]) -> Result<Vec<u8>> {
        if let Some(link) = self.link().await {
            match self.ask(&link, quote::line(words)).await {
                Ok(mut replies) => {
                    let reply = replies.pop().unwrap_or(Ok(Vec::new()));
                    return reply.map_err(|said| plain::refusal(words[0], &said));
                }
                Err(Broken::Silent) => return Err(self.silent()),
                Err(Broken::Lost) => {}
            }
        }
        let words = Words(words.iter().map(Into::into).collect());
        let what = words.0[0].to_string_lossy().into_owned();
        self.run(&[words]).await?.into_result(&what)
    }
}

/// Whether a process is the server that was started for this socket.
pub fn is_server_at(pid: i32, socket: &Path) -> bool {
    procs::name(pid).is_some_and(|name| name == "tmux: server")
        && procs::arguments(pid)
            .windows(2)
            .any(|two| two[0] == b"-S" && two[1] == socket.as_os_str().as_bytes())
}

/// What `tmux -V` says, without the `tmux`.
pub(super) async fn said_version() -> Result<String> {
    let mut command = tokio::process::Command::new("tmux");
    command.arg("-V").kill_on_drop(true).stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let text = plain::output(command, None).await?.into_result("tell its version")?;
    Ok(String::from_utf8_lossy(&text).trim().trim_start_matches("tmux ").to_owned())
}

/// Tries to connect. tmux takes a connection that says nothing for a client that left.
pub(super) async fn probe(socket: &Path) -> Probe {
    let attempt = tokio::net::UnixStream::connect(socket);
    match tokio::time::timeout(Duration::from_secs(2), attempt).await {
        Ok(Ok(stream)) => Probe::Listening(stream.peer_cred().ok().and_then(|peer| peer.pid())),
        Ok(Err(cause)) => match cause.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory => Probe::Absent,
            // Such a path can hold no socket.
            ErrorKind::InvalidInput => Probe::Absent,
            _ => Probe::Unsure,
        },
        Err(_) => Probe::Unsure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_absent_only_when_nobody_can_listen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        assert_eq!(probe(&path).await, Probe::Absent);
        assert_eq!(probe(&path.join("below")).await, Probe::Absent);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let listening = probe(&path).await;
        assert!(matches!(listening, Probe::Listening(_)), "{listening:?}");
        #[cfg(target_os = "linux")]
        assert_eq!(listening, Probe::Listening(i32::try_from(std::process::id()).ok()));
        drop(listener);
        assert_eq!(probe(&path).await, Probe::Absent, "a stale socket file");
    }

    #[test]
    fn a_name_becomes_tmuxs_own_path() {
        let path = absolute(&Socket::Name("x".into()));
        assert!(
            path.is_absolute() && path.ends_with(format!("tmux-{}/x", nix::unistd::getuid())),
            "{path:?}"
        );
    }
}
