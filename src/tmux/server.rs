//! The server: starting it, its health, and ending it for tests and the demo.
//!
//! Only the socket identifies a server. It counts as gone only if nothing can be listening there, or the listening
//! server is known to be empty; a timeout alone never means that it is gone.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use swarm_state::spec::DEFAULT_SIZE;
use tmux_interface::{HasSession, KillServer, NewSession};

use super::connection::BrokenConnection;
use super::empty::EMPTY_CHECK_TIME;
use super::handle::{Inner, Tmux, lock};
use super::plain::{self, Words};
use super::probe::{IDLE_ARGV, KnownServer, SERVER_NAME, ServerProbe, probe};
use super::types::{Health, Socket};
use super::version::Version;
use super::{config, quote};
use crate::error::{Error, ErrorCode, Result};
use crate::paths::MAX_SOCKET_PATH_BYTES;
use crate::procs;

/// How long a server usually takes at most to exit on request.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(300);

impl Tmux {
    /// Starts the server if it does not run, and returns its pid. Fails when tmux is missing or too old, the socket
    /// cannot be used, or the server does not respond. A server that exists but does not respond is never replaced.
    pub async fn ensure_server(&self) -> Result<i32> {
        let inner = &*self.0;
        let installed = inner.installed().await?;
        let _changing = inner.changing.lock().await;
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

    /// The health of the server. Takes about ten seconds if it does not respond.
    pub async fn health(&self) -> Health {
        let inner = &*self.0;
        let found = probe(inner.socket_path()).await;
        if found == ServerProbe::Absent && !inner.revive().await {
            return Health::Gone;
        }
        let listener = if let ServerProbe::Listening(pid) = found { pid } else { None };
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
        // The server may have ended just now, or refused at once.
        if inner.is_gone().await || tokio::time::timeout(EMPTY_CHECK_TIME, empty).await.is_ok() {
            Health::Gone
        } else {
            Health::Unresponsive
        }
    }

    /// The installed version of tmux in its own notation (`3.3a`); `None` if tmux is not installed.
    pub async fn version(&self) -> Option<String> {
        said_version().await.ok()
    }

    /// Sets the server's process, as an earlier daemon saved it. A server whose socket file was deleted is then found
    /// again and does not count as gone. Ignores a pid that is not a tmux server.
    pub fn expect_server(&self, pid: i32) {
        if procs::name(pid).is_some_and(|name| name.contains("tmux")) {
            self.0.note_server(pid);
        }
    }

    /// Makes the server collect its dead children. The tmux of Debian 12 often misses the end of a child, and with it
    /// the exit status, until another child ends or this call is made.
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
        if let Some(seen) = seen.filter(KnownServer::is_alive) {
            // SIGCHLD is harmless for any process.
            let _ = kill(Pid::from_raw(seen.pid), Signal::SIGCHLD);
        }
    }

    /// Ends the server and everything in it, and waits until it is gone. For tests and the demo. Fails when it still
    /// runs after some seconds.
    pub async fn kill_server(&self) -> Result<()> {
        let inner = &*self.0;
        let seen = *lock(&inner.server);
        let output = inner.run(&[KillServer::new().build().into()]).await?;
        if !output.ok && !plain::says_absent(&output.stderr) {
            return Err(plain::refusal("end the server", &output.stderr));
        }
        if let Some(seen) = seen.filter(KnownServer::is_alive) {
            if tokio::time::timeout(GOODBYE_TIMEOUT, procs::wait_gone(seen.pid)).await.is_err() {
                inner.end_stuck_clients();
            }
            let gone = procs::wait_gone(seen.pid);
            tokio::time::timeout(plain::TMUX_COMMAND_TIMEOUT, gone).await.map_err(|_| inner.silent())?;
        }
        Ok(())
    }

    /// Ends the server and removes its socket, if it has no worker's window.
    pub async fn shutdown_if_empty(&self) -> Result<()> {
        let _changing = self.0.changing.lock().await;
        if self.health().await != Health::Gone {
            if !self.list().await?.is_empty() {
                return Ok(());
            }
            self.kill_server().await?;
        }
        self.0.end_empty().await?;
        // tmux leaves the socket file. Nothing listens there, and the caller ends and makes no other server.
        let _ = std::fs::remove_file(self.socket_path());
        Ok(())
    }
}

