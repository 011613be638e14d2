//! The lock that makes the daemon the only one.

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

/// How long a daemon that starts waits for the lock: [`DaemonLock::holder`] takes it for a moment.
const PATIENCE: Duration = Duration::from_millis(300);

/// Held by the daemon for its life. The kernel drops it with the process, so a pid that stands in the
/// file is information only and nothing is ever ended because of it.
#[derive(Debug)]
pub struct DaemonLock {
    file: File,
    path: PathBuf,
}

impl DaemonLock {
    /// Takes the lock, and writes our pid into the file; `None` when another daemon has it.
    ///
    /// # Errors
    /// When the file cannot be opened or written.
    pub fn try_acquire(paths: &Paths) -> Result<Option<Self>> {
        private_dir(paths.root())?;
        let path = paths.lock();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(|e| failed("open", &path, e))?;
        if !lock_within(&file, PATIENCE).map_err(|e| failed("lock", &path, e))? {
            return Ok(None);
        }
        let lock = Self { file, path };
        lock.write_pid().map_err(|e| failed("write", &lock.path, e))?;
        Ok(Some(lock))
    }

    /// The pid of the daemon that holds the lock; `None` when nobody does (whatever the file says).
    pub fn holder(paths: &Paths) -> Option<u32> {
        let mut file = File::open(paths.lock()).ok()?;
        // A shared lock that is let go at once; whoever starts in that moment tries again.
        if FileExt::try_lock_shared(&file).is_ok() {
            return None;
        }
        let mut text = String::new();
        Read::by_ref(&mut file).take(32).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    /// False when the file at the lock's path is no longer the one that is locked (somebody removed the
    /// directory): another daemon may be starting there, and this one must write nothing more.
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

/// Takes an exclusive lock; false when somebody else holds it longer than `patience`.
pub(super) fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    const STEP: Duration = Duration::from_millis(10);
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
        thread::sleep(STEP);
        waited += STEP;
    }
}

/// Locks a directory itself, so that no lock file lies about in it; dropped with the value.
pub(super) fn lock_dir(dir: &Path) -> Result<File> {
    let file = File::open(dir).map_err(|e| failed("open", dir, e))?;
    if lock_within(&file, Duration::from_secs(1)).map_err(|e| failed("lock", dir, e))? {
        return Ok(file);
    }
    Err(failed("lock", dir, "another process holds the lock"))
}
