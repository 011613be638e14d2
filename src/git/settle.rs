//! Finishes or removes a worktree whose daemon died while making it.
//!
//! git does not die with its parent, so it may still run. Afterwards the worktree is either complete or incomplete.
//! An incomplete one is removed; no agent was ever in it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use swarm_state::model::Worktree;
use tokio::time::{Instant, sleep};

use super::lock_for;
use super::repo::{Repo, same_path};
use super::run::{LONG_TIMEOUT, git_patient};
use crate::error::{Error, ErrorCode, Result};
use crate::procs;

/// How often to check whether git still runs.
const SETTLE_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Waits for git. True if the worktree is complete. Otherwise it is removed, except perhaps its branch, and must be
/// made again. Fails with [`ErrorCode::Timeout`] if git runs for too long, else with git's message.
pub(crate) async fn settle_worktree(wt: &Worktree) -> Result<bool> {
    let repo = Repo::find(&wt.base_repo).await?;
    let lock = lock_for(&repo.common);
    let _guard = lock.lock().await;
    let start = Instant::now();
    while procs::find("git", &[b"add", wt.path.as_os_str().as_bytes()]).is_some() {
        if start.elapsed() > LONG_TIMEOUT {
            let text = format!("git is still making worktree '{}'", wt.path.display());
            return Err(Error::new(ErrorCode::Timeout, text));
        }
        sleep(SETTLE_POLL_INTERVAL).await;
    }
    let listed = repo.worktrees().await?;
    let Some(known) = listed.iter().find(|known| same_path(&known.path, &wt.path)) else {
        return Ok(false);
    };
    if !known.unfinished && repo.refuse_stranger(wt).await.is_ok() {
        return Ok(true);
    }
    // `-f -f`, because git locks a worktree while it makes it.
    let args = [OsStr::new("worktree"), "remove".as_ref(), "-f".as_ref(), "-f".as_ref(), wt.path.as_os_str()];
    let said = git_patient(&repo.main, LONG_TIMEOUT, &args).await?;
    let what = format!("cannot remove the unfinished worktree '{}'", wt.path.display());
    said.checked(what).map(|_| false)
}
