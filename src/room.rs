//! Room: the file descriptors and processes that the system gives, and how they are shared out.
//!
//! The daemon has clients, waits for processes and starts others; if one of the three could take all
//! descriptors, nothing could be saved any more. Used by the server, by `procs`, and by what runs tmux and git.
//! Deliberately absent: raising the limit, since agents would inherit it, and some programs count on a low one.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

/// Descriptors that a daemon needs for itself: its lock, log and socket, its runtime, its tmux client.
const OWN: u64 = 16;

/// How long a process waits for others to end before it is started all the same: they may hang.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two tries to start a process, and how many there are: five seconds.
const AGAIN: Duration = Duration::from_millis(50);
const TRIES: u32 = 100;

/// A third of the file descriptors that this process may have. The clients of a daemon may take one, the
/// processes it waits for another; the last is for files and for processes that run.
pub fn share() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(OWN) / 3).unwrap_or(usize::MAX).clamp(4, 4096)
}

/// Room for processes of one kind that are run for their output; each takes up to seven descriptors.
pub fn for_processes() -> Semaphore {
    Semaphore::new((share() / 16).clamp(2, 64))
}

/// Waits for room, but not for long. What comes back is to be held while the process runs.
pub async fn wait(room: &Semaphore) -> Option<SemaphorePermit<'_>> {
    timeout(PATIENCE, room.acquire()).await.ok()?.ok()
}

/// Starts a process; where the system has nothing left for it just now, again for some seconds.
///
/// # Errors
/// What the system says.
pub async fn start(command: &mut Command) -> io::Result<Child> {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::EAGAIN, Errno::ENOMEM].map(|errno| errno as i32);
    for _ in 0..TRIES {
        match command.spawn() {
            Err(error) if error.raw_os_error().is_some_and(|code| short.contains(&code)) => {
                sleep(AGAIN).await
            }
            started => return started,
        }
    }
    command.spawn()
}
