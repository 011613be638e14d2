//! What one run needs while it lives: `runs/NAME.RUN/`.

use std::fs;
use std::io;
use std::path::PathBuf;

use swarm_state::model::{Run, WorkerName, Worktree};

use super::{Store, entries, failed, file_name, read, write_atomic};
use crate::error::Result;
use crate::paths::private_dir;

/// The worktree that a run began to make.
const WORKTREE: &str = "worktree.json";

impl Store {
    /// Makes a run's directory, empty but for a [noted worktree](Store::note_worktree). A run's number is used
    /// once, so what else is there is a left-over.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn prepare_run_dir(&self, name: &WorkerName, run: Run) -> Result<PathBuf> {
        let dir = self.paths.run_dir(name, run);
        for path in entries(&dir).iter().filter(|path| file_name(path) != WORKTREE) {
            let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            gone.map_err(|e| failed("remove", path, e))?;
        }
        private_dir(&dir)?;
        Ok(dir)
    }

    /// Writes down that a run is about to make this worktree. Should the daemon die before the worker's record
    /// tells of it, the next one knows what was begun.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn note_worktree(&self, name: &WorkerName, run: Run, worktree: &Worktree) -> Result<()> {
        let dir = self.paths.run_dir(name, run);
        private_dir(&dir)?;
        let path = dir.join(WORKTREE);
        let text = serde_json::to_vec(worktree).map_err(|e| failed("write", &path, e))?;
        write_atomic(&path, &text).map_err(|e| failed("write", &path, e))
    }

    /// The worktree that a run began to make, as far as anybody knows.
    pub fn noted_worktree(&self, name: &WorkerName, run: Run) -> Option<Worktree> {
        let text = read(&self.paths.run_dir(name, run).join(WORKTREE)).ok()??;
        serde_json::from_slice(&text).ok()
    }

    /// Removes a run's directory; one that is not there is no error.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn remove_run_dir(&self, name: &WorkerName, run: Run) -> Result<()> {
        let dir = self.paths.run_dir(name, run);
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", &dir, error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// All runs that have a directory, so that those of the past can be removed.
    pub fn run_dirs(&self) -> Vec<(WorkerName, Run)> {
        let parse = |path: PathBuf| {
            let (name, run) = file_name(&path).split_once('.')?;
            Some((WorkerName::new(name).ok()?, Run(run.parse().ok()?)))
        };
        entries(&self.paths.runs_dir()).into_iter().filter_map(parse).collect()
    }
}
