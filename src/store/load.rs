//! The workers' records.

use std::fs;
use std::io;
use std::path::Path;

use swarm_state::format::{self, FormatError, Record};
use swarm_state::model::WorkerName;
use swarm_state::notice::PauseBy;

use super::{Problem, Store, create, entries, failed, file_name, read, set_aside, sync_dir, write_atomic};
use crate::error::{Error, Result};
use crate::signed::Purpose;

/// Marks that are kept as empty files while the record cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The worker was killed.
    Killed,
    /// Its loop was paused.
    Paused(PauseBy),
}

impl Mark {
    const ALL: [Self; 8] = [
        Self::Killed,
        Self::Paused(PauseBy::User),
        Self::Paused(PauseBy::Shutdown),
        Self::Paused(PauseBy::NoProgress),
        Self::Paused(PauseBy::BudgetUnseen),
        Self::Paused(PauseBy::HeldOut),
        Self::Paused(PauseBy::CannotCheck),
        Self::Paused(PauseBy::StoryStuck),
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Paused(PauseBy::User) => "paused",
            Self::Paused(PauseBy::Shutdown) => "paused-by-shutdown",
            Self::Paused(PauseBy::NoProgress) => "paused-without-progress",
            Self::Paused(PauseBy::BudgetUnseen) => "paused-budget-unseen",
            Self::Paused(PauseBy::HeldOut) => "paused-held-out",
            Self::Paused(PauseBy::CannotCheck) => "paused-cannot-check",
            Self::Paused(PauseBy::StoryStuck) => "paused-story-stuck",
        }
    }
}

impl Store {
    /// Reads every record, sorted by name. What cannot be read is set aside or reserved and reported as a [`Problem`],
    /// and so are files that were set aside earlier. Adds the predecessor's workers unless a record has their name.
    pub fn load_all(&self) -> (Vec<Record>, Vec<Problem>) {
        let (mut records, mut problems) = (vec![], self.take_problems());
        let dir = self.paths.workers_dir();
        if let Err(error) = fs::read_dir(&dir) {
            problems.push(Problem::of(None, failed("read", &dir, error).message));
        }
        // Lists what was set aside before, since the loop below may add to it.
        for path in entries(&dir) {
            problems.extend(set_aside_earlier(&path));
        }
        for path in entries(&dir) {
            let Some(stem) = file_name(&path).strip_suffix(".json") else { continue };
            let Ok(name) = WorkerName::new(stem) else { continue };
            match self.load_one(&path, &name) {
                Ok(record) => records.extend(record),
                Err(problem) => {
                    if problem.reserved {
                        self.reserve(&name);
                    }
                    problems.push(problem);
                }
            }
        }
        self.load_legacy(&mut records, &mut problems);
        records.sort_by(|a, b| a.name.cmp(&b.name));
        (records, problems)
    }

    fn load_one(&self, path: &Path, name: &WorkerName) -> Result<Option<Record>, Problem> {
        let kept = |cause: String| Problem {
            message: format!("'{}' was not changed: {cause}", path.display()),
            name: Some(name.clone()),
            reserved: true,
        };
        let bytes = match read(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) => return Err(kept(error.to_string())),
        };
        let text = self.key.open_text(Purpose::Worker(name.as_str()), &bytes);
        let cause = match format::parse_record(text.as_ref().map_or(&bytes[..], String::as_bytes)) {
            Ok(record) if record.name == *name && text.is_none() => {
                "another program changed it: its signature is wrong".to_owned()
            }
            Ok(record) if record.name == *name => return Ok(Some(record)),
            Ok(record) => format!("it is the record of '{}'", record.name),
            Err(error @ FormatError::Newer(_)) => return Err(kept(error.to_string())),
            Err(FormatError::Broken(cause)) => cause,
        };
        Err(match set_aside(path) {
            Ok(aside) => Problem::of(Some(name), aside_sentence(path, &aside, &cause)),
            Err(error) => kept(format!("{cause}, and it cannot be set aside: {error}")),
        })
    }

    /// Writes a record. Fails for a reserved name or when it cannot be written; the earlier record is then unchanged.
    pub fn save(&self, record: &Record) -> Result<()> {
        let path = self.writable(&record.name)?;
        let bytes = record.to_bytes().map_err(|e| failed("write", &path, e))?;
        let write = || {
            let text = String::from_utf8_lossy(&bytes);
            write_atomic(&path, &self.key.sign_text(Purpose::Worker(record.name.as_str()), &text)?)
        };
        write().map_err(|e| failed("write", &path, e))?;
        // The record now contains what the marks recorded.
        self.remove_marks(&record.name);
        Ok(())
    }

    /// Marks a worker whose record cannot be written. The mark is an empty file, for which a full disk usually has
    /// room. False if that fails too.
    pub fn set_mark(&self, name: &WorkerName, mark: Mark) -> bool {
        let made = self.check_owner().is_ok() && create(&self.paths.mark(name, mark.word())).is_ok();
        // Creating the file is enough for a daemon that dies; a power cut may lose it.
        let _ = sync_dir(&self.paths.workers_dir());
        made
    }

    /// The marks since the record was last written.
    pub fn marks(&self, name: &WorkerName) -> Vec<Mark> {
        Mark::ALL.into_iter().filter(|mark| self.paths.mark(name, mark.word()).exists()).collect()
    }

    fn remove_marks(&self, name: &WorkerName) {
        for mark in Mark::ALL {
            let _ = fs::remove_file(self.paths.mark(name, mark.word()));
        }
    }

    /// Whether a worker has a record.
    pub fn has_record(&self, name: &WorkerName) -> bool {
        fs::symlink_metadata(self.paths.worker_file(name)).is_ok()
    }

    /// Removes the record of a finished worker, if it exists. If the predecessor listed a worker of that name, that
    /// entry is finished too and stays hidden.
    pub fn remove(&self, name: &WorkerName) -> Result<()> {
        self.writable(name)?;
        self.dismiss_legacy(name)?;
        self.take_back(name)
    }

    /// Removes the record of a worker that never started. Everything is as it was before the spawn.
    pub fn take_back(&self, name: &WorkerName) -> Result<()> {
        let path = self.writable(name)?;
        self.remove_marks(name);
        match fs::remove_file(&path) {
            Ok(()) => sync_dir(&self.paths.workers_dir()).map_err(|e| failed("remove", &path, e)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed("remove", &path, error)),
        }
    }

    fn writable(&self, name: &WorkerName) -> Result<std::path::PathBuf> {
        self.check_owner()?;
        let path = self.paths.worker_file(name);
        if self.is_reserved(name) {
            let text = format!("'{}' cannot be read and must not be overwritten", path.display());
            return Err(Error::conflict(text)
                .hint("move the file away and run 'swarm daemon restart', or use another name"));
        }
        Ok(path)
    }
}

impl Problem {
    /// Makes a problem that does not reserve its name.
    pub(crate) fn of(name: Option<&WorkerName>, message: String) -> Self {
        Self { message, name: name.cloned(), reserved: false }
    }
}

/// The message about a file that was just set aside.
pub(super) fn aside_sentence(path: &Path, aside: &Path, cause: &str) -> String {
    format!("'{}' cannot be read and was set aside as '{}': {cause}", path.display(), file_name(aside))
}

fn set_aside_earlier(path: &Path) -> Option<Problem> {
    let (stem, _) = file_name(path).split_once(".json.corrupt-")?;
    let message = format!("'{}' was set aside earlier: remove it when you no longer need it", path.display());
    Some(Problem::of(WorkerName::new(stem).ok().as_ref(), message))
}
