//! A look at the whole directory that changes nothing in it, for `doctor`.
//!
//! [`Store::open`] makes what is missing, removes left-overs and sets damaged files aside; this does none of
//! it, and needs no lock: the daemon may be at work.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use swarm_state::format::{self, FORMAT, FormatError, Record};
use swarm_state::model::{Run, WorkerName};

use super::{Problem, Store, entries, read};
use crate::files::{file_name, writer_of};
use crate::paths::Paths;
use crate::procs;

/// What is the matter with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It was set aside earlier.
    SetAside,
    /// A newer swarm wrote it.
    Newer,
    /// It does not parse; the daemon sets it aside when it reads it next.
    Broken,
    /// It cannot be read at all.
    Unreadable,
}

/// A file that something is the matter with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which.
    pub path: PathBuf,
    /// What.
    pub damage: Damage,
    /// The cause, in words; empty for [`Damage::SetAside`].
    pub cause: String,
}

/// What is in the directory.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Every record that can be read, the predecessor's workers too.
    pub records: Vec<Record>,
    /// Every name that has a file, readable or not.
    pub names: BTreeSet<WorkerName>,
    /// What is the matter.
    pub found: Vec<Found>,
    /// Problems of the predecessor's list, as sentences.
    pub problems: Vec<String>,
    /// Temporary files of writers that are gone.
    pub temporary: Vec<PathBuf>,
    /// Directories of runs whose worker is not known, with the worker and the run.
    pub runs: Vec<(WorkerName, Run, PathBuf)>,
    /// Directories of loops whose worker is not known, with its name.
    pub loops: Vec<(WorkerName, PathBuf)>,
}

/// Reads everything below the root of `paths`.
pub fn survey(paths: &Paths) -> Survey {
    let mut survey = Survey::default();
    for path in entries(&paths.workers_dir()) {
        survey.worker_file(&path);
    }
    for dir in entries(&paths.ralph_root()).into_iter().filter(|dir| dir.is_dir()) {
        for path in entries(&dir) {
            survey.loop_file(&dir, &path);
        }
    }
    for path in entries(paths.root()).into_iter().chain(entries(&paths.helper_dir())) {
        survey.note_temporary(&path);
    }
    // A store that was never opened only reads.
    let store = Store { paths: paths.clone(), reserved: Mutex::default(), noted: Mutex::default() };
    let mut problems: Vec<Problem> = vec![];
    store.load_legacy(&mut survey.records, &mut problems);
    survey.problems = problems.into_iter().map(|problem| problem.message).collect();
    survey.names.extend(survey.records.iter().map(|record| record.name.clone()));
    let unknown = store.run_dirs().into_iter().filter(|(name, _)| !survey.names.contains(name));
    survey.runs = unknown.map(|(name, run)| (name.clone(), run, paths.run_dir(&name, run))).collect();
    let names = &survey.names;
    survey.loops.retain(|(name, _)| !names.contains(name));
    survey
}

impl Survey {
    fn worker_file(&mut self, path: &Path) {
        let file = file_name(path).to_owned();
        self.note_temporary(path);
        if let Some((stem, _)) = file.split_once(".json.corrupt-") {
            self.names.extend(WorkerName::new(stem).ok());
            return self.note(path, Damage::SetAside, String::new());
        }
        let Some(name) = file.strip_suffix(".json").and_then(|stem| WorkerName::new(stem).ok()) else {
            return;
        };
        if let Some(record) = self.parse(path, format::parse_record) {
            self.records.push(record);
        }
        self.names.insert(name);
    }

    fn loop_file(&mut self, dir: &Path, path: &Path) {
        self.note_temporary(path);
        let file = file_name(path);
        if file.contains(".corrupt-") {
            return self.note(path, Damage::SetAside, String::new());
        }
        if file == "state.json" {
            let state = self.parse(path, format::parse_ralph);
            // What earlier loops left has a number; what the predecessor left is its own.
            let is_ours = state.is_some_and(|state| state.format == FORMAT);
            let name = WorkerName::new(file_name(dir)).ok().filter(|_| is_ours);
            self.loops.extend(name.map(|name| (name, dir.to_owned())));
        }
    }

    fn parse<T>(&mut self, path: &Path, parse: impl Fn(&[u8]) -> Result<T, FormatError>) -> Option<T> {
        let bytes = match read(path) {
            Ok(bytes) => bytes?,
            Err(error) => {
                self.note(path, Damage::Unreadable, error.to_string());
                return None;
            }
        };
        match parse(&bytes) {
            Ok(value) => Some(value),
            Err(error @ FormatError::Newer(_)) => {
                self.note(path, Damage::Newer, error.to_string());
                None
            }
            Err(FormatError::Broken(cause)) => {
                self.note(path, Damage::Broken, cause);
                None
            }
        }
    }

    fn note(&mut self, path: &Path, damage: Damage, cause: String) {
        self.found.push(Found { path: path.to_owned(), damage, cause });
    }

    fn note_temporary(&mut self, path: &Path) {
        if writer_of(path).is_some_and(|pid| !procs::is_alive(pid)) {
            self.temporary.push(path.to_owned());
        }
    }
}
