//! A loop's directory: `ralph/NAME/`.
//!
//! The state file has two writers: the daemon, and a person with an editor. So each write first reads the file under
//! the directory's lock.

use std::fs::{self, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use swarm_state::format::{self, FORMAT, FormatError, RalphFile};
use swarm_state::model::WorkerName;

use super::load::aside_sentence;
use super::lock::lock_dir;
use super::{
    Problem, Store, entries, failed, file_name, read, set_aside, sync_dir, write_atomic, write_unsynced,
};
use crate::error::{Error, ErrorCode, Result};
use crate::files::write_with;
use crate::paths::private_dir;

/// Distinguishes one version of a file from the next without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RalphStamp {
    /// When it was last written, nanoseconds since the epoch.
    mtime: i128,
    size: u64,
    inode: u64,
}

impl RalphStamp {
    fn of(metadata: &Metadata) -> Self {
        let mtime = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Self { mtime, size: metadata.size(), inode: metadata.ino() }
    }
}

/// How to continue with a state that a newer swarm wrote, or that cannot be read.
pub const RESERVED_HINT: &str = "use the swarm that wrote it, or move the file away";

/// The result of reading a loop's state file.
#[derive(Clone, Debug, PartialEq)]
pub enum RalphRead {
    /// There is no file.
    Absent,
    /// The state and its version.
    Found(Box<RalphFile>, RalphStamp),
    /// The file could not be parsed and was set aside; or a newer swarm wrote it, or it cannot be read, and it stays
    /// ([`Problem::reserved`]). The loop continues with the state in memory.
    Bad(Problem),
}

impl Store {
    /// Reads a loop's state under its lock.
    pub fn read_ralph(&self, name: &WorkerName) -> Result<RalphRead> {
        if !self.paths.ralph_dir(name).is_dir() {
            return Ok(RalphRead::Absent);
        }
        let _lock = lock_dir(&self.paths.ralph_dir(name))?;
        Ok(read_state(&self.paths.ralph_state(name), name))
    }

    /// Writes a loop's state under its lock, and makes the directory if it is missing. Unknown keys of the file on disk
    /// survive. A file that cannot be parsed is set aside first and reported by [`Store::take_problems`]. Fails when
    /// the file cannot be written, or a newer swarm wrote it. The earlier file is then unchanged.
    pub fn write_ralph(&self, name: &WorkerName, file: &RalphFile) -> Result<RalphStamp> {
        self.check_owner()?;
        let dir = self.paths.ralph_dir(name);
        private_dir(&dir)?;
        let _lock = lock_dir(&dir)?;
        let path = self.paths.ralph_state(name);
        let mut file = file.clone();
        match read_state(&path, name) {
            RalphRead::Absent => {}
            RalphRead::Found(on_disk, _) => {
                if on_disk.format < FORMAT {
                    keep_original(&path, on_disk.format)?;
                }
                file.extra = on_disk.extra;
            }
            RalphRead::Bad(problem) if problem.reserved => {
                return Err(Error::conflict(problem.message).hint(RESERVED_HINT));
            }
            RalphRead::Bad(problem) => self.note(problem),
        }
        let bytes = file.to_bytes().map_err(|e| failed("write", &path, e))?;
        let metadata =
            write_with(&path, |file| file.write_all(&bytes)).map_err(|e| failed("write", &path, e))?;
        Ok(RalphStamp::of(&metadata))
    }

    /// The version of a loop's state file; `None` if there is none. Costs one `stat`.
    pub fn ralph_stamp(&self, name: &WorkerName) -> Option<RalphStamp> {
        fs::metadata(self.paths.ralph_state(name)).ok().as_ref().map(RalphStamp::of)
    }

    /// Writes one of an iteration's files. It is durable after [`Store::sync_iteration`]. Fails when `file_name` is not
    /// a plain file name, or the file cannot be written.
    pub fn write_iteration_file(
        &self,
        name: &WorkerName,
        iteration: u32,
        file_name: &str,
        bytes: &[u8],
    ) -> Result<()> {
        self.check_owner()?;
        let plain = !file_name.is_empty() && !file_name.starts_with('.') && !file_name.contains(['/', '\0']);
        if !plain {
            return Err(Error::internal(format!("{file_name:?} is not a file name")));
        }
        let dir = self.paths.iteration_dir(name, iteration);
        private_dir(&dir)?;
        let path = dir.join(file_name);
        write_unsynced(&path, bytes).map_err(|e| failed("write", &path, e))
    }

    /// Writes the task of a new loop that was given as text.
    pub fn write_task(&self, name: &WorkerName, task: &str) -> Result<()> {
        self.check_owner()?;
        let dir = self.paths.ralph_dir(name);
        private_dir(&dir)?;
        let path = dir.join("task.md");
        let end = if task.ends_with('\n') { "" } else { "\n" };
        write_atomic(&path, format!("{task}{end}").as_bytes()).map_err(|e| failed("write", &path, e))
    }

    /// Waits until an iteration's files and the loop's log are on the disk. Skips missing files.
    pub fn sync_iteration(&self, name: &WorkerName, iteration: u32) {
        let dir = self.paths.iteration_dir(name, iteration);
        for path in entries(&dir).into_iter().chain([dir, self.paths.iterations_log(name)]) {
            // Readers see the files already, and there is nothing to do about a failure.
            let _ = fs::File::open(path).and_then(|file| file.sync_all());
        }
    }

