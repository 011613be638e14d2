//! The file of the daemon's socket: bound at the start, and bound again after a removal.
//!
//! A daemon whose socket file is gone keeps working, but no client can reach it. A client that then starts a daemon
//! finds the lock held and sends the holder a signal; the holder binds its socket again. Used at the daemon's start
//! and by [`super::server`]. Not here: the protocol.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Result};

/// Binds the socket. Removes the file of a daemon that has ended: the caller holds the daemon's lock, so no other live
/// daemon uses it. Refuses to replace anything that is not a socket.
pub(crate) fn bind(path: &Path) -> Result<UnixListener> {
    let failed = |e: &dyn std::fmt::Display| Error::system(format!("cannot listen on {}", path.display()), e);
    if let Ok(found) = std::fs::symlink_metadata(path) {
        use std::os::unix::fs::FileTypeExt;
        let answers = || std::os::unix::net::UnixStream::connect(path).is_ok();
        if !found.file_type().is_socket() || answers() {
            return Err(failed(&"another program uses this path").hint("move it away"));
        }
        std::fs::remove_file(path).map_err(|e| failed(&e))?;
    }
    let listener = UnixListener::bind(path).map_err(|e| failed(&e))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(|e| failed(&e))?;
    Ok(listener)
}

/// Asks the lock's holder to bind its socket again, if no client can connect. A starting daemon ignores the signal.
pub(crate) fn request_rebind(pid: u32, socket: &Path) {
    if let (Err(_), Ok(pid)) = (std::os::unix::net::UnixStream::connect(socket), i32::try_from(pid)) {
        // The daemon may have ended meanwhile.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGWINCH);
    }
}

pub(crate) struct SocketListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file that this daemon bound.
    file: Option<(u64, u64)>,
    reminders: Option<Signal>,
}

impl SocketListener {
    pub(crate) fn new(listener: UnixListener, path: PathBuf) -> Self {
        let file = identity(&path);
        Self { listener, path, file, reminders: signal(SignalKind::window_change()).ok() }
    }

    /// The next client. Fails for example when no file descriptor is left.
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

    /// Binds the socket again if its file is gone or was replaced.
    fn restore_file(&mut self) {
        let found = identity(&self.path);
        if found.is_some() && found == self.file {
            return;
        }
        match bind(&self.path) {
            Ok(fresh) => (self.listener, self.file) = (fresh, identity(&self.path)),
            Err(error) => tracing::warn!(%error, "the socket file is gone and cannot be bound again"),
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
