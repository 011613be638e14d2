//! A project's branch: whether it is there, and making it where the user asked for that.
//!
//! Used by the loops within sessions. Nothing is checked out here.

use std::path::Path;

use super::repo::{Repo, check_branch};
use super::run::{SHORT, ask, git};
use crate::error::Result;

/// Whether there is such a branch; `None` when `dir` is in no repository.
///
/// # Errors
/// git's own words; a name that clashes with another branch's.
pub async fn has_branch(dir: &Path, branch: &str) -> Result<Option<bool>> {
    if !git(dir, SHORT, &["rev-parse", "--git-dir"]).await?.ok {
        return Ok(None);
    }
    Repo::find(dir).await?.branch_exists(branch).await.map(Some)
}

/// Makes it at the commit that is checked out.
///
/// # Errors
/// git's own words.
pub async fn make_branch(dir: &Path, branch: &str) -> Result<()> {
    check_branch(dir, branch).await?;
    ask(dir, &format!("cannot make branch '{branch}'"), &["branch", "--", branch]).await.map(drop)
}
