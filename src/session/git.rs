//! What a session loop does with git.

use std::path::Path;
use std::time::Duration;

use swarm_state::session::DO_IT_FILE;

use crate::error::{Error, Result};
use crate::git;

/// How the working tree looks, as a text; `None` when that is not known in time.
pub(super) fn tree_of(project: &Path, scratch: &Path, limit: Duration) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async { tokio::time::timeout(limit, git::tree(project, scratch)).await.ok()?.ok()? })
}

pub(super) fn has_branch(root: &Path, branch: &str) -> Result<Option<bool>> {
    block_on(git::has_branch(root, branch))
}

/// Makes a branch and checks it out.
pub(super) fn make_branch(root: &Path, branch: &str) -> Result<()> {
    block_on(git::make_branch(root, branch))
}

/// Tells git to overlook a state file: it is this session's alone.
pub(super) fn overlook(root: &Path, state_file: &Path) {
    let Some(name) = state_file.file_name().and_then(|name| name.to_str()) else { return };
    let is_do_it = name == DO_IT_FILE;
    let pattern =
        if is_do_it { "**/.claude/do-it-ralph.local.md" } else { "**/.claude/ralph-loop.*.local.md" };
    // A repository that cannot be told shows one file more.
    let _ = block_on(git::exclude(root, pattern));
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| Error::system("cannot start", e))?.block_on(work)
}
