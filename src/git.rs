//! Runs git: makes and removes worktrees, and takes snapshots of them. No other module runs git.
//!
//! The daemon's runs use it: a worker gets a worktree and a branch, which are removed later if nothing would be lost.
//! `swarm ralph archive` commits with it, and only the paths of the archive.
//! This module never uses `-D`, a stash, or a checkout or reset in a user's tree. It never uses `--force` that the
//! user did not request, and never removes anything while the repository is in a state that makes git misread it. One
//! exception: git removes a worktree with submodules only with `--force`. Right before that, swarm checks everything
//! in the worktree, its submodules included.
//!
//! [`merge`] also merges, commits, and undoes its merges, but only in worktrees that swarm made for `--jobs`.
//!
//! A function that changes something fails with git's message. One that answers a question fails only if git cannot be
//! run, and else answers no, none or nothing where git refuses, if its documentation does not say otherwise.
//!
//! The reflog of a branch that swarm made begins with [`MADE_BY`]. A branch without that line is the user's and is
//! kept when its worktree is removed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use swarm_state::ignored::IgnoredFiles;
use swarm_state::model::{WorkerName, Worktree};
use swarm_state::removal::{Losses, Permission, Refusal};
use swarm_state::spec::WorktreeSpec;

use crate::error::{Error, Result, failed};
use crate::paths::resolve;

mod apart;
mod clear;
mod ignored;
mod include;
mod leftovers;
mod listing;
mod losses;
mod merge;
mod own_paths;
mod repo;
mod run;
mod settle;
mod snapshot;
#[cfg(test)]
mod tests;
mod unmerged;

pub(crate) use apart::{check_out_apart, checkout_settings, put_back, top};
pub(crate) use clear::clear_snapshots;
pub(crate) use ignored::{exclude, exclude_text, ignored, tracked};
use include::move_included;
pub(crate) use leftovers::{Leftover, is_merged, leftovers, version};
pub(crate) use losses::losses;
pub(crate) use merge::{
    begin_merge, commit_all, count_subjects, current_branch, delete_merged, finish_merge, git_dir,
    is_merging, make_story_branch, merge_base, stage, text_at, uncommitted, undo_merge, untracked,
};
pub(crate) use own_paths::{PathsCommit, commit_days, commit_paths, identity, is_untracked};
use repo::{Repo, check_branch, same_path};
pub(crate) use repo::{has_branch, make_branch};
pub(crate) use run::is_below_ours;
use run::{LONG_TIMEOUT, SHORT_TIMEOUT, git, git_patient};
pub(crate) use settle::settle_worktree;
pub(crate) use snapshot::{
    INTERRUPTED, TreeSnapshot, changed_between, diff, diff_stat, nested, restore, snapshot, tree,
};
pub(crate) use unmerged::{status, uncommitted_of, unmerged};

/// The first line in the reflog of a branch that swarm made.
const MADE_BY: &str = "swarm: made for worker";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Created {
    pub worktree: Worktree,
    /// A note for the user: an existing branch was used.
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    pub path: PathBuf,
    /// A note for the user: why the branch was kept. `None` if it was deleted too.
    pub note: Option<String>,
    /// The ignored files that were deleted with it.
    pub ignored: IgnoredFiles,
}

/// Why a worktree was not removed. It still exists.
#[derive(Debug)]
pub(crate) enum RemoveError {
    /// Data would be lost that the user did not allow to delete.
    Refused(Box<Refusal>),
    Failed(Error),
}

impl From<Error> for RemoveError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl RemoveError {
    /// Converts it into an error about the worktree at `path`. `command` returns the command that deletes what was
    /// refused.
    pub(crate) fn into_error(self, path: &Path, command: impl FnOnce(&Refusal) -> Option<String>) -> Error {
        match self {
            Self::Failed(error) => error,
            Self::Refused(refusal) => {
                let advice = refusal.advice();
                let hint = match command(&refusal) {
                    Some(command) => format!("{advice}; or delete it: {command}"),
                    None => advice.to_owned(),
                };
                Error::conflict(refusal.message(path)).hint(hint)
            }
        }
    }
}

