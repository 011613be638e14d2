//! The file of a task list: reading and replacing it.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use swarm_state::tasks::TaskList;
use swarm_state::tasks::gate::TASKS_FILE;

use super::list_users::{ListChange, refuse_used_list};
use super::typed_path;
use crate::cli::TaskListPlace;
use crate::error::{Error, Result};
use crate::task_files::TaskDir;
use crate::{files, shell};

const MAX_LIST_BYTES: u64 = 64 << 20;

pub(super) const CHECK_HINT: &str = "for all problems: swarm ralph tasks check";

/// The file of a task list.
pub(super) struct TaskListFile {
    path: PathBuf,
    /// The user named the file and not its directory.
    is_named: bool,
}

impl TaskListFile {
    /// The file that the arguments name.
    pub(super) fn of_args(place: &TaskListPlace) -> Self {
        match &place.file {
            Some(file) => Self { path: file.clone(), is_named: true },
            None => Self::in_dir(&place.ralph_dir),
        }
    }

    pub(super) fn in_dir(dir: &Path) -> Self {
        Self { path: dir.join(TASKS_FILE), is_named: false }
    }

    /// The path for messages.
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
            let dir = shell::quote_path(&self.path);
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
