//! The uncommitted changes of a directory, for the Stop hook of an agent that works on a task list.

use std::path::Path;

use super::run::ask;
use crate::error::Result;

/// The output of `git status --porcelain` for a directory and everything below it.
///
/// # Errors
/// When git fails, as outside of a repository.
pub(crate) async fn status(dir: &Path) -> Result<String> {
    let args = ["--no-optional-locks", "status", "--porcelain", "--ignore-submodules=none", "--", "."];
    Ok(String::from_utf8_lossy(ask(dir, "cannot read the status", &args).await?.bytes()).into_owned())
}