/// The branch of HEAD in a repository that receives the code of other machines.
pub(crate) const PUSHED_BRANCH: &str = "swarm-pushed";

/// Makes a worktree for a worker: by default `<repo>-worktrees/NAME` next to the main working tree, on the new branch
/// `swarm/NAME` from the HEAD of `cwd`. An existing branch of that name is used if it is not checked out anywhere.
/// After an error, everything that was made is removed again. Do not drop the future before it is done: the cleanup
/// would not run. `note` is called before with the worktree to be made, so that it can be saved for
/// [`settle_worktree`]. If it fails, nothing is made.
///
/// # Errors
/// Fails as `note` does. Fails with `ErrorCode::Invalid` outside of a repository, in one without a commit or with
/// `core.bare` set by accident, if the branch name is invalid or conflicts, or if the directory is not empty; with
/// `ErrorCode::Conflict` if the branch is checked out elsewhere; otherwise with `ErrorCode::System` and git's message.
pub(crate) async fn create_worktree(
    cwd: &Path,
    name: &WorkerName,
    spec: &WorktreeSpec,
    note: impl FnOnce(&Worktree) -> Result<()>,
) -> Result<Created> {
    let repo = Repo::find(cwd).await?;
    repo.refuse_flipped().await?;
    let head = first_commit(cwd).await?;
    let branch = spec.branch.clone().unwrap_or_else(|| format!("swarm/{name}"));
    check_branch(cwd, &branch).await?;
    let lock = lock_for(&repo.common);
    let _guard = lock.lock().await;
    let exists = repo.branch_exists(&branch).await?;
    if !exists {
        repo.refuse_shadowed(&branch).await?;
    }
    repo.refuse_checked_out(&branch).await?;
    let dir = resolve(&match &spec.dir {
        Some(dir) => cwd.join(dir),
        None => repo.default_dir()?.join(name.as_str()),
    });
    refuse_occupied(&dir)?;
    repo.refuse_registered(&dir).await?;
    note(&Worktree { path: dir.clone(), branch: branch.clone(), base_repo: repo.main.clone() })?;
    let undo = Undo { repo: &repo, dir: &dir, branch: &branch, head: &head, dirs: missing_dirs(&dir) };
    if !exists {
        make_worker_branch(&repo.main, &branch, &head, name).await?;
    }
    let args = [OsStr::new("worktree"), "add".as_ref(), dir.as_os_str(), branch.as_ref()];
    let said = git_patient(&repo.main, LONG_TIMEOUT, &args).await?;
    // Another machine pushes the branch before it starts the worker.
    let is_expected = exists && repo.branch_exists(PUSHED_BRANCH).await?;
    let reused = (exists && !is_expected).then(|| format!("branch '{branch}' already exists and is used"));
    if !said.ok {
        undo.run(!exists).await;
    }
    said.checked(format_args!("cannot make worktree '{}'", dir.display()))?;
    let path = fs::canonicalize(&dir).map_err(|e| failed("find worktree", &dir, e))?;
    let note = move_included(&repo.common, &branch, &path).or(reused);
    Ok(Created { worktree: Worktree { path, branch, base_repo: repo.main.clone() }, note })
}

