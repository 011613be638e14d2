//! The lock that allows only one daemon per directory.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use fs2::FileExt;
use swarm_state::owner::{DirectoryOwner, LockFacts, Ownership, decide};

use super::failed;
use crate::error::{Error, ErrorCode, Result};
use crate::files::open_or_create;
use crate::owner;
use crate::paths::{Paths, private_dir};

/// How long a starting daemon waits for the lock. A reader of the file may hold it, longer on a busy machine.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a daemon in a shared directory waits before it checks that no other host's daemon has written the file too.
const OWNER_CHECK_DELAY: Duration = Duration::from_secs(1);

/// The daemon holds it as long as it runs, and the kernel releases it. The file names the daemon and its machine. No
/// process is ended because of it.
#[derive(Clone, Debug)]
pub struct DaemonLock {
    file: Arc<File>,
    path: PathBuf,
    /// Other hosts can use the directory too.
    shared: bool,
}

impl DaemonLock {
    /// Locks the file and names this process as the owner in it; `None` if another daemon of this machine holds the
    /// lock. With `job_is_gone`, the scheduler does not know the owner's job any more.
    ///
    /// # Errors
    /// [`ErrorCode::OtherHost`] if the directory belongs to a daemon of another host. When the file cannot be opened,
    /// locked or written.
    pub fn acquire(paths: &Paths, job_is_gone: bool) -> Result<Option<Self>> {
        private_dir(paths.root())?;
        let path = paths.lock();
        let file = open_or_create(&path).map_err(|e| failed("open", &path, e))?;
        let held = !lock_within(&file, LOCK_TIMEOUT).map_err(|e| failed("lock", &path, e))?;
        let former = owner::read(&file);
        let facts = LockFacts { job_is_gone, ..owner::facts(paths, held, former.as_ref()) };
        let ownership = decide(former.as_ref(), owner::here(), owner::own_job().as_ref(), facts);
        match (ownership, &former) {
            (Ownership::Mine | Ownership::Replaceable, _) => {}
            (Ownership::OtherHost | Ownership::Ask, Some(former)) => {
                return Err(owner::refusal(paths, former, ownership));
            }
            (Ownership::Live | Ownership::OtherHost | Ownership::Ask, _) => return Ok(None),
        }
        let lock = Self { file: Arc::new(file), path, shared: facts.shared };
        let own = owner::this_process();
        lock.write(&own.format()).map_err(|e| failed("write", &lock.path, e))?;
        if facts.shared {
            thread::sleep(OWNER_CHECK_DELAY);
        }
        // Meanwhile the file may have been replaced, or written by a daemon of another host.
        if lock.is_current() {
            return Ok(Some(lock));
        }
        match owner::elsewhere(paths) {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// The pid of the daemon of this machine that holds the lock; `None` if no process does, even if the file has one.
    pub fn holder(paths: &Paths) -> Option<u32> {
        match owner::look(paths) {
            (Some(owner), Ownership::Live) if !owner.is_elsewhere(owner::here()) => Some(owner.pid),
            (_, _) => None,
        }
    }

    /// False if the locked file is no longer at its path, because the directory was removed or taken over, or if
    /// it names another machine. Another daemon may then run there, so this one must not write any more.
    pub fn is_current(&self) -> bool {
        owner::is_own(&self.file, &self.path)
    }

    /// Refuses a write by a daemon that may no longer be the owner.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        let dir = self.path.parent().unwrap_or(&self.path).display();
        let message = format!("this daemon no longer owns '{dir}' and writes nothing more");
        Err(Error::new(ErrorCode::OtherHost, message))
    }

    /// Writes that the daemon stops in order. Without live agents, the directory has no owner any more.
    pub fn release(&self, agents: u32) {
        if !self.is_current() {
            return;
        }
        let text = match agents {
            0 => String::new(),
            left => DirectoryOwner { left: Some(left), ..owner::this_process() }.format(),
        };
        // On another host, the directory then looks as after a crash.
        drop(self.write(&text));
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut file: &File = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        // Other hosts see it only then.
        if self.shared { file.sync_all() } else { Ok(()) }
    }
}

/// Locks exclusively; false if another process holds the lock for longer than `patience`.
pub(crate) fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    const LOCK_RETRY_DELAY: Duration = Duration::from_millis(10);
    let start = Instant::now();
    loop {
        match file.try_lock_exclusive() {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == fs2::lock_contended_error().kind() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if start.elapsed() >= patience {
            return Ok(false);
        }
        thread::sleep(LOCK_RETRY_DELAY);
    }
}

/// Locks the directory itself, so that no lock file is needed in it. Dropping the file releases the lock.
pub(super) fn lock_dir(dir: &Path) -> Result<File> {
    let file = File::open(dir).map_err(|e| failed("open", dir, e))?;
    if lock_within(&file, Duration::from_secs(1)).map_err(|e| failed("lock", dir, e))? {
        return Ok(file);
    }
    Err(failed("lock", dir, "another process holds the lock"))
}
