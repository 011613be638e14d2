//! The disk: the daemon's lock, atomic writes, loading, and setting aside what cannot be read.
//!
//! The daemon is the only user, and the only writer of everything below its root; a person may edit a
//! loop's `state.json` at any time. What the bytes mean is `swarm_state::format`'s business, where they lie
//! is [`crate::paths`]'s. Three promises:
//!
//! * A write happens whole or not at all: a failed one leaves the earlier file and no left-over.
//! * A file that cannot be read is never replaced: it is set aside byte for byte as `FILE.corrupt-TIME`
//!   and reported, or, when even that fails or a newer swarm wrote it, left where it is and its name is
//!   reserved, so that nothing is written over it.
//! * Directories are 0700, files 0600.
//!
//! All calls block; files are small, and logs are read from their end. Deliberately absent: any cache, so
//! that what is on disk is what is true.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use swarm_state::model::WorkerName;

use crate::error::{Error, Result};
use crate::paths::{Paths, private_dir};

mod legacy;
mod load;
mod lock;
mod logs;
mod ralph;
mod rotate;
mod runs;
mod survey;
#[cfg(test)]
mod tests;

use crate::files::{file_name, is_temporary, sync_dir};
pub use crate::files::{read_bounded, write_atomic, write_unsynced};
pub use load::Mark;
pub use lock::DaemonLock;
pub use logs::{LOG_LIMIT, Tail};
pub use ralph::{RalphRead, RalphStamp};
pub use rotate::{DAEMON_LOG_LIMIT, LogWriter, RECORD_LIMIT, record};
pub use survey::{Damage, Found, Survey, survey};

/// The most that a record or a loop's state may be, bytes: an environment fits many times.
const STATE_LIMIT: u64 = 64 << 20;

/// Something wrong on disk, for `ls` and `doctor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One sentence that names the file.
    pub message: String,
    /// The worker whose file it is, where it has a valid name.
    pub name: Option<WorkerName>,
    /// The file stays where it is, so nothing can be saved under `name`: a spawn must refuse it.
    pub reserved: bool,
}

/// The directory of swarm.
#[derive(Debug)]
pub struct Store {
    paths: Paths,
    /// Names whose record must not be written; filled by [`Store::load_all`].
    reserved: Mutex<BTreeSet<WorkerName>>,
    /// What a write found, and nobody was told yet.
    noted: Mutex<Vec<Problem>>,
}

impl Store {
    /// Opens the directory and makes what is missing in it. Call it with the [`DaemonLock`] held: what an
    /// earlier daemon left of unfinished writes is removed.
    ///
    /// # Errors
    /// When a directory cannot be made, or belongs to another user.
    pub fn open(paths: Paths) -> Result<Self> {
        private_dir(paths.root())?;
        let store = Self { paths, reserved: Mutex::default(), noted: Mutex::default() };
        store.remake()?;
        store.sweep();
        Ok(store)
    }

    /// Makes the directories that are missing below the root. Call it with the [`DaemonLock`] held.
    ///
    /// # Errors
    /// When one cannot be made, or belongs to another user.
    pub fn remake(&self) -> Result<()> {
        self.dirs().iter().try_for_each(|dir| private_dir(dir))
    }

    /// True when one of them is missing.
    pub fn lacks_a_directory(&self) -> bool {
        self.dirs().iter().any(|dir| !dir.is_dir())
    }

    fn dirs(&self) -> [PathBuf; 4] {
        let paths = &self.paths;
        [paths.workers_dir(), paths.ralph_root(), paths.logs_dir(), paths.runs_dir()]
    }

    /// Where everything is.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// True when nothing can be saved under `name`, as [`Problem::reserved`] told.
    pub fn is_reserved(&self, name: &WorkerName) -> bool {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// What writes had to set aside since this was asked last: a file that a person broke between the
    /// daemon's look and its write.
    pub fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, problem: Problem) {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
    }

    fn reserve(&self, name: &WorkerName) {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
    }

    /// Removes temporary files of writes that a crash cut off.
    fn sweep(&self) {
        let loops = entries(&self.paths.ralph_root());
        // The last one is the only iteration that can have been written to.
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
                    // A left-over is harmless; so is failing to remove it.
                    let _ = fs::remove_file(file);
                }
            }
        }
    }
}

/// What is in a directory, sorted by name; nothing when it cannot be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(list) = fs::read_dir(dir) else { return vec![] };
    let mut found: Vec<_> = list.flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// "cannot VERB 'PATH': CAUSE".
fn failed(verb: &str, path: &Path, cause: impl std::fmt::Display) -> Error {
    Error::system(format!("cannot {verb} '{}'", path.display()), cause)
}

/// Reads a file; `None` when there is none.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match read_bounded(path, STATE_LIMIT) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Moves a file that cannot be read out of the way, as `FILE.corrupt-TIME`; gives its new path.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let time = chrono::Local::now().format("%Y%m%dT%H%M%S");
    let free = |count: u32| {
        let more = if count == 1 { String::new() } else { format!("-{count}") };
        let aside = path.with_file_name(format!("{}.corrupt-{time}{more}", file_name(path)));
        // Not `exists`: a dangling link would be written over.
        fs::symlink_metadata(&aside).is_err().then_some(aside)
    };
    let aside = (1..1000).find_map(free).ok_or(io::ErrorKind::AlreadyExists)?;
    fs::rename(path, &aside)?;
    // The rename is done; whether it is durable decides only where the next start finds the file.
    let _ = aside.parent().map(sync_dir);
    Ok(aside)
}
