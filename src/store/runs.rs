//! The files that one run needs while it lives: the directory `runs/NAME.RUN/`.

use std::fs;
use std::path::PathBuf;

use swarm_state::model::{Run, WorkerName, Worktree};

use super::{Store, entries, failed, file_name, if_exists, read, write_atomic};
use crate::error::Result;
use crate::paths::private_dir;

/// The file that names the worktree which a run is about to make.
const WORKTREE_FILE: &str = "worktree.json";

impl Store {
    /// Makes a run's directory. It is empty except for a [noted worktree](Store::note_worktree): a run number is used
    /// once, so anything else in it is a leftover.
    pub fn prepare_run_dir(&self, name: &WorkerName, run: Run) -> Result<PathBuf> {
        self.clear_run_dir(name, run)?;
        let dir = self.paths.run_dir(name, run);
        private_dir(&dir)?;
        Ok(dir)
    }

    /// Empties the directory of a run that did not start, whose launch file holds secrets. A
    /// [noted worktree](Store::note_worktree) stays until the worker's record names it.
    pub fn clear_run_dir(&self, name: &WorkerName, run: Run) -> Result<()> {
        self.check_owner()?;
        let dir = self.paths.run_dir(name, run);
        for path in entries(&dir).iter().filter(|path| file_name(path) != WORKTREE_FILE) {
            let gone = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            gone.map_err(|e| failed("remove", path, e))?;
        }
        Ok(())
    }

    /// Writes down that a run is about to make this worktree. If the daemon dies before the worker's record names the
    /// worktree, the next daemon finds it here.
    pub fn note_worktree(&self, name: &WorkerName, run: Run, worktree: &Worktree) -> Result<()> {
        self.check_owner()?;
        let dir = self.paths.run_dir(name, run);
        private_dir(&dir)?;
        let path = dir.join(WORKTREE_FILE);
        let text = serde_json::to_vec(worktree).map_err(|e| failed("write", &path, e))?;
        write_atomic(&path, &text).map_err(|e| failed("write", &path, e))
    }

    /// The worktree that a run was about to make, if one was noted.
    pub fn noted_worktree(&self, name: &WorkerName, run: Run) -> Option<Worktree> {
        let text = read(&self.paths.run_dir(name, run).join(WORKTREE_FILE)).ok()??;
        serde_json::from_slice(&text).ok()
    }

    /// Removes a run's directory, if it exists.
    pub fn remove_run_dir(&self, name: &WorkerName, run: Run) -> Result<()> {
        self.check_owner()?;
        let dir = self.paths.run_dir(name, run);
        if_exists(fs::remove_dir_all(&dir)).map(drop).map_err(|e| failed("remove", &dir, e))
    }

    /// Removes the directories of all runs of a worker.
    pub fn remove_run_dirs(&self, name: &WorkerName) -> Result<()> {
        let mut own = self.run_dirs().into_iter().filter(|(of, _)| of == name);
        own.try_for_each(|(_, run)| self.remove_run_dir(name, run))
    }

    /// All runs that have a directory.
    pub fn run_dirs(&self) -> Vec<(WorkerName, Run)> {
        let parse = |path: PathBuf| {
            let (name, run) = file_name(&path).split_once('.')?;
            Some((WorkerName::new(name).ok()?, Run(run.parse().ok()?)))
        };
        entries(&self.paths.runs_dir()).into_iter().filter_map(parse).collect()
    }
}
