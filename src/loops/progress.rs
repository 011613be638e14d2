//! The progress file in the worker's directory: the results of earlier iterations, for the agents of later ones.
//!
//! It is written again from the ledger after each iteration, so edits by an agent have no effect. git ignores it
//! through `info/exclude`; the user's `.gitignore` is not changed.

use std::fs;
use std::path::Path;

use swarm_state::contract::{HEADING, ProgressEntry};
use swarm_state::ledger::Iteration;

use super::run::LoopRun;
use crate::error::{Error, Result, failed};
use crate::git;

/// Its path in the worker's directory.
pub(crate) const LOOP_PROGRESS_FILE: &str = ".swarm/ralph-progress.md";

/// The permissions of the file, and of git's list of ignored files.
const PROGRESS_MODE: u32 = 0o600;
const EXCLUDE_MODE: u32 = 0o644;

/// Refuses a directory whose `.swarm` is swarm's own.
pub(crate) fn check(cwd: &Path, root: &Path) -> Result<()> {
    let own = crate::paths::resolve(&cwd.join(".swarm"));
    if own != crate::paths::resolve(root) {
        return Ok(());
    }
    let message = format!("the progress file would be in swarm's own directory, {}", root.display());
    Err(Error::invalid(message).hint("use another directory, or --worktree"))
}

pub(super) async fn begin(loop_run: &LoopRun) -> Result<()> {
    check(&loop_run.cwd, &loop_run.root)?;
    loop_run.exclude(LOOP_PROGRESS_FILE).await?;
    loop_run.write_progress_text(HEADING)
}

/// Removes the file. True if it existed.
pub(crate) fn forget(cwd: &Path) -> bool {
    let gone = fs::remove_file(cwd.join(LOOP_PROGRESS_FILE)).is_ok();
    // This removes only an empty directory.
    let _ = fs::remove_dir(cwd.join(".swarm"));
    gone
}

impl LoopRun {
    /// Lets git ignore a file of swarm in the agent's tree.
    pub(super) async fn exclude(&self, file: &str) -> Result<()> {
        let Some((path, text)) = git::exclude_text(&self.cwd, &format!("**/{file}")).await? else {
            return Ok(());
        };
        let write =
            self.tree_files().put(&crate::paths::resolve(&path), text.as_bytes(), EXCLUDE_MODE, false);
        write.map_err(|e| failed("write", &path, e))
    }

    fn write_progress_text(&self, text: &str) -> Result<()> {
        let path = self.cwd.join(LOOP_PROGRESS_FILE);
        let write = self.tree_files().put(&path, text.as_bytes(), PROGRESS_MODE, false);
        write.map_err(|e| failed("write", &path, e))
    }

    /// The text up to and including an iteration.
    pub(super) fn progress(&self, up_to: u32) -> String {
        let entries = (1..=up_to).filter_map(|n| self.read_iteration(n));
        entries.filter_map(|it| part(&it)).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn write_progress(&self, up_to: u32) -> Result<()> {
        // If the agent removed the directory, do not make it again: the next iteration reports that it is gone.
        if !self.cwd.is_dir() {
            return Ok(());
        }
        self.write_progress_text(&format!("{HEADING}\n{}", self.progress(up_to)))
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