/// Removes a worktree, and its branch if swarm made it and it is merged (`git branch -d`). If the directory is gone
/// already, removes git's entry for it.
///
/// # Errors
/// [`RemoveError::Refused`] if data would be lost that `permission` does not cover; `ErrorCode::Conflict` if it is
/// not the worktree that swarm made; `ErrorCode::System` with git's message for the rest. The worktree then still
/// exists.
pub(crate) async fn remove_worktree(wt: &Worktree, permission: Permission) -> Result<Removed, RemoveError> {
    let repo = Repo::find(&wt.base_repo).await?;
    repo.refuse_flipped().await?;
    let lock = lock_for(&repo.common);
    let _guard = lock.lock().await;
    let ignored = unregister(&repo, wt, permission).await?;
    if let Some(parent) = wt.path.parent().filter(|dir| dir.to_string_lossy().ends_with("-worktrees")) {
        // This removes only an empty directory.
        let _ = fs::remove_dir(parent);
    }
    let note = delete_branch(&repo, &wt.branch).await?;
    Ok(Removed { path: wt.path.clone(), note, ignored })
}

/// Checks what would be lost, and right after that removes the directory and git's entry. Returns the ignored files.
async fn unregister(repo: &Repo, wt: &Worktree, permission: Permission) -> Result<IgnoredFiles, RemoveError> {
    let mut has_submodules = false;
    loop {
        let losses = allowed_losses(repo, wt, permission).await?;
        let force = has_submodules || !losses.work.is_empty();
        let mut args = vec![OsStr::new("worktree"), "remove".as_ref()];
        args.extend(force.then_some(OsStr::new("--force")));
        args.push(wt.path.as_os_str());
        let said = git_patient(&repo.main, LONG_TIMEOUT, &args).await?;
        let is_gone = said.mentions("is not a working tree") && !wt.path.exists();
        if said.ok || is_gone {
            return Ok(losses.ignored);
        }
        // git refuses a clean worktree because of its submodules. Check again, then force.
        if !force && said.mentions("containing submodules") {
            has_submodules = true;
            continue;
        }
        let what = format!("cannot remove worktree '{}'", wt.path.display());
        return Ok(said.checked(what).map(|_| losses.ignored)?);
    }
}

/// Returns what would be lost if `permission` covers all of it.
async fn allowed_losses(repo: &Repo, wt: &Worktree, permission: Permission) -> Result<Losses, RemoveError> {
    let losses = if wt.path.exists() {
        repo.refuse_stranger(wt).await?;
        losses(&wt.path).await?
    } else {
        // The repositories of the submodules are not in the directory that is gone.
        let git_dir = repo.git_dir_of(&wt.path);
        let work = match git_dir {
            Some(git_dir) => losses::module_losses(&git_dir).await?,
            None => vec![],
        };
        Losses { work, ..Losses::default() }
    };
    losses.allow(permission).map_err(RemoveError::Refused)
}

/// Refuses a worktree in which data would be lost, as [`remove_worktree`] does. A missing directory holds nothing.
/// Fails with [`RemoveError::Refused`] if data would be lost, and with other errors if git fails.
pub(crate) async fn refuse_losses(wt: &Worktree, permission: Permission) -> Result<(), RemoveError> {
    if !wt.path.exists() {
        return Ok(());
    }
    losses(&wt.path).await?.allow(permission).map(drop).map_err(RemoveError::Refused)
}

/// Whether a ref or an id names a commit that exists.
pub(crate) async fn has_commit(repo: &Path, name: &str) -> Result<bool> {
    Ok(git(repo, SHORT_TIMEOUT, &["cat-file", "-e", &format!("{name}^{{commit}}")]).await?.ok)
}

/// The commit that is checked out in `path`; `None` in a repository without one.
pub(crate) async fn head_commit(path: &Path) -> Result<Option<String>> {
    let said = git(path, SHORT_TIMEOUT, &["rev-parse", "--verify", "HEAD^{commit}"]).await?;
    Ok(said.ok.then(|| said.text()))
}

async fn first_commit(cwd: &Path) -> Result<String> {
    let said = git(cwd, SHORT_TIMEOUT, &["rev-parse", "--verify", "HEAD^{commit}"]).await?;
    if said.ok {
        return Ok(said.text());
    }
    let text = format!("the repository at '{}' has no commit yet ({})", cwd.display(), said.complaint());
    Err(Error::invalid(text).hint("make one: git commit --allow-empty -m 'first commit'"))
}

