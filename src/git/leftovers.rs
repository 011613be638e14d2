//! The git data for `doctor`: git's version, and branches of swarm's that belong to no worker.

use std::path::{Path, PathBuf};

use super::repo::Repo;
use super::run::{SHORT_TIMEOUT, ask, git};
use crate::error::Result;

/// A branch that swarm made and no worker has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leftover {
    /// The main working tree of its repository.
    pub repo: PathBuf,
    /// Its name, `swarm/agent`.
    pub branch: String,
    /// The worktree in which it is checked out.
    pub worktree: Option<PathBuf>,
}

/// The version of the installed git (`2.47.3`). Fails when git is not installed or does not respond.
pub(crate) async fn version() -> Result<String> {
    let said = ask(Path::new("/"), "cannot read git's version", &["--version"]).await?;
    Ok(said.text().trim_start_matches("git version ").to_owned())
}

/// The branches `swarm/NAME` that swarm made in the repository of `cwd`, except those that `is_known`. Only reads.
pub(crate) async fn leftovers(cwd: &Path, is_known: impl Fn(&str) -> bool) -> Result<Vec<Leftover>> {
    let Ok(repo) = Repo::find(cwd).await else { return Ok(vec![]) };
    let args = ["for-each-ref", "--format=%(refname:short)", "refs/heads/swarm/"];
    let listed = ask(&repo.main, "cannot list the branches", &args).await?.text();
    let mut found = vec![];
    for branch in listed.lines().filter(|branch| !is_known(branch)) {
        if !repo.has_made(branch).await? {
            continue;
        }
        let full = format!("refs/heads/{branch}");
        let tree = repo.worktrees().await?.into_iter().find(|tree| tree.branch.as_deref() == Some(&full));
        found.push(Leftover {
            repo: repo.main.clone(),
            branch: branch.to_owned(),
            worktree: tree.map(|tree| tree.path),
        });
    }
    Ok(found)
}

/// Whether `git branch -d` would delete a branch: the HEAD of the main working tree contains it.
pub(crate) async fn is_merged(repo: &Path, branch: &str) -> Result<bool> {
    let full = format!("refs/heads/{branch}");
    Ok(git(repo, SHORT_TIMEOUT, &["merge-base", "--is-ancestor", &full, "HEAD"]).await?.ok)
}
