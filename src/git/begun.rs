//! A worktree whose making was begun by a daemon that died in it.
//!
//! git is no child that dies with its parent: it may still be at work. Once it is not, the tree is either
//! whole or half there, and half a tree goes: no agent was ever in it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use swarm_state::model::Worktree;
use tokio::time::{Instant, sleep};

use super::lock_for;
use super::repo::{Repo, same_path};
use super::run::{LONG, git_patient};
use crate::error::{Error, ErrorCode, Result};
use crate::procs;

/// How often it is looked whether git still works.
const LOOK: Duration = Duration::from_millis(200);

/// Brings the making of a worktree to an end. True when the worktree is whole; else it is to be made anew,
/// and nothing of it is left but perhaps its branch.
///
/// # Errors
/// [`ErrorCode::Timeout`] when a git is at work there for too long; [`ErrorCode::System`] with git's own
/// words.
pub async fn settle_worktree(wt: &Worktree) -> Result<bool> {
    let repo = Repo::find(&wt.base_repo).await?;
    let lock = lock_for(&repo.common);
    let _guard = lock.lock().await;
    let start = Instant::now();
    while procs::find("git", &[b"add", wt.path.as_os_str().as_bytes()]).is_some() {
        if start.elapsed() > LONG {
            let text = format!("git is still making worktree '{}'", wt.path.display());
            return Err(Error::new(ErrorCode::Timeout, text));
        }
        sleep(LOOK).await;
    }
    let listed = repo.worktrees().await?;
    let Some(known) = listed.iter().find(|known| same_path(&known.path, &wt.path)) else {
        return Ok(false);
    };
    if !known.unfinished && repo.refuse_stranger(wt).await.is_ok() {
        return Ok(true);
    }
    // Twice forced: git locks a worktree while it makes it.
    let args = [OsStr::new("worktree"), "remove".as_ref(), "-f".as_ref(), "-f".as_ref(), wt.path.as_os_str()];
    let said = git_patient(&repo.main, LONG, &args).await?;
    if said.ok {
        return Ok(false);
    }
    let text = format!("cannot remove the half-made worktree '{}': {}", wt.path.display(), said.complaint());
    Err(Error::new(ErrorCode::System, text))
}
