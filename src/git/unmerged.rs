//! The changes that are not merged or not committed: for the morning view, for the Stop hook of an agent that works on
//! a task list, and for the start of its loop in a worktree.

use std::path::Path;

use swarm_state::model::Worktree;
use swarm_state::morning::UnmergedWork;

use super::run::ask;
use crate::error::Result;

/// Returns the commits of a worktree's branch that the HEAD of its repository does not have, and its uncommitted files.
/// Ignored files do not count. Fails when git fails, as for a branch that was deleted.
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

/// The output of `git status --porcelain` for a directory and everything below it. Fails outside of a repository.
pub(crate) async fn status(dir: &Path) -> Result<String> {
    let args = ["--no-optional-locks", "status", "--porcelain", "--ignore-submodules=none", "--", "."];
    Ok(String::from_utf8_lossy(ask(dir, "cannot read the status", &args).await?.bytes()).into_owned())
}

/// Those of `files`, relative to `dir`, that are not in the last commit as they are now. Missing files do not count,
/// and outside of a repository none does.
pub(crate) async fn uncommitted_of(dir: &Path, files: &[String]) -> Vec<String> {
    let mut found = vec![];
    for file in files.iter().filter(|file| dir.join(file).exists()) {
        let args = ["--literal-pathspecs", "status", "--porcelain", "--ignored", "--", file];
        let said = ask(dir, "cannot read the status", &args).await;
        found.extend(said.is_ok_and(|said| !said.text().is_empty()).then(|| file.clone()));
    }
    found
}
