//! The files of a task list in a project: their place, whether a loop works on them, and writing new ones.
//!
//! Used by `ralph init`, `ralph plan` and `ralph archive`. Deliberately absent: the texts, which
//! are in [`swarm_state::template::tasks`], and git.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use chrono::Local;
pub(crate) use swarm_state::tasks::gate::{PRD_FILE, PROMPT_FILE, TASKS_FILE};
use swarm_state::tasks::marker::{MARKER_FILE, RalphMarker};
use swarm_state::template::tasks::{PRD, PROGRESS, TASKS_PROMPT, fill, tasks_file};

use crate::error::{Error, ErrorCode, Result, failed};
use crate::files;
use crate::paths;
use crate::procs;
use crate::shell::{quote, quote_path};

/// The log of the iterations.
pub(crate) const PROGRESS_FILE: &str = "progress.txt";

/// The default name of the directory.
pub(crate) const TASK_DIR: &str = "ralph";

/// The command that writes the files.
const INIT: &str = "swarm ralph init --tasks";

/// The largest file that is read.
const MAX_TASK_DIR_FILE_BYTES: u64 = 32 << 20;

/// The directory of a task list.
#[derive(Debug)]
pub(crate) struct TaskDir {
    pub(crate) project: PathBuf,
    pub(crate) dir: PathBuf,
}

impl TaskDir {
    /// Finds the directory: `ralph_dir`, or else `ralph` in `cwd`. Without `cwd`, the project is the current directory,
    /// or the parent of a `ralph_dir` outside of it. Fails if the project's directory does not exist.
    pub(crate) fn find(cwd: Option<&Path>, ralph_dir: Option<&Path>) -> Result<Self> {
        let pin = |path: &Path| paths::pin(path).map_err(|e| failed("use", path, e));
        let here = pin(Path::new("."))?;
        let dir = ralph_dir.map(pin).transpose()?;
        let project = match (cwd, dir.as_ref().and_then(|dir| dir.parent())) {
            (Some(cwd), _) => pin(cwd)?,
            (None, Some(parent)) if !parent.starts_with(&here) => parent.to_owned(),
            (None, _) => here,
        };
        if !project.is_dir() {
            return Err(Error::invalid(format!("no such directory: {}", project.display())));
        }
        let dir = dir.unwrap_or_else(|| project.join(TASK_DIR));
        Ok(Self { project, dir })
    }

    /// Whether the directory exists. Fails if something else has its name.
    pub(crate) fn exists(&self) -> Result<bool> {
        if self.dir.is_dir() {
            return Ok(true);
        }
        match fs::symlink_metadata(&self.dir) {
            Ok(found) => {
                let what =
                    if found.is_symlink() { "a link to a missing directory" } else { "not a directory" };
                let text = format!("'{}' is {what}", self.shown(""));
                Err(Error::invalid(text).hint("move it away, then retry"))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::system(format!("cannot read '{}'", self.shown("")), error)),
        }
    }

    /// Refuses a directory that does not exist; the error has the command that makes it.
    pub(crate) fn require(&self) -> Result<()> {
        if self.exists()? {
            return Ok(());
        }
        Err(Error::invalid(format!("no such directory: {}", self.shown("")))
            .hint(format!("to create it: {INIT}")))
    }

    /// A file's path for messages: relative to the current directory if the file is in it.
    pub(crate) fn shown(&self, file: &str) -> String {
        let path = if file.is_empty() { self.dir.clone() } else { self.dir.join(file) };
        let here = paths::pin(Path::new(".")).unwrap_or_default();
        path.strip_prefix(here).unwrap_or(&path).display().to_string()
    }

    /// Reads a file of the list; `None` if it does not exist.
    pub(crate) fn read(&self, file: &str) -> Result<Option<Vec<u8>>> {
        let path = self.dir.join(file);
        let failed = |why: &dyn std::fmt::Display| {
            Err(Error::system(format!("cannot read '{}'", self.shown(file)), why))
        };
        match files::if_exists(files::read_bounded(&path, MAX_TASK_DIR_FILE_BYTES)) {
            Ok(None) if path.is_symlink() => failed(&"it is a link to a missing file"),
            Ok(bytes) => Ok(bytes),
            Err(error) => failed(&error),
        }
    }

    /// Refuses to continue while `.ralph-active` shows that a loop works on the list: of another swarm, or of another
    /// program. The error has the name of the worker and how to continue. For the loops of this swarm, the daemon
    /// decides (`client::task_list_file`), since an agent can delete the file.
    pub(crate) fn refuse_marker(&self) -> Result<()> {
        let mut places = [self.project.as_path()].into_iter().chain(self.dir.ancestors().skip(1));
        let Some((path, marker)) = places.find_map(|dir| self.live_marker(dir)) else { return Ok(()) };
        let shown = quote_path(&path);
        let (who, stop) = match &marker.worker {
            Some(worker) => {
                let name = quote(worker);
                (
                    format!("worker '{worker}'"),
                    format!("swarm ralph pause {name}, or swarm kill {name}; then retry"),
                )
            }
            None => (format!("a loop (process {})", marker.pid), "wait for its end, then retry".to_owned()),
        };
        let text = format!("{who} works on the task list '{}'", self.shown(""));
        Err(Error::new(ErrorCode::Conflict, text)
            .hint(format!("{stop}. If there is no such loop: rm {shown}")))
    }

    /// `.ralph-active` in a directory, if the program that wrote it still runs. Above the project, it has to name this
    /// list.
    fn live_marker(&self, dir: &Path) -> Option<(PathBuf, RalphMarker)> {
        let path = dir.join(MARKER_FILE);
        let text = files::read_bounded(&path, MAX_TASK_DIR_FILE_BYTES).ok()?;
        let marker = RalphMarker::parse(&String::from_utf8_lossy(&text));
        let is_near = dir == self.project || Some(dir) == self.dir.parent();
        let named = marker.ralph_dir.as_ref().map(|named| paths::resolve(&dir.join(named)));
        let is_ours = is_near || named == Some(paths::resolve(&self.dir));
        (is_ours && i32::try_from(marker.pid).is_ok_and(procs::is_alive)).then_some((path, marker))
    }

    /// The name of the project: that of its directory.
    pub(crate) fn project_name(&self) -> String {
        let name = self.project.file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| "project".to_owned())
    }

    /// A new text of a file. `branch` is the list's branch, if there is one.
    pub(crate) fn fresh(&self, file: &str, branch: Option<&str>) -> String {
        let project_name = self.project_name();
        if file == TASKS_FILE {
            return tasks_file(&project_name, branch);
        }
        let values = [("PROJECT_NAME", project_name), ("DATE", today())];
        match file {
            PRD_FILE => fill(PRD, &values),
            PROGRESS_FILE => fill(PROGRESS, &values),
            // Each iteration fills it in.
            _ => TASKS_PROMPT.to_owned(),
        }
    }

    /// Writes a new text of a file, whole or not at all. Replaces a link, and keeps its target.
    pub(crate) fn put(&self, file: &str, text: &str) -> Result<()> {
        let failed = |e| Error::system(format!("cannot write '{}'", self.shown(file)), e);
        put(&self.dir.join(file), text.as_bytes()).map_err(failed)
    }
}

/// Writes a file of the user's, whole or not at all, with the mode that the umask permits.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    files::replace(path, |temporary| {
        let mut file = fs::File::create(temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    })
}

/// The current day, `2026-01-15`.
pub(crate) fn today() -> String {
    Local::now().format("%Y-%m-%d").to_string()
}
