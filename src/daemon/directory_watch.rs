//! Watches the daemon's directory and lock file for removals, with inotify.
//!
//! Only Linux has inotify; elsewhere the looks at the screens check the directory. Not here: the reaction to a
//! removal ([`super::removals`]).

use std::sync::Arc;

use crate::daemon::messages::Inbox;
use crate::paths::Paths;

/// A watch for removals; it stays active as long as the process runs.
#[derive(Clone)]
pub(crate) struct DirectoryWatch {
    #[cfg(target_os = "linux")]
    notify: Arc<nix::sys::inotify::Inotify>,
    #[cfg(not(target_os = "linux"))]
    _notify: Arc<()>,
}

#[cfg(target_os = "linux")]
impl DirectoryWatch {
    /// Sends an input to the supervisor whenever the lock file changes or something is removed. Fails when no watch can
    /// be added, most likely because the limit is reached.
    pub(crate) fn start(paths: &Paths, inbox: &Inbox) -> std::io::Result<Self> {
        use nix::errno::Errno;
        use nix::sys::inotify::{AddWatchFlags as On, InitFlags, Inotify};

        use crate::daemon::messages::DaemonInput;

        let notify = Arc::new(Inotify::init(InitFlags::IN_CLOEXEC)?);
        // The daemon has the lock file open, so its removal shows as a change of its attributes.
        notify.add_watch(&paths.lock(), On::IN_ATTRIB | On::IN_MOVE_SELF | On::IN_DELETE_SELF)?;
        let watch = Self { notify: notify.clone() };
        watch.renew(paths);
        let inbox = inbox.clone();
        // A thread that blocks in a read until the process ends.
        std::thread::Builder::new().name("removal".into()).spawn(move || {
            loop {
                match notify.read_events() {
                    // The supervisor checks the directory itself.
                    Ok(events) if !events.iter().any(|event| matters(event.name.as_deref())) => {}
                    Ok(_) if inbox.send(DaemonInput::DirectoryTouched).is_ok() => {}
                    Err(Errno::EINTR) => {}
                    Ok(_) | Err(_) => return,
                }
            }
        })?;
        Ok(watch)
    }

    /// Watches the directories that exist now.
    pub(crate) fn renew(&self, paths: &Paths) {
        use nix::sys::inotify::AddWatchFlags as On;

        let gone = On::IN_MOVE_SELF | On::IN_DELETE_SELF | On::IN_DELETE | On::IN_MOVED_FROM;
        for dir in [paths.root().to_owned(), paths.workers_dir()] {
            // The looks at the screens check an unwatched directory.
            if let Err(error) = self.notify.add_watch(&dir, gone | On::IN_ONLYDIR) {
                tracing::warn!(%error, dir = %dir.display(), "cannot be watched");
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl DirectoryWatch {
    pub(crate) fn start(_paths: &Paths, _inbox: &Inbox) -> std::io::Result<Self> {
        Ok(Self { _notify: Arc::default() })
    }

    pub(crate) fn renew(&self, _paths: &Paths) {}
}

/// Whether the removal of this name matters; `None` stands for the watched directory. Each of swarm's own writes
/// moves a temporary file away, which does not.
#[cfg(target_os = "linux")]
fn matters(name: Option<&std::ffi::OsStr>) -> bool {
    let Some(name) = name.map(std::ffi::OsStr::as_encoded_bytes) else { return true };
    !name.starts_with(b".") && (name.ends_with(b".json") || !name.contains(&b'.'))
}