impl Inner {
    fn note_server(&self, pid: i32) {
        *lock(&self.server) = Some(KnownServer { pid, start_time: procs::start_time(pid) });
    }

    /// The server's pid, reported by the server itself.
    async fn ask_pid(&self) -> Option<i32> {
        let text = self.query(&["display-message", "-p", "#{pid}"]).await.ok()?;
        String::from_utf8_lossy(&text).trim().parse().ok()
    }

    /// Whether certainly nothing listens.
    async fn is_gone(&self) -> bool {
        match probe(self.socket_path()).await {
            ServerProbe::Absent => !self.revive().await,
            ServerProbe::Listening(_) | ServerProbe::Unsure => false,
        }
    }

    /// Asks a server whose socket was deleted to make it again (SIGUSR1). True if the server lives.
    async fn revive(&self) -> bool {
        let _reviving = self.reviving.lock().await;
        let known = lock(&self.server).filter(KnownServer::is_alive);
        let Some(seen) = known.or_else(|| self.search()) else { return false };
        // A server that never answered may be starting. The signal would make it replace the socket that it has just
        // made, and clients that connect at that moment would find no server.
        if known.is_none()
            && let Some(lives) = self.wait_for_socket(&seen).await
        {
            return lives;
        }
        // Without a start time the pid could be any process, and SIGUSR1 ends most programs.
        if seen.start_time.is_none() || !seen.is_alive() {
            return false;
        }
        // Another task may have asked while this one waited for the lock.
        if !matches!(probe(self.socket_path()).await, ServerProbe::Absent) {
            return true;
        }
        if kill(Pid::from_raw(seen.pid), Signal::SIGUSR1).is_err() {
            return false;
        }
        // A server that lives but cannot be reached is not gone.
        self.wait_for_socket(&seen).await.unwrap_or(true)
    }

