//! What one run needs while it lives: `runs/NAME.RUN/`.

use std::fs;
use std::io;
use std::path::PathBuf;

use swarm_state::model::{Run, WorkerName};

use super::{Store, entries, failed, file_name};
use crate::error::Result;
use crate::paths::private_dir;

impl Store {
    /// Makes a run's directory, empty. A run's number is used once, so what is there is a left-over.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn prepare_run_dir(&self, name: &WorkerName, run: Run) -> Result<PathBuf> {
        self.remove_run_dir(name, run)?;
        let dir = self.paths.run_dir(name, run);
        private_dir(&dir)?;
        Ok(dir)
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
