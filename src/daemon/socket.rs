//! The socket's file: bound at the start, and again when somebody removed it.
//!
//! A daemon whose socket is gone works on and cannot be reached. Whoever then starts a daemon finds the lock
//! held and reminds its holder with a signal; the holder looks after its socket. Used by the daemon's start and
//! by [`crate::daemon::server`]. Deliberately absent: what clients say.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Result};

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
pub(crate) fn request_rebind(pid: u32, socket: &Path) {
    if let (Err(_), Ok(pid)) = (std::os::unix::net::UnixStream::connect(socket), i32::try_from(pid)) {
        // It may have ended just now.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGWINCH);
    }
}

/// Where clients come in.
pub(crate) struct SocketListener {
    listener: UnixListener,
    path: PathBuf,
    /// Which file is ours.
    file: Option<(u64, u64)>,
    reminders: Option<Signal>,
}

impl SocketListener {
    pub(crate) fn new(listener: UnixListener, path: PathBuf) -> Self {
        let file = identity(&path);
        Self { listener, path, file, reminders: signal(SignalKind::window_change()).ok() }
    }

    /// The next client.
    ///
    /// # Errors
    /// The system's, when there is no descriptor left, say.
    pub(crate) async fn accept(&mut self) -> std::io::Result<UnixStream> {
        loop {
            let reminded = async {
                match &mut self.reminders {
                    Some(signals) => signals.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                accepted = self.listener.accept() => return accepted.map(|(stream, _)| stream),
                _ = reminded => self.restore_file(),
            }
        }
    }

    /// Makes the socket again if its file is gone or another.
    fn restore_file(&mut self) {
        let found = identity(&self.path);
        if found.is_some() && found == self.file {
            return;
        }
        match bind(&self.path) {
            Ok(fresh) => (self.listener, self.file) = (fresh, identity(&self.path)),
            Err(error) => tracing::warn!(%error, "the socket is gone and cannot be made again"),
        }
    }
}

/// Which file a path names.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
