//! Reads the whole directory for `doctor` and changes nothing.
//!
//! [`Store::open`] makes directories, removes leftovers and sets damaged files aside. This does none of that and
//! needs no lock: the daemon may be running.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use serde::de::IgnoredAny;
use swarm_state::format::{self, FORMAT, FormatError, Record};
use swarm_state::model::{Run, WorkerName};
use swarm_state::notice::counted;

use super::{Problem, Store, entries, read};
use crate::files::{file_name, writer_of};
use crate::paths::Paths;
use crate::procs;
use crate::signed::SigningKey;

/// The problem with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file was set aside earlier.
    SetAside,
    /// A newer swarm wrote it.
    Newer,
    /// The file does not parse. The daemon sets it aside when it next reads it.
    Broken,
    /// The file cannot be read.
    Unreadable,
    /// Lines of the event log do not parse.
    Events,
}

/// A file with a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// The problem with the file.
    pub damage: Damage,
    /// The reason; empty for [`Damage::SetAside`].
    pub cause: String,
}

/// The contents of the directory.
#[derive(Clone, Debug, Default)]
pub struct DiskSurvey {
    /// Every readable record, those of the predecessor's workers included.
    pub records: Vec<Record>,
    /// Every name that has a file, readable or not.
    pub names: BTreeSet<WorkerName>,
    /// Files with a problem.
    pub found: Vec<DamagedFile>,
    /// Problems with the predecessor's list, one sentence each.
    pub problems: Vec<String>,
    /// Temporary files whose writer has ended.
    pub temporary: Vec<PathBuf>,
    /// Run directories of unknown workers, with worker and run.
    pub runs: Vec<(WorkerName, Run, PathBuf)>,
    /// Loop directories of unknown workers, with the worker's name.
    pub loops: Vec<(WorkerName, PathBuf)>,
}

/// Reads everything below the root of `paths`.
pub fn survey(paths: &Paths) -> DiskSurvey {
    let mut survey = DiskSurvey::default();
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
        survey.event_file(&path);
    }
    // This store was never opened, so it only reads.
    let store = Store {
        paths: paths.clone(),
        key: SigningKey::none(),
        lock: OnceLock::new(),
        reserved: Mutex::default(),
        noted: Mutex::default(),
    };
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

impl DiskSurvey {
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
            // Archived loops have a number in their name. A state without our format is the predecessor's.
            let is_ours = state.is_some_and(|state| state.format == FORMAT);
            let name = WorkerName::new(file_name(dir)).ok().filter(|_| is_ours);
            self.loops.extend(name.map(|name| (name, dir.to_owned())));
        }
    }

    fn event_file(&mut self, path: &Path) {
        let file = file_name(path);
        if !file.starts_with("events.jsonl") {
            return;
        }
        if file.contains(".corrupt-") {
            return self.note(path, Damage::SetAside, String::new());
        }
        let bytes = match read(path) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) => return self.note(path, Damage::Unreadable, error.to_string()),
        };
        // The daemon may be writing the last line.
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let broken = lines.filter(|line| serde_json::from_slice::<IgnoredAny>(line).is_err()).count() as u64;
        if broken > 0 {
            self.note(path, Damage::Events, format!("{} cannot be read", counted(broken, "line")));
        }
    }

    fn parse<T>(&mut self, path: &Path, parse: impl Fn(&[u8]) -> Result<T, FormatError>) -> Option<T> {
        let (damage, cause) = match read(path) {
            Err(error) => (Damage::Unreadable, error.to_string()),
            Ok(bytes) => match parse(&bytes?) {
                Ok(value) => return Some(value),
                Err(error @ FormatError::Newer(_)) => (Damage::Newer, error.to_string()),
                Err(FormatError::Broken(cause)) => (Damage::Broken, cause),
            },
        };
        self.note(path, damage, cause);
        None
    }

    fn note(&mut self, path: &Path, damage: Damage, cause: String) {
        self.found.push(DamagedFile { path: path.to_owned(), damage, cause });
    }

    fn note_temporary(&mut self, path: &Path) {
        if writer_of(path).is_some_and(|pid| !procs::is_alive(pid)) {
            self.temporary.push(path.to_owned());
        }
    }
}