    /// Archives a loop's directory, if it exists, as `NAME.N`, with a number above all existing ones.
    pub fn archive_ralph(&self, name: &WorkerName) -> Result<()> {
        self.check_owner()?;
        let dir = self.paths.ralph_dir(name);
        if fs::symlink_metadata(&dir).is_err() {
            return Ok(());
        }
        let number = |other: &String| other.strip_prefix(name.as_str())?.strip_prefix('.')?.parse().ok();
        let last: u64 = self.ralph_dirs().iter().filter_map(number).max().unwrap_or(0);
        let archived = format!("{name}.{}", last.saturating_add(1));
        let root = self.paths.ralph_root();
        fs::rename(&dir, root.join(&archived))
            .and_then(|()| sync_dir(&root))
            .map_err(|e| failed("archive", &dir, e))
    }

    /// Removes the directory of a loop whose daemon died while it wrote the first files: no record names the loop,
    /// and the directory holds only its task and first state.
    pub fn remove_unborn(&self, name: &WorkerName) -> Result<()> {
        let dir = self.paths.ralph_dir(name);
        let of_birth = |path: &PathBuf| ["state.json", "task.md"].contains(&file_name(path));
        let is_first = match self.read_ralph(name)? {
            RalphRead::Absent => true,
            RalphRead::Found(file, _) => file.format == FORMAT && file.current_iteration <= 1,
            RalphRead::Bad(_) => false,
        };
        if dir.is_dir() && is_first && entries(&dir).iter().all(of_birth) {
            self.remove_ralph_dir(name.as_str())?;
        }
        Ok(())
    }

    /// The names of all loop directories, archived ones (`agent.1`) included, sorted.
    pub fn ralph_dirs(&self) -> Vec<String> {
        let is_ours = |text: &str| {
            let (name, number) = text.split_once('.').unwrap_or((text, "1"));
            WorkerName::new(name).is_ok() && number.parse::<u64>().is_ok()
        };
        let dirs = entries(&self.paths.ralph_root()).into_iter().filter(|path| path.is_dir());
        dirs.map(|path| file_name(&path).to_owned()).filter(|name| is_ours(name)).collect()
    }

    /// Removes a directory that [`Store::ralph_dirs`] returned.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] if there is no such directory; [`ErrorCode::System`] if it cannot be removed.
    pub fn remove_ralph_dir(&self, name: &str) -> Result<()> {
        self.check_owner()?;
        // Accepts only names from the list, so a path cannot reach other directories.
        if !self.ralph_dirs().iter().any(|known| known == name) {
            return Err(Error::new(ErrorCode::NotFound, format!("no ralph state of '{name}'")));
        }
        let dir = self.paths.ralph_root().join(name);
        // Removes a link, not its target.
        let removed = match fs::symlink_metadata(&dir) {
            Ok(found) if found.is_symlink() => fs::remove_file(&dir),
            _ => fs::remove_dir_all(&dir),
        };
        removed.map_err(|e| failed("remove", &dir, e))
    }
}

/// Keeps a copy of a file in an older format as `FILE.vN` before the first write, for a return to that swarm.
fn keep_original(path: &Path, format: u32) -> Result<()> {
    let kept = path.with_file_name(format!("{}.v{format}", file_name(path)));
    if fs::symlink_metadata(&kept).is_ok() {
        return Ok(());
    }
    let copy = || match read(path)? {
        Some(bytes) => write_atomic(&kept, &bytes),
        None => Ok(()),
    };
    copy().map_err(|e| failed("keep", path, e))
}

/// An editor may truncate the file before it writes it. So a file that does not parse is read again, with this delay
/// and this many times, before it counts as broken.
const EDIT_TRIES: u32 = 4;
const EDIT_RETRY_DELAY: Duration = Duration::from_millis(50);

fn read_state(path: &Path, name: &WorkerName) -> RalphRead {
    let bad = |message: String, reserved: bool| {
        RalphRead::Bad(Problem { message, name: Some(name.clone()), reserved })
    };
    let left = |cause: String| bad(format!("'{}' was not changed: {cause}", path.display()), true);
    let mut cause = String::new();
    for look in 0..EDIT_TRIES {
        if look > 0 {
            thread::sleep(EDIT_RETRY_DELAY);
        }
        // Takes the stamp first, so that a change between the two is noticed later.
        let stamp = fs::metadata(path).as_ref().map(RalphStamp::of).ok();
        let bytes = match read(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return RalphRead::Absent,
            Err(error) => return left(error.to_string()),
        };
        match (format::parse_ralph(&bytes), stamp) {
            (Ok(file), Some(stamp)) => return RalphRead::Found(Box::new(file), stamp),
            (Ok(_), None) => {}
            (Err(error @ FormatError::Newer(_)), _) => return left(error.to_string()),
            (Err(FormatError::Broken(text)), _) => cause = text,
        }
    }
    match set_aside(path) {
        Ok(aside) => bad(aside_sentence(path, &aside, &cause), false),
        Err(error) => left(format!("{cause}, and it cannot be set aside: {error}")),
    }
}
