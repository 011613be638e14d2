//! Whether somebody removes the daemon's directory, told without a wake-up until it happens.
//!
//! The look at the screens asks the same question; with nobody to look at there is none, and a daemon of a
//! directory that is gone would stay for ever. Only Linux can tell; elsewhere the looks have to do.

use tokio::sync::mpsc;

use super::supervisor::Input;
use crate::paths::Paths;

/// Tells the supervisor each time something is done to the lock file itself or to the directory.
///
/// # Errors
/// When nothing can be watched: out of watches, most likely.
#[cfg(target_os = "linux")]
pub(crate) fn watch(paths: &Paths, inbox: &mpsc::UnboundedSender<Input>) -> std::io::Result<()> {
    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags as On, InitFlags, Inotify};

    let notify = Inotify::init(InitFlags::IN_CLOEXEC)?;
    // The daemon has the lock file open, so its removal is a change of its links, not yet its end.
    notify.add_watch(&paths.lock(), On::IN_ATTRIB | On::IN_MOVE_SELF | On::IN_DELETE_SELF)?;
    notify.add_watch(paths.root(), On::IN_MOVE_SELF | On::IN_DELETE_SELF)?;
    let inbox = inbox.clone();
    // A thread that sleeps in a read; it ends with the process.
    std::thread::Builder::new().name("removal".into()).spawn(move || {
        loop {
            match notify.read_events() {
                // What happened does not matter: the supervisor looks for itself.
                Ok(_) if inbox.send(Input::DirectoryTouched).is_ok() => {}
                Err(Errno::EINTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    })?;
    Ok(())
}

/// See above.
#[cfg(not(target_os = "linux"))]
pub(crate) fn watch(_paths: &Paths, _inbox: &mpsc::UnboundedSender<Input>) -> std::io::Result<()> {
    Ok(())
}
