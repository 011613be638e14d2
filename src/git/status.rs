//! The uncommitted changes of a directory, for the Stop hook of an agent that works on a task list, and for the start
//! of its loop in a worktree.

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
