//! Adds a canary to the agent's tree, and removes it in any case.
//!
//! A journal in the loop's folder names what is about to be added. It is deleted after the removal, so a daemon that
//! finds one at its start undoes what a killed daemon left. A file is removed only if it contains the token: the
//! journal is not signed, since the library's loops have no lasting key, and it permits nothing that the agent
//! could not do itself.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use swarm_state::canary::{Canary, filled, package_in};

use super::super::run::LoopRun;
use super::traces::{self, Kept};
use crate::checks::{OnCheckStep, Step};
use crate::error::{Error, Result, failed};
use crate::files::{if_exists, read_bounded, write_atomic};
use crate::sandbox::tree_files::TreeFiles;

const JOURNAL_FILE: &str = "canary.json";

/// The largest journal, canary, or neighbor of one that is read.
const MAX_CANARY_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Journal {
    token: String,
    cwd: PathBuf,
    /// The canary, absolute.
    file: PathBuf,
    /// The directories that are made for it, the highest first.
    dirs: Vec<PathBuf>,
    /// Directories for build results, in which files with the token in their names are removed.
    builds: Vec<PathBuf>,
    /// Files in which runners record their results.
    records: Vec<PathBuf>,
    #[serde(default)]
    tree: TreeFiles,
}

/// A canary in the tree. Dropping it removes it.
pub(super) struct Planted {
    journal: Journal,
    path: PathBuf,
    kept: Vec<Kept>,
    is_removed: bool,
}

impl Planted {
    /// Writes the canary. Fails when the file exists, would be outside of the tree, or cannot be written.
    pub(super) fn plant(
        loop_run: &LoopRun,
        canary: &Canary,
        file: &str,
        token: &str,
        on_step: OnCheckStep<'_>,
    ) -> Result<Self> {
        let file = filled(file, token, "");
        let trouble = |e: io::Error| Error::system(format!("cannot add the failing test '{file}'"), e);
        let place = loop_run.cwd.join(&file);
        let parent = place.parent().unwrap_or(&loop_run.cwd);
        refuse_outside(&loop_run.cwd, parent).map_err(trouble)?;
        let package = package_near(parent, &canary.package).map_err(trouble)?;
        let text = filled(&canary.text, token, &package);
        let missing = parent.ancestors().take_while(|dir| dir.symlink_metadata().is_err());
        let mut dirs: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        dirs.reverse();
        let journal = Journal {
            token: token.to_owned(),
            cwd: loop_run.cwd.clone(),
            builds: traces::builds(loop_run, &place),
            records: traces::records(loop_run, parent),
            file: place.clone(),
            dirs,
            tree: loop_run.tree_files(),
        };
        let path = loop_run.folder.join(JOURNAL_FILE);
        let bytes = serde_json::to_vec_pretty(&journal).map_err(|e| trouble(e.into()))?;
        write_atomic(&path, &bytes).map_err(trouble)?;
        let kept = journal.records.iter().map(|record| Kept::read(record)).collect();
        let planted = Self { journal, path, kept, is_removed: false };
        on_step(Step::Reached("canary_journal"));
        planted.write(&text).map_err(trouble)?;
        on_step(Step::Reached("canary_written"));
        Ok(planted)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        for dir in &self.journal.dirs {
            self.journal.tree.create_dir(dir)?;
        }
        self.journal.tree.create(&self.journal.file, text.as_bytes())
    }

    pub(super) fn remove(mut self, on_step: OnCheckStep<'_>) -> Result<()> {
        self.undo().map_err(|e| failed("remove the failing test", &self.journal.file, e))?;
        on_step(Step::Reached("canary_removed"));
        self.forget();
        Ok(())
    }

    fn undo(&self) -> io::Result<()> {
        self.journal.undo()?;
        self.kept.iter().for_each(|kept| kept.restore(&self.journal.tree));
        Ok(())
    }

    fn forget(&mut self) {
        let _ = fs::remove_file(&self.path);
        self.is_removed = true;
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        if !self.is_removed && self.undo().is_ok() {
            self.forget();
        }
    }
}

impl Journal {
    /// Removes what it names. Safe to repeat.
    fn undo(&self) -> io::Result<()> {
        let bytes = if_exists(read_bounded(&self.file, MAX_CANARY_BYTES))?;
        if bytes.is_some_and(|bytes| traces::contains(&bytes, &self.token)) {
            self.tree.remove(&self.file)?;
        }
        // Created, but not written before the daemon died: nobody else chose this name.
        if fs::metadata(&self.file).is_ok_and(|file| file.len() == 0) {
            self.tree.remove(&self.file)?;
        }
        traces::remove(&self.tree, &self.file, &self.token, &self.builds);
        for dir in self.dirs.iter().rev() {
            // A directory that is not empty has files of the agent.
            let _ = self.tree.remove_dir(dir);
        }
        Ok(())
    }
}

/// Undoes what the journal in a loop's folder names, if there is one.
pub(crate) fn undo(folder: &Path) {
    let path = folder.join(JOURNAL_FILE);
    let Ok(bytes) = read_bounded(&path, MAX_CANARY_BYTES) else { return };
    // A journal that cannot be read was not written completely, so nothing was added.
    let journal = serde_json::from_slice::<Journal>(&bytes).ok().filter(|journal| is_token(&journal.token));
    if journal.is_none_or(|journal| {
        traces::forget_records(&journal.tree, &journal.records, &journal.token);
        journal.undo().is_ok()
    }) {
        let _ = fs::remove_file(path);
    }
}

pub(crate) fn undo_all(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        undo(&entry.path());
    }
}

/// A token that occurs nowhere else: 16 hexadecimal digits.
pub(super) fn fresh_token() -> Result<String> {
    let mut bytes = [0; 8];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|e| Error::system("no random numbers", e))?;
    Ok(crate::files::hex(&bytes))
}

fn is_token(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Refuses a directory that a link leads out of the tree.
fn refuse_outside(cwd: &Path, dir: &Path) -> io::Result<()> {
    let existing = dir.ancestors().find(|dir| dir.symlink_metadata().is_ok()).unwrap_or(cwd);
    let (root, real) = (fs::canonicalize(cwd)?, fs::canonicalize(existing)?);
    if real.starts_with(&root) && real.is_dir() {
        Ok(())
    } else {
        Err(io::Error::other(format!("'{}' is not in the worker's directory", existing.display())))
    }
}

/// The package that the files of a directory name.
fn package_near(dir: &Path, pattern: &str) -> io::Result<String> {
    if pattern.is_empty() {
        return Ok(String::new());
    }
    let mut files: Vec<PathBuf> = fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let found = files.iter().find_map(|file| {
        let text = String::from_utf8_lossy(&read_bounded(file, MAX_CANARY_BYTES).ok()?).into_owned();
        package_in(&text, pattern)
    });
    found.ok_or_else(|| io::Error::other("no file next to it names its package"))
}
