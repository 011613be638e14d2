//! The handle to a tmux server, and the state that its clones share. The other files add its functions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::connection::Control;
use super::known_panes::KnownPanes;
use super::probe::{KnownServer, absolute};
use super::types::TmuxOptions;
use super::version::Version;

/// A handle to a tmux server. Cheap to clone; connects on first use.
#[derive(Clone, Debug)]
pub struct Tmux(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) options: TmuxOptions,
    /// Absolute.
    pub(super) socket: PathBuf,
    pub(super) control: tokio::sync::Mutex<Control>,
    /// Held while a server is started, or a window is made or closed, since each depends on what exists. If the last
    /// two windows of a session close at the same moment, a server with a control client crashes, if its tmux lacks
    /// the fix for <https://github.com/tmux/tmux/issues/5243> (seen with 3.3a).
    pub(super) changing: tokio::sync::Mutex<()>,
    /// Held while the server is asked to make its socket again. A second request would remove the new socket.
    pub(super) reviving: tokio::sync::Mutex<()>,
    pub(super) server: std::sync::Mutex<Option<KnownServer>>,
    /// The constant properties of the panes in the last list.
    pub(super) known: std::sync::Mutex<KnownPanes>,
    pub(super) installed: tokio::sync::OnceCell<Option<Version>>,
}

impl Tmux {
    /// Makes a handle. Starts and connects nothing.
    pub fn new(options: TmuxOptions) -> Self {
        let socket = absolute(&options.socket);
        Self(Arc::new(Inner {
            options,
            socket,
            control: tokio::sync::Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            reviving: tokio::sync::Mutex::default(),
            server: std::sync::Mutex::default(),
            known: std::sync::Mutex::default(),
            installed: tokio::sync::OnceCell::new(),
        }))
    }

    /// The socket's absolute path, also for a server with a name.
    pub fn socket_path(&self) -> PathBuf {
        self.0.socket.clone()
    }

    /// The session that holds the workers' windows.
    pub fn session(&self) -> &str {
        &self.0.options.session
    }
}

impl Inner {
    pub(super) fn socket_path(&self) -> &Path {
        &self.socket
    }

    /// The session of the control client. It also keeps the server from having no session.
    pub(super) fn hidden_session(&self) -> String {
        format!("{}-ctl", self.options.session)
    }
}

/// Locks a mutex. Its holders never panic halfway, so a poisoned value is still consistent.
pub(super) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A number that is unique in this process.
pub(super) fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
