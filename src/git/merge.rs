//! Merges the branches of stories into the integration branch of `--jobs`.
//!
//! Only for worktrees that swarm made. A merge is prepared without a commit, so that the branch moves only when its
//! result was checked, and a crash in between leaves a merge that can be undone. The committer is the one of the user's
//! configuration. Hooks of the repository do not run: they are for the commits of people and agents.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use swarm_state::model::WorkerName;

use super::run::{LONG_TIMEOUT, SHORT_TIMEOUT, ask, git, git_patient};
use super::{head_commit, make_worker_branch};
use crate::error::Result;

/// Makes the branch of a story's worker at the commit that is checked out.
pub(crate) async fn make_story_branch(tree: &Path, branch: &str, worker: &WorkerName) -> Result<()> {
    make_worker_branch(tree, branch, &head_commit(tree).await?.unwrap_or_default(), worker).await
}

/// Merges a commit into the branch that is checked out, without a commit. Returns the files in conflict. Fails with
/// git's message if it cannot merge at all. Nothing was changed then.
pub(crate) async fn begin_merge(tree: &Path, commit: &str) -> Result<Vec<String>> {
    let args = ["merge", "--no-ff", "--no-commit", "--no-verify", "--quiet", commit];
    let said = git_patient(tree, LONG_TIMEOUT, &args).await?;
    let conflicts: Vec<String> = ask(tree, "cannot list conflicts", &UNMERGED).await?.names().collect();
    if conflicts.is_empty() { said.checked("cannot merge").map(|_| conflicts) } else { Ok(conflicts) }
}

const UNMERGED: [&str; 5] = ["diff", "--name-only", "--diff-filter=U", "-z", "--relative"];

/// The text of a file in a commit, empty if the commit does not have it. `file` is relative to `tree`.
pub(crate) async fn text_at(tree: &Path, commit: &str, file: &str) -> Result<String> {
    let said = git(tree, SHORT_TIMEOUT, &["cat-file", "blob", &format!("{commit}:./{file}")]).await?;
    Ok(if said.ok { String::from_utf8_lossy(said.bytes()).into_owned() } else { String::new() })
}

/// The last common commit of `HEAD` and another commit; `None` if there is none.
pub(crate) async fn merge_base(tree: &Path, commit: &str) -> Result<Option<String>> {
    let said = git(tree, SHORT_TIMEOUT, &["merge-base", "HEAD", commit]).await?;
    Ok(said.ok.then(|| said.text()))
}

/// Adds a file to the next commit, also a file in conflict.
pub(crate) async fn stage(tree: &Path, file: &str) -> Result<()> {
    run(tree, "cannot stage a file", &["add", "--force", "--", file]).await
}

/// Whether a merge has begun and was not committed.
pub(crate) async fn is_merging(tree: &Path) -> Result<bool> {
    Ok(git(tree, SHORT_TIMEOUT, &["rev-parse", "--quiet", "--verify", "MERGE_HEAD"]).await?.ok)
}

/// Undoes a merge that was begun: all tracked files are again as in the last commit.
pub(crate) async fn undo_merge(tree: &Path) -> Result<()> {
    run(tree, "cannot undo the merge", &["reset", "--quiet", "--hard", "HEAD"]).await
}

/// Commits a merge that was begun. Then all tracked files are as in this commit.
pub(crate) async fn finish_merge(tree: &Path, message: &str) -> Result<()> {
    let args = ["commit", "--quiet", "--no-verify", "--allow-empty", "--cleanup=verbatim", "-m", message];
    run(tree, "cannot commit the merge", &args).await?;
    undo_merge(tree).await
}

/// Commits all changes and untracked files of a worktree; with `file`, only that file.
pub(crate) async fn commit_all(tree: &Path, message: &str, file: Option<&str>) -> Result<()> {
    run(tree, "cannot stage the changes", &["add", "--all", "--", file.unwrap_or(".")]).await?;
    // A change that git cannot stage, such as one in a submodule, leaves nothing to commit.
    let mut args = vec!["commit", "--quiet", "--no-verify", "--allow-empty", "-m", message];
    args.extend(file.map(|_| "--"));
    args.extend(file);
    run(tree, "cannot commit", &args).await
}

/// The changes of tracked files, as `git status --porcelain` lists them; with `all`, also the untracked files.
pub(crate) async fn uncommitted(tree: &Path, all: bool) -> Result<String> {
    let files = if all { "--untracked-files=normal" } else { "--untracked-files=no" };
    Ok(ask(tree, "cannot read the status", &["status", "--porcelain", files]).await?.text())
}

/// The untracked files that git does not ignore.
pub(crate) async fn untracked(tree: &Path) -> Result<BTreeSet<PathBuf>> {
    let args = ["ls-files", "--others", "--exclude-standard", "-z"];
    let said = ask(tree, "cannot list untracked files", &args).await?;
    let files = said.bytes().split(|byte| *byte == 0).filter(|file| !file.is_empty());
    Ok(files.map(|file| tree.join(OsString::from_vec(file.to_vec()))).collect())
}

/// The branch that is checked out; `HEAD` if none is.
pub(crate) async fn current_branch(tree: &Path) -> Result<String> {
    Ok(ask(tree, "cannot read the branch", &["rev-parse", "--abbrev-ref", "HEAD"]).await?.text())
}

/// The directory of a worktree below `.git/worktrees`.
pub(crate) async fn git_dir(tree: &Path) -> Result<PathBuf> {
    Ok(ask(tree, "cannot find the repository", &["rev-parse", "--absolute-git-dir"]).await?.path())
}

/// How many commits in `HEAD` of a worktree, and not in `from`, have this subject.
pub(crate) async fn count_subjects(tree: &Path, from: &str, subject: &str) -> Result<usize> {
    let range = format!("{from}..HEAD");
    let said = ask(tree, "cannot read the log", &["log", "--format=%s", &range, "--"]).await?;
    Ok(said.text().lines().filter(|line| *line == subject).count())
}

/// Deletes a branch that is merged into the one checked out in `tree`. Otherwise the branch stays, and the
/// error is git's message.
pub(crate) async fn delete_merged(tree: &Path, branch: &str) -> Result<()> {
    run(tree, "cannot delete a branch", &["branch", "--quiet", "-d", "--", branch]).await
}

async fn run(tree: &Path, what: &str, args: &[&str]) -> Result<()> {
    git_patient(tree, LONG_TIMEOUT, args).await?.checked(what).map(drop)
}