/// Deletes a merged branch that swarm made. Otherwise returns why the branch is kept.
async fn delete_branch(repo: &Repo, branch: &str) -> Result<Option<String>> {
    if !repo.branch_exists(branch).await.unwrap_or(true) {
        return Ok(Some(format!("branch '{branch}' was already gone")));
    }
    if !repo.has_made(branch).await? {
        return Ok(Some(format!("branch '{branch}' was not made by swarm and is kept")));
    }
    // `-d` compares with HEAD, so this runs in the main working tree.
    let said = git_patient(&repo.main, SHORT_TIMEOUT, &["branch", "-d", "--", branch]).await?;
    Ok(match said.ok {
        true => None,
        false if said.mentions("not fully merged") => {
            Some(format!("branch '{branch}' is kept: it has unmerged commits"))
        }
        false => Some(format!("branch '{branch}' is kept: {}", said.complaint())),
    })
}

/// Makes a branch for a worker; fails if it exists by now. The start point is a commit and not a name, so git
/// configures no upstream and does not need `config.lock`.
async fn make_worker_branch(dir: &Path, branch: &str, head: &str, worker: &WorkerName) -> Result<()> {
    let (message, full) = (format!("{MADE_BY} {worker}"), format!("refs/heads/{branch}"));
    let args = ["update-ref", "--create-reflog", "-m", &message, &full, head, &"0".repeat(head.len())];
    let said = git_patient(dir, SHORT_TIMEOUT, &args).await?;
    said.checked(format_args!("cannot make branch '{branch}'")).map(drop)
}

fn refuse_occupied(dir: &Path) -> Result<()> {
    let Ok(found) = fs::symlink_metadata(dir) else { return Ok(()) };
    let empty = found.is_dir() && fs::read_dir(dir).is_ok_and(|mut list| list.next().is_none());
    if empty {
        return Ok(());
    }
    let text = format!("'{}' already exists and is not an empty directory", dir.display());
    Err(Error::invalid(text).hint("remove it, or choose another with --worktree-dir"))
}

/// `dir` and its missing parents, innermost first.
fn missing_dirs(dir: &Path) -> Vec<PathBuf> {
    dir.ancestors().take_while(|parent| !parent.exists()).map(Path::to_owned).collect()
}

/// Returns the lock that serializes worktree operations of a repository. git's own locks make a second one fail
/// instead of waiting.
fn lock_for(common: &Path) -> Arc<tokio::sync::Mutex<()>> {
    static LOCKS: LazyLock<Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>> =
        LazyLock::new(Mutex::default);
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    locks.entry(common.to_owned()).or_default().clone()
}

/// The data to undo an unfinished creation.
struct Undo<'a> {
    repo: &'a Repo,
    dir: &'a Path,
    branch: &'a str,
    head: &'a str,
    /// The missing directories that git makes, innermost first.
    dirs: Vec<PathBuf>,
}

impl Undo<'_> {
    /// Undoes the creation. Ignores errors: the error that led here is the one to report.
    async fn run(&self, made_branch: bool) {
        // `-f -f`, because git locks a worktree while it makes it. This call made everything in it.
        let args =
            [OsStr::new("worktree"), "remove".as_ref(), "-f".as_ref(), "-f".as_ref(), self.dir.as_os_str()];
        let registered = self.repo.worktrees().await.unwrap_or_default();
        if registered.iter().any(|known| same_path(&known.path, self.dir)) {
            let _ = git_patient(&self.repo.main, LONG_TIMEOUT, &args).await;
        }
        for dir in &self.dirs {
            let _ = fs::remove_dir(dir);
        }
        if made_branch {
            // Only while the branch is where it was made.
            let full = format!("refs/heads/{}", self.branch);
            let _ =
                git_patient(&self.repo.main, SHORT_TIMEOUT, &["update-ref", "-d", &full, self.head]).await;
        }
    }
}
