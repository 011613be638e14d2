//! The daemon's files: its lock, records of workers and loops, logs, and what cannot be read.
//!
//! The daemon uses it, and `doctor` reads with it. `swarm_state::format` defines the contents, [`crate::paths`] the
//! places. A person may edit a loop's `state.json` at any time. Three promises:
//!
//! * A write happens whole or not at all. A failed write leaves the earlier file and no leftovers.
//! * A file that cannot be read is never overwritten. The store renames it to `FILE.corrupt-TIME` and reports it. If
//!   the rename fails, or if a newer swarm wrote the file, the file stays and its name is reserved.
//! * Directories are 0700, files 0600.
//!
//! All calls block. They fail when the system refuses, when the name is reserved (Conflict), and when another daemon
//! owns the directory. Files are small, and logs are read from their end. Nothing is cached: the disk is the truth.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use swarm_state::model::WorkerName;

use crate::error::{Result, failed};
use crate::paths::{Paths, private_dir};
use crate::signed::SigningKey;

mod events;
mod legacy;
mod load;
mod lock;
mod logs;
mod ralph;
mod rotate;
mod runs;
mod signing;
mod survey;
#[cfg(test)]
mod tests;

use crate::files::{create, entries, file_name, if_exists, is_temporary, sync_dir};
pub use crate::files::{read_bounded, write_atomic, write_unsynced};
pub use events::MAX_EVENT_LOG_BYTES;
pub use load::Mark;
pub use lock::DaemonLock;
pub(crate) use lock::lock_within;
pub use logs::{LogTail, MAX_WORKER_LOG_BYTES};
pub use ralph::{RESERVED_HINT, RalphRead, RalphStamp};
pub use rotate::{LogWriter, MAX_DAEMON_LOG_BYTES, MAX_RECORD_BYTES, record};
pub use survey::{Damage, DamagedFile, DiskSurvey, survey};

/// The largest record or loop state that is read.
const MAX_STATE_BYTES: u64 = 64 << 20;

/// A problem with a file, for `ls` and `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One sentence that names the file.
    pub message: String,
    /// The worker whose file it is, if the name is valid.
    pub name: Option<WorkerName>,
    /// The file stays, so nothing can be saved under `name`. A spawn must refuse this name.
    pub reserved: bool,
}

/// swarm's directory.
#[derive(Debug)]
pub struct Store {
    paths: Paths,
    key: SigningKey,
    /// The daemon's lock. Without it, nothing is written.
    lock: OnceLock<DaemonLock>,
    /// Names whose record must not be written; filled by [`Store::load_all`].
    reserved: Mutex<BTreeSet<WorkerName>>,
    /// Problems that writes found and that were not reported yet.
    noted: Mutex<Vec<Problem>>,
}

impl Store {
    /// Opens the directory, makes missing subdirectories and removes the temporary files of unfinished writes. Hold the
    /// [`DaemonLock`]. Fails when a directory cannot be made, or belongs to another user.
    pub fn open(paths: Paths) -> Result<Self> {
        private_dir(paths.root())?;
        let (key, is_new) = signing::key(&paths)?;
        let (reserved, noted) = (Mutex::default(), Mutex::default());
        let store = Self { paths, key, lock: OnceLock::new(), reserved, noted };
        store.remake()?;
        store.sweep();
        if is_new {
            store.sign_all();
        }
        Ok(store)
    }

    /// Makes the directories and the key that are missing below the root. Hold the [`DaemonLock`]. Fails when one
    /// cannot be made, or belongs to another user.
    pub fn remake(&self) -> Result<()> {
        self.dirs().iter().try_for_each(|dir| private_dir(dir))?;
        let path = self.paths.signing_key();
        if path.exists() { Ok(()) } else { self.key.write(&path).map_err(|e| failed("write", &path, e)) }
    }

    /// Whether a directory or the key is missing.
    pub fn is_incomplete(&self) -> bool {
        self.dirs().iter().any(|dir| !dir.is_dir()) || !self.paths.signing_key().exists()
    }

    fn dirs(&self) -> [PathBuf; 4] {
        let paths = &self.paths;
        [paths.workers_dir(), paths.ralph_root(), paths.logs_dir(), paths.runs_dir()]
    }

    /// The key that signs the daemon's own files.
    pub(crate) fn key(&self) -> &SigningKey {
        &self.key
    }

    /// From now on, writes only while `lock` is the current one of the directory.
    pub fn write_while(&self, lock: DaemonLock) {
        // A second lock of one store would be a bug; the first one counts.
        drop(self.lock.set(lock));
    }

    /// Refuses to write after another daemon took over the directory.
    fn check_owner(&self) -> Result<()> {
        self.lock.get().map_or(Ok(()), DaemonLock::check)
    }

    /// The paths of all files.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Whether nothing can be saved under `name`; see [`Problem::reserved`].
    pub fn is_reserved(&self, name: &WorkerName) -> bool {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Returns the problems that writes found since the last call, such as a file that a person broke meanwhile.
    pub fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, problem: Problem) {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
    }

    fn reserve(&self, name: &WorkerName) {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
    }

    /// Removes the temporary files of writes that a crash interrupted.
    fn sweep(&self) {
        let loops = entries(&self.paths.ralph_root());
        // Only the last iteration can have been written to.
        let latest = |dir: &PathBuf| {
            entries(&dir.join("iterations"))
                .into_iter()
                .max_by_key(|path| (file_name(path).len(), path.clone()))
        };
        let iterations: Vec<_> = loops.iter().filter_map(latest).collect();
        let paths = &self.paths;
        let fixed = [paths.root().to_owned(), paths.workers_dir(), paths.helper_dir()];
        for dir in loops.into_iter().chain(iterations).chain(fixed) {
            for file in entries(&dir) {
                if is_temporary(&file) {
                    // A leftover is harmless, and so is a failure to remove it.
                    let _ = fs::remove_file(file);
                }
            }
        }
    }
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if_exists(read_bounded(path, MAX_STATE_BYTES))
}

/// Renames a file that cannot be read to `FILE.corrupt-TIME` and returns its new path.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let time = chrono::Local::now().format("%Y%m%dT%H%M%S");
    let free = |count: u32| {
        let more = if count == 1 { String::new() } else { format!("-{count}") };
        let aside = path.with_file_name(format!("{}.corrupt-{time}{more}", file_name(path)));
        // Not `exists`: a dangling link would be overwritten.
        fs::symlink_metadata(&aside).is_err().then_some(aside)
    };
    let aside = (1..1000).find_map(free).ok_or(io::ErrorKind::AlreadyExists)?;
    fs::rename(path, &aside)?;
    // The rename is done. Whether it is durable only decides under which name the next start finds the file.
    let _ = aside.parent().map(sync_dir);
    Ok(aside)
}
