//! The progress file in the worker's directory: the results of earlier iterations, for the agents of later ones.
//!
//! It is written again from the ledger after each iteration, so edits by an agent have no effect. git ignores it
//! through `info/exclude`; the user's `.gitignore` is not changed.

use std::fs;
use std::path::Path;

use swarm_state::contract::{HEADING, ProgressEntry};
use swarm_state::ledger::Iteration;

use super::run::LoopRun;
use crate::error::{Error, Result};
use crate::git;
use crate::store::write_unsynced;

/// Its path in the worker's directory.
pub(crate) const PROGRESS_FILE: &str = ".swarm/ralph-progress.md";

/// Refuses a directory whose `.swarm` is swarm's own.
pub(crate) fn check(cwd: &Path, root: &Path) -> Result<()> {
    let own = crate::paths::resolve(&cwd.join(".swarm"));
    if own != crate::paths::resolve(root) {
        return Ok(());
    }
    let message = format!("the progress file would be in swarm's own directory, {}", root.display());
    Err(Error::invalid(message).hint("use another directory, or --worktree"))
}

/// Starts a new file.
pub(super) async fn begin(cwd: &Path, root: &Path) -> Result<()> {
    check(cwd, root)?;
    git::exclude(cwd, &format!("**/{PROGRESS_FILE}")).await?;
    write(cwd, HEADING)
}

/// Removes the file. True if it existed.
pub(crate) fn forget(cwd: &Path) -> bool {
    let gone = fs::remove_file(cwd.join(PROGRESS_FILE)).is_ok();
    // This removes only an empty directory.
    let _ = fs::remove_dir(cwd.join(".swarm"));
    gone
}

fn write(cwd: &Path, text: &str) -> Result<()> {
    let path = cwd.join(PROGRESS_FILE);
    let dir = cwd.join(".swarm");
    fs::create_dir_all(&dir)
        .and_then(|()| write_unsynced(&path, text.as_bytes()))
        .map_err(|e| Error::system(format!("cannot write '{}'", path.display()), e))
}

impl LoopRun {
    /// The text up to and including an iteration.
    pub(super) fn progress(&self, up_to: u32) -> String {
        let entries = (1..=up_to).filter_map(|n| self.read_iteration(n));
        let parts: Vec<String> = entries.filter_map(|it| part(&it)).collect();
        if parts.is_empty() { String::new() } else { parts.join("\n") }
    }

    pub(super) fn write_progress(&self, up_to: u32) -> Result<()> {
        // If the agent removed the directory, do not make it again: the next iteration reports that it is gone.
        if !self.cwd.is_dir() {
            return Ok(());
        }
        write(&self.cwd, &format!("{HEADING}\n{}", self.progress(up_to)))
    }
}

fn part(iteration: &Iteration) -> Option<String> {
    let verdict = iteration.verdict.as_ref()?;
    let checks = verdict.checks.iter().map(|c| (c.name.as_str(), c.passed, c.output.as_str())).collect();
    // The checks are listed separately.
    let remarks = verdict.other_remarks();
    let entry = ProgressEntry {
        iteration: iteration.iteration,
        passed: verdict.is_complete(),
        steps: iteration.tool_calls,
        cost: iteration.cost(),
        duration: iteration.seconds,
        checks,
        remarks: &remarks,
    };
    Some(entry.to_string())
}
