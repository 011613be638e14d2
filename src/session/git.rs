//! The git operations of session loops.

use std::path::Path;
use std::time::Duration;

use swarm_state::session::DO_IT_FILE;

use crate::git;
use crate::runtime::block_on;

/// Returns a fingerprint of the working tree; `None` when git does not return it in time.
pub(super) fn tree_of(project: &Path, scratch: &Path, limit: Duration) -> Option<String> {
    let tree = async { tokio::time::timeout(limit, git::tree(project, scratch)).await };
    let tree = block_on(tree);
    // The next stop may belong to another process.
    let _ = std::fs::remove_file(scratch);
    tree.ok()?.ok()?.ok()?
}

/// Excludes state files from git, since each belongs to one session only.
pub(super) fn exclude(root: &Path, state_file: &Path) {
    let Some(name) = state_file.file_name().and_then(|name| name.to_str()) else { return };
    let is_do_it = name == DO_IT_FILE;
    let pattern =
        if is_do_it { "**/.claude/do-it-ralph.local.md" } else { "**/.claude/ralph-loop.*.local.md" };
    // If the exclusion fails, git shows one more untracked file.
    let _ = block_on(git::exclude(root, pattern));
}
