//! The lock that allows only one daemon per directory.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use fs2::FileExt;

use super::failed;
use crate::error::Result;
use crate::paths::{Paths, private_dir};

/// How long a starting daemon waits for the lock, which [`DaemonLock::holder`] may hold for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);

/// The daemon holds it as long as it runs, and the kernel releases it. The pid in the file is information only; no
/// process is ended because of it.
#[derive(Debug)]
pub struct DaemonLock {
    file: File,
    path: PathBuf,
}

impl DaemonLock {
    /// Locks the file and writes our pid into it; `None` if another daemon holds the lock.
    ///
    /// # Errors
    /// When the file cannot be opened, locked or written.
    pub fn try_acquire(paths: &Paths) -> Result<Option<Self>> {
        private_dir(paths.root())?;
        let path = paths.lock();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(|e| failed("open", &path, e))?;
        if !lock_within(&file, LOCK_TIMEOUT).map_err(|e| failed("lock", &path, e))? {
            return Ok(None);
        }
        let lock = Self { file, path };
        lock.write_pid().map_err(|e| failed("write", &lock.path, e))?;
        Ok(Some(lock))
    }

    /// The pid of the daemon that holds the lock; `None` if no process does, whatever the file says.
    pub fn holder(paths: &Paths) -> Option<u32> {
        let mut file = File::open(paths.lock()).ok()?;
        // This shared lock is released at once. A daemon that starts at this moment retries.
        if FileExt::try_lock_shared(&file).is_ok() {
            return None;
        }
        let mut text = String::new();
        Read::by_ref(&mut file).take(32).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    /// False if the locked file is no longer at its path, because somebody removed the directory. Another daemon may
    /// then start there, so this one must not write any more.
    pub fn is_current(&self) -> bool {
        let (Ok(ours), Ok(there)) = (self.file.metadata(), fs::metadata(&self.path)) else { return false };
        (ours.dev(), ours.ino()) == (there.dev(), there.ino())
    }

    fn write_pid(&self) -> io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    }
}

/// Locks exclusively; false if another process holds the lock for longer than `patience`.
pub(super) fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    const LOCK_RETRY_DELAY: Duration = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock_exclusive() {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == fs2::lock_contended_error().kind() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if waited >= patience {
            return Ok(false);
        }
        thread::sleep(LOCK_RETRY_DELAY);
        waited += LOCK_RETRY_DELAY;
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
