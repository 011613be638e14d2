//! The file of a task list: reads and replaces it, and refuses to change the list while a loop works on it.
//!
//! The daemon's list of workers decides, since an agent can delete `.ralph-active`. The file only shows the loops of
//! other swarms and of other programs. Used by the verbs that write a list, and by [`crate::archive`].

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use swarm_state::model::Status;
use swarm_state::tasks::TaskList;
use swarm_state::tasks::gate::TASKS_FILE;

use super::connect::{QUICK_TIMEOUT, connect, connect_existing};
use super::typed_path;
use crate::cli::TaskListPlace;
use crate::error::{Error, ErrorCode, Result};
use crate::files;
use crate::paths::{Paths, resolve};
use crate::protocol::{Call, Empty, Listing, WorkerView};
use crate::shell::{quote, quote_path};
use crate::task_files::TaskDir;

const MAX_LIST_BYTES: u64 = 64 << 20;

pub(super) const CHECK_HINT: &str = "for all problems: swarm ralph tasks check";

pub(super) struct TaskListFile {
    path: PathBuf,
    /// The user named the file and not its directory.
    is_named: bool,
}

impl TaskListFile {
    pub(super) fn of_args(place: &TaskListPlace) -> Self {
        match &place.file {
            Some(file) => Self { path: file.clone(), is_named: true },
            None => Self::in_dir(&place.ralph_dir),
        }
    }

    pub(super) fn in_dir(dir: &Path) -> Self {
        Self { path: dir.join(TASKS_FILE), is_named: false }
    }

    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn absolute(&self) -> Result<PathBuf> {
        typed_path::absolute(&self.path)
    }

    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.path.canonicalize().is_ok_and(|own| path.canonicalize().is_ok_and(|other| own == other))
    }

    pub(super) fn read(&self) -> Result<String> {
        let bytes = files::read_bounded(&self.path, MAX_LIST_BYTES).map_err(|error| self.not_read(&error))?;
        text_of(bytes).map_err(|error| self.not_read(&error))
    }

    /// Reads a list that must be valid.
    pub(super) fn list(&self) -> Result<TaskList> {
        let fault = |fault| Error::invalid(format!("{}: {fault}", self.shown())).hint(CHECK_HINT);
        TaskList::parse(&self.read()?).map_err(fault)
    }

    fn not_read(&self, error: &io::Error) -> Error {
        let shown = self.shown();
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
            let error = Error::invalid(format!("no task list: {shown} does not exist"));
            let hint = match (self.is_named, Path::new(TASKS_FILE).is_file()) {
                (true, _) => "to use the list of a directory: --ralph-dir DIR".to_owned(),
                (false, true) => "for the list in this directory: --ralph-dir .".to_owned(),
                (false, false) => "to create one: swarm ralph init --tasks".to_owned(),
            };
            return error.hint(hint);
        }
        let is_dir = self.path.is_dir();
        let error = if is_dir {
            Error::invalid(format!("cannot read {shown}: it is a directory"))
        } else {
            Error::system(format!("cannot read {shown}"), error)
        };
        if is_dir && self.is_named {
            let dir = quote_path(&self.path);
            return error.hint(format!("for the list in it: --ralph-dir {dir}"));
        }
        error
    }

    /// Replaces the text, whole or not at all. The file keeps its mode, and a link its target.
    pub(super) fn write(&self, text: &str) -> Result<()> {
        let write = || {
            let path = self.path.canonicalize()?;
            let mode = fs::metadata(&path)?.permissions();
            files::write_with(&path, |file| {
                file.write_all(text.as_bytes())?;
                file.set_permissions(mode)
            })
        };
        write().map(drop).map_err(|error| Error::system(format!("cannot write {}", self.shown()), error))
    }

    /// Refuses to continue while a loop works on the list: it has its own copy, and would undo the change.
    pub(super) async fn refuse_used(&self) -> Result<()> {
        let place = TaskDir::find(None, self.absolute()?.parent())?;
        refuse_used_list(&place, ListChange::Edit).await.map(drop)
    }
}

/// Reads a text to import: a file, a pipe, or standard input for `-`.
pub(super) fn read_input(path: &Path) -> io::Result<String> {
    let reader: Box<dyn Read> =
        if path == Path::new("-") { Box::new(io::stdin()) } else { Box::new(fs::File::open(path)?) };
    let mut bytes = vec![];
    reader.take(MAX_LIST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LIST_BYTES {
        let text = format!("it is larger than {MAX_LIST_BYTES} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    text_of(bytes)
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// The change that a command is about to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListChange {
    /// An edit, which is permitted while the loop is paused.
    Edit,
    /// The list is replaced, so that a paused loop could not continue.
    Replace,
}

/// Refuses to change the list in `place` while a loop works on it; the error names the worker and how to continue.
/// Starts the daemon if it does not run and there are records of workers: one of them may be a loop whose agent still
/// works. Returns a warning if the list is replaced while a loop works on a copy of it in a worktree.
pub(crate) async fn refuse_used_list(place: &TaskDir, change: ListChange) -> Result<Option<String>> {
    let paths = Paths::from_env()?;
    let has_records = paths.workers_dir().read_dir().is_ok_and(|mut entries| entries.next().is_some());
    let client = if has_records {
        Some(connect(&(&paths).into()).await?)
    } else {
        connect_existing(&(&paths).into()).await?
    };
    let workers = match client {
        Some(mut client) => client.call::<Listing>(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?.workers,
        None => vec![],
    };
    if let Some(user) = workers.iter().find(|worker| uses(worker, place, change)) {
        return Err(refusal(user, place, change));
    }
    place.refuse_marker()?;
    let user = workers.iter().find(|worker| change == ListChange::Replace && has_copy(worker, place));
    Ok(user.map(|user| {
        format!("worker '{}' works on a copy of this list, in {}", user.name, user.cwd.display())
    }))
}

/// Whether a loop that has not ended works in a worktree of the list's repository, on the same list.
fn has_copy(worker: &WorkerView, place: &TaskDir) -> bool {
    let original = worker.worktree.as_ref().zip(worker.tasks.as_ref());
    let original = original.map(|(worktree, tasks)| worktree.base_repo.join(&tasks.dir));
    let is_open = worker.status.is_live() || matches!(worker.status, Status::Paused | Status::Lost);
    is_open && original.is_some_and(|original| resolve(&original) == resolve(&place.dir))
}

fn uses(worker: &WorkerView, place: &TaskDir, change: ListChange) -> bool {
    let is_in_use = match worker.status {
        Status::Paused => change == ListChange::Replace,
        status => status.is_live() || status == Status::Lost,
    };
    let is_dir = |dir: &String| resolve(&worker.cwd.join(dir)) == resolve(&place.dir);
    is_in_use && worker.tasks.as_ref().is_some_and(|tasks| is_dir(&tasks.dir))
}

fn refusal(worker: &WorkerView, place: &TaskDir, change: ListChange) -> Error {
    let (name, list) = (quote(&worker.name), place.shown(""));
    let state = match worker.status {
        Status::Paused => "is paused and not finished with",
        Status::Lost => "is lost and not finished with",
        _ => "works on",
    };
    let text = format!("worker '{}' {state} the task list '{list}'", worker.name);
    let hint = match (change, worker.status) {
        (ListChange::Edit, status) if status.is_live() => {
            format!("swarm ralph pause {name}, or swarm kill {name}; then retry")
        }
        _ => format!("to end the loop: swarm kill {name}; then retry"),
    };
    Error::new(ErrorCode::Conflict, text).hint(hint)
}
