//! Divides this process's file descriptors between its clients, the processes it waits for and the processes it runs.
//!
//! If one of the three took all descriptors, nothing could be saved any more. The server, `procs`, `tmux` and `git`
//! use it. It does not raise the limit: agents would inherit it, and some programs rely on a low one.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

/// Descriptors that a daemon needs for itself: lock, log, socket, runtime and tmux client.
const RESERVED_DESCRIPTORS: u64 = 16;

/// How long a process waits for a slot. After that it is started anyway, since the processes in the slots may hang.
const SLOT_TIMEOUT: Duration = Duration::from_secs(2);

/// The delay between two tries to start a process, and the number of tries: five seconds in total.
const SPAWN_RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_SPAWN_TRIES: u32 = 100;

/// A third of this process's file descriptors. Clients may use one third and processes that swarm waits for another.
/// The last is for files and for processes that run.
pub(crate) fn share() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(RESERVED_DESCRIPTORS) / 3).unwrap_or(usize::MAX).clamp(4, 4096)
}

/// The slots for processes of one kind whose output is read. Each process takes up to seven descriptors.
pub(crate) fn process_slots() -> Semaphore {
    Semaphore::new((share() / 16).clamp(2, 64))
}

/// Waits for a slot, but at most [`SLOT_TIMEOUT`]. Hold the permit while the process runs.
pub(crate) async fn acquire(slots: &Semaphore) -> Option<SemaphorePermit<'_>> {
    timeout(SLOT_TIMEOUT, slots.acquire()).await.ok()?.ok()
}

/// Starts a process. Retries for some seconds while the system has no descriptor, process or memory left for it.
pub(crate) async fn spawn(command: &mut Command) -> io::Result<Child> {
    let short = [Errno::EMFILE, Errno::ENFILE, Errno::EAGAIN, Errno::ENOMEM].map(|errno| errno as i32);
    for _ in 0..MAX_SPAWN_TRIES {
        match command.spawn() {
            Err(error) if error.raw_os_error().is_some_and(|code| short.contains(&code)) => {
                sleep(SPAWN_RETRY_DELAY).await
            }
            started => return started,
        }
    }
    command.spawn()
}
