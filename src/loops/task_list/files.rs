//! The files of a task list: the user's, and swarm's signed record of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use swarm_state::tasks::TaskList;
use swarm_state::tasks::enforce::Enforced;
use swarm_state::tasks::gate::{PRD_FILE, PROMPT_FILE, TASKS_FILE, TaskGate, TaskTurn};

use crate::error::{Error, Result, failed};
use crate::files::read_bounded;
use crate::loops::run::{LoopRun, read_signed, write_signed};
use crate::paths::resolve;
use crate::signed::Purpose;

/// The largest list and requirements that are read.
const MAX_TASK_FILE_BYTES: u64 = 16 << 20;

/// The permissions of a file of the user's that swarm creates.
const NEW_FILE_MODE: u32 = 0o644;

/// swarm's record in the loop's folder.
const RECORD_FILE: &str = "tasks.json";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TaskRecord {
    /// The list before the iteration.
    pub(super) before: String,
    /// The list after it, as swarm accepted it; `None` until the iteration was evaluated.
    pub(super) after: Option<String>,
    /// The requirements; `None` if there was no such file.
    pub(super) prd: Option<String>,
    /// The prompt; `None` if it is another file.
    pub(super) prompt: Option<String>,
    pub(super) turn: Option<TaskTurn>,
    /// The loop is paused or has ended, so a person may edit the files.
    pub(super) is_open: bool,
}

impl TaskRecord {
    /// Whether the last iteration was evaluated, or none started.
    pub(super) fn was_evaluated(&self) -> bool {
        self.after.is_some() || self.turn.is_none()
    }
}

impl LoopRun {
    /// Writes the list if the file differs. A file that is replaced as a whole is kept in the loop's folder.
    pub(super) fn store_list(&self, gate: &TaskGate, enforced: &Enforced, now: Option<&str>) -> Result<()> {
        let path = self.text_file(gate, TASKS_FILE);
        let is_same = now.and_then(|text| TaskList::parse(text).ok()).is_some_and(|now| now == enforced.list);
        if is_same {
            return Ok(());
        }
        if enforced.is_restored {
            self.set_aside(&path)?;
        }
        self.write_file(&path, &enforced.list.to_text())
    }

    /// Restores the requirements and the prompt if they were changed. Returns the warnings.
    pub(super) fn restore_texts(&self, gate: &TaskGate, record: &TaskRecord) -> Result<Vec<String>> {
        let mut warnings = vec![];
        for (file, text) in [(PRD_FILE, &record.prd), (PROMPT_FILE, &record.prompt)] {
            let path = self.text_file(gate, file);
            let Some(text) = text.as_ref().filter(|text| read_text(&path).as_ref() != Some(*text)) else {
                continue;
            };
            self.write_file(&path, text)?;
            warnings.push(format!(
                "{}/{file} is read-only during the loop: it was changed, and was restored",
                gate.dir
            ));
        }
        Ok(warnings)
    }

    /// The text of prompt.md, if it is the prompt of the loop.
    pub(super) fn own_prompt(&self, gate: &TaskGate) -> Option<String> {
        let path = self.text_file(gate, PROMPT_FILE);
        let is_own = self.task_file.as_ref().is_some_and(|file| resolve(file) == resolve(&path));
        read_text(&path).filter(|_| is_own)
    }

    /// Moves whatever is at the place of a file into the loop's folder, or beside its place if that is on another disk.
    fn set_aside(&self, path: &Path) -> Result<()> {
        if std::fs::symlink_metadata(path).is_err() {
            return Ok(());
        }
        self.require_inside(path)?;
        let stamp = chrono::Utc::now().format("%Y%m%dT%H%M%S%3f");
        let name = format!("{}.broken-{stamp}", crate::files::file_name(path));
        let moved = self.tree_files().move_out(path, &self.folder.join(name));
        moved.map_err(|e| Error::system(format!("cannot move '{}' aside", path.display()), e))
    }

    /// Refuses a path that leaves the worker's directory: an agent may have made a link.
    fn require_inside(&self, path: &Path) -> Result<()> {
        let dir = resolve(path.parent().unwrap_or(path));
        if dir.starts_with(resolve(&self.cwd)) {
            return Ok(());
        }
        Err(Error::invalid(format!("'{}' leads out of the worker's directory", path.display())))
    }

    /// Replaces a file of the user's. Its permissions stay. A link is followed only inside of the worker's directory.
    pub(super) fn write_file(&self, path: &Path, text: &str) -> Result<()> {
        self.require_inside(path)?;
        if path.is_dir() {
            self.set_aside(path)?;
        }
        let real = resolve(path);
        let path = if real.starts_with(resolve(&self.cwd)) { &real } else { path };
        let mode = std::fs::metadata(path).map_or(NEW_FILE_MODE, |file| file.permissions().mode() & 0o7777);
        let write = self.tree_files().put(path, text.as_bytes(), mode, true);
        write.map_err(|e| failed("write", path, e))
    }

    pub(super) fn text_file(&self, gate: &TaskGate, file: &str) -> PathBuf {
        self.cwd.join(&gate.dir).join(file)
    }

    pub(super) fn read_task_record(&self) -> Option<TaskRecord> {
        read_signed(&self.key, Purpose::Tasks(&self.name, &self.id), &self.folder.join(RECORD_FILE))
    }

    pub(super) fn write_task_record(&self, record: &TaskRecord) -> Result<()> {
        let purpose = Purpose::Tasks(&self.name, &self.id);
        write_signed(&self.key, purpose, &self.folder.join(RECORD_FILE), record)
    }
}

/// The text of a file; `None` if it cannot be read, is too large, or is not UTF-8.
pub(super) fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read_bounded(path, MAX_TASK_FILE_BYTES).ok()?).ok()
}