    /// Waits until something listens at the socket (true) or the server has ended (false). `None` after a second.
    async fn wait_for_socket(&self, server: &KnownServer) -> Option<bool> {
        for _ in 0..40 {
            if matches!(probe(self.socket_path()).await, ServerProbe::Listening(_)) {
                return Some(true);
            }
            if !server.is_alive() {
                return Some(false);
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        None
    }

    /// Ends control clients whose daemons are dead. If such a client left a reply unread, the server keeps it forever
    /// (seen on 3.3a), and a server that should exit waits for it.
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

    /// The server that was started for this socket, when no live daemon has its pid: it may be empty, or belong to a
    /// daemon that died before it saved the pid.
    pub(super) fn search(&self) -> Option<KnownServer> {
        let Socket::Path(socket) = &self.options.socket else { return None };
        let (socket, config) = (socket.as_os_str().as_bytes(), self.options.config.as_os_str().as_bytes());
        let pid = procs::find(SERVER_NAME, &[b"-S", socket, b"-f", config])?;
        Some(KnownServer { pid, start_time: procs::start_time(pid) })
    }

    /// The installed version; `None` if it cannot be parsed (a build from tmux's repository).
    async fn installed(&self) -> Result<Option<Version>> {
        let check = async { Ok(Version::parse(&usable_version().await?)) };
        self.installed.get_or_try_init(|| check).await.copied()
    }

    /// The error for a server that should respond and does not.
    pub(super) fn silent(&self) -> Error {
        let path = self.socket_path().display();
        Error::new(ErrorCode::Timeout, format!("the tmux server at {path} does not respond"))
            .hint(format!("examine it: tmux -S '{path}' ls"))
    }

    /// Makes sure that a server can be started at the socket without harm to existing files.
    fn check_socket(&self) -> Result<()> {
        let path = self.socket_path();
        let length = path.as_os_str().len();
        if length > MAX_SOCKET_PATH_BYTES {
            let message =
                format!("the tmux socket path has {length} bytes; the maximum is {MAX_SOCKET_PATH_BYTES}");
            return Err(Error::invalid(message).hint("choose a shorter SWARM_DIR or --tmux-socket"));
        }
        // tmux deletes any file at the path of its socket.
        if path.symlink_metadata().is_ok_and(|meta| !meta.file_type().is_socket()) {
            return Err(Error::invalid(format!("{} exists and is not a socket", path.display())));
        }
        let dir = path.parent().unwrap_or(Path::new("/"));
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|cause| Error::system(format_args!("cannot create {}", dir.display()), cause))?;
        if matches!(self.options.socket, Socket::Name(_)) {
            // The directory is in /tmp, where another user may have made it first.
            let meta = dir.symlink_metadata().map_err(|cause| Error::system(dir.display(), cause))?;
            if !meta.is_dir() || meta.uid() != nix::unistd::getuid().as_raw() || meta.mode() & 0o007 != 0 {
                return Err(Error::new(ErrorCode::System, format!("{} is not safe to use", dir.display())));
            }
        }
        Ok(())
    }

    /// Makes the control client's session if it is missing. The server must run.
    pub(super) async fn ensure_hidden_session(&self) -> Result<()> {
        let target = format!("={}", self.hidden_session());
        let output = self.run(&[HasSession::new().target_session(target).build().into()]).await?;
        if output.ok {
            return Ok(());
        }
        // The second message is from a server without any session: it lost all of them, or a command started it that
        // found nothing to do.
        if ["can't find session", "no current target"].iter().any(|said| output.stderr.contains(said)) {
            return self.start_hidden_session().await;
        }
        Err(plain::refusal("find the server", &output.stderr))
    }

    /// Makes the session, and starts the server if none runs.
    async fn start_hidden_session(&self) -> Result<()> {
        let (columns, rows) = DEFAULT_SIZE;
        let session = NewSession::new().detached().session_name(self.hidden_session());
        let session = session.width(columns.into()).height(rows.into()).build();
        // Two words: a single one would go through a shell.
        let output = self.run(&[Words::from(session).and(IDLE_ARGV)]).await?;
        if output.ok || output.stderr.contains("duplicate session") {
            return Ok(());
        }
        Err(plain::refusal("start the server", &output.stderr))
    }

    /// Runs one read-only command, through the control client or a plain process, and returns its output.
    pub(super) async fn query(&self, words: &[&str]) -> Result<Vec<u8>> {
        self.query_all([words]).await.map(|[output]| output)
    }

    /// The same for several commands. The control client sends them in one request.
    pub(super) async fn query_all<const N: usize>(&self, commands: [&[&str]; N]) -> Result<[Vec<u8>; N]> {
        let mut outputs = [const { Vec::new() }; N];
        if let Some(link) = self.link().await {
            match self.ask(&link, commands.iter().flat_map(|words| quote::line(words)).collect()).await {
                Ok(replies) => {
                    for ((output, reply), words) in outputs.iter_mut().zip(replies).zip(commands) {
                        *output = reply.map_err(|said| plain::refusal(words[0], &said))?;
                    }
                    return Ok(outputs);
                }
                Err(BrokenConnection::Silent) => return Err(self.silent()),
                Err(BrokenConnection::Lost) => {}
            }
        }
        for (output, words) in outputs.iter_mut().zip(commands) {
            *output = self.run(&[words.into()]).await?.into_result(words[0])?;
        }
        Ok(outputs)
    }
}

/// The installed version of tmux in its own notation (`3.3a`). Fails when tmux is not installed, does not respond, or
/// is too old for swarm.
pub async fn usable_version() -> Result<String> {
    let said = said_version().await?;
    if Version::parse(&said).is_some_and(|version| version < Version::MINIMUM) {
        let message = format!("tmux {said} is too old: swarm needs {} or later", Version::MINIMUM);
        return Err(Error::new(ErrorCode::System, message).hint("install a newer tmux"));
    }
    Ok(said)
}

/// The output of `tmux -V` without `tmux`.
async fn said_version() -> Result<String> {
    let mut command = tokio::process::Command::new("tmux");
    command.arg("-V").kill_on_drop(true).stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let text = plain::output(command, None).await?.into_result("print its version")?;
    Ok(String::from_utf8_lossy(&text).trim().trim_start_matches("tmux ").to_owned())
}
