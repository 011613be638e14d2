//! Counts the work in a worktree that is not merged, for the morning view.

use std::path::Path;

use swarm_state::model::Worktree;
use swarm_state::morning::UnmergedWork;

use super::run::ask;
use crate::error::Result;

/// Returns the commits of a worktree's branch that the HEAD of its repository does not have, and its uncommitted files.
/// Ignored files do not count.
///
/// # Errors
/// When git fails, as for a branch that was deleted.
pub(crate) async fn unmerged(worktree: &Worktree) -> Result<UnmergedWork> {
    let range = format!("HEAD..refs/heads/{}", worktree.branch);
    let count = ["rev-list", "--count", &range, "--"];
    let commits = ask(&worktree.base_repo, "cannot count the commits", &count).await?.text();
    Ok(UnmergedWork {
        commits: commits.parse().unwrap_or_default(),
        uncommitted: uncommitted(&worktree.path).await?,
    })
}

/// The number of changed and new files of a worktree; 0 if it was removed.
async fn uncommitted(tree: &Path) -> Result<u64> {
    if !tree.exists() {
        return Ok(0);
    }
    let args =
        ["--no-optional-locks", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"];
    let listed = ask(tree, "cannot read the status", &args).await?;
    Ok(listed.bytes().split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).count() as u64)
}
