//! Commits single paths at the user's request, and finds when they were committed.
//!
//! `swarm ralph archive` uses it. Changes of other files stay as they are, staged or not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::apart::top;
use super::run::{LONG_TIMEOUT, SHORT_TIMEOUT, ask, git, git_patient, git_with};
use crate::error::{Error, ErrorCode, Result};

/// Variables with the user's identity. git's other variables are not passed on.
const IDENTITY: [&str; 4] =
    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathsCommit {
    /// The short id of the new commit.
    Made(String),
    NoRepository,
    Ignored,
}

/// Commits the files at and below `paths`, which are absolute, and nothing else. Ignored files are left out. Fails with
/// git's message, for example during a merge, or without an identity.
pub(crate) async fn commit_paths(dir: &Path, paths: &[PathBuf], message: &str) -> Result<PathsCommit> {
    if !git(dir, SHORT_TIMEOUT, &["rev-parse", "--is-inside-work-tree"]).await?.ok {
        return Ok(PathsCommit::NoRepository);
    }
    let top = top(dir).await?;
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = ask(&top, "git ls-files", &with_paths(&list, paths)).await?;
    let mut files: Vec<PathBuf> =
        listed.bytes().split(|byte| *byte == 0).map(|file| PathBuf::from(OsStr::from_bytes(file))).collect();
    files.retain(|file| !file.as_os_str().is_empty());
    files.dedup();
    if files.is_empty() {
        return Ok(PathsCommit::Ignored);
    }
    // git refuses a tracked file in a directory that is ignored.
    let added = git_patient(&top, LONG_TIMEOUT, &with_paths(&["add", "--force"], &files)).await?;
    if !added.ok {
        return Err(Error::new(ErrorCode::System, added.complaint()));
    }
    let identity = IDENTITY.map(|key| (key, std::env::var_os(key)));
    let env: Vec<(&str, &OsStr)> =
        identity.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))).collect();
    let args = with_paths(&["commit", "--quiet", "--only", "-m", message], &files);
    let said = git_with(&top, LONG_TIMEOUT, &env, &[], &args).await?;
    if !said.ok {
        drop(git(&top, SHORT_TIMEOUT, &with_paths(&["reset", "--quiet"], &files)).await);
        return Err(Error::new(ErrorCode::System, said.complaint()));
    }
    let id = ask(&top, "git rev-parse", &["rev-parse", "--short", "HEAD"]).await?;
    Ok(PathsCommit::Made(id.text()))
}

/// The name and the address for commits in a directory; `None` if the user has set none.
pub(crate) async fn identity(dir: &Path) -> Option<(String, String)> {
    let get = async |key| {
        let said = git(dir, SHORT_TIMEOUT, &["config", "--get", key]).await.ok()?;
        Some(said.text()).filter(|text| said.ok && !text.is_empty())
    };
    Some((get("user.name").await?, get("user.email").await?))
}

/// Whether git tracks no file of a directory, or the directory is in no repository.
pub(crate) async fn is_untracked(dir: &Path, path: &Path) -> bool {
    let listed = git(dir, SHORT_TIMEOUT, &with_paths(&["ls-files"], &[path.to_owned()])).await;
    listed.is_ok_and(|listed| !listed.ok || listed.text().is_empty())
}

/// The days of the first and the last commit that changed one of `paths`, `2026-01-15`; `None` if there is none.
pub(crate) async fn commit_days(dir: &Path, paths: &[PathBuf]) -> Result<Option<(String, String)>> {
    let said = git(dir, SHORT_TIMEOUT, &with_paths(&["log", "--format=%cs"], paths)).await?;
    let text = if said.ok { said.text() } else { String::new() };
    let mut days = text.lines().filter(|line| !line.is_empty());
    let last = days.next().map(str::to_owned);
    let first = days.next_back().map(str::to_owned).or_else(|| last.clone());
    Ok(first.zip(last))
}

/// A command that reads its paths literally, not as patterns.
fn with_paths(command: &[&str], paths: &[PathBuf]) -> Vec<OsString> {
    let words = ["--literal-pathspecs"].iter().chain(command).chain(&["--"]).map(OsString::from);
    words.chain(paths.iter().map(OsString::from)).collect()
}
