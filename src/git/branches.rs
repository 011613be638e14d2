//! Finds and makes a branch, at the user's request.
//!
//! Session loops use it. It checks nothing out.

use std::path::Path;

use super::repo::{Repo, check_branch};
use super::run::{SHORT_TIMEOUT, ask, git};
use crate::error::Result;

/// Whether the branch exists; `None` if `dir` is not in a repository.
///
/// # Errors
/// git's message, for example if the name conflicts with another branch.
pub(crate) async fn has_branch(dir: &Path, branch: &str) -> Result<Option<bool>> {
    if !git(dir, SHORT_TIMEOUT, &["rev-parse", "--git-dir"]).await?.ok {
        return Ok(None);
    }
    Repo::find(dir).await?.branch_exists(branch).await.map(Some)
}

pub(crate) async fn make_branch(dir: &Path, branch: &str) -> Result<()> {
    check_branch(dir, branch).await?;
    ask(dir, &format!("cannot make branch '{branch}'"), &["branch", "--", branch]).await.map(drop)
}
