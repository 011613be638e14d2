//! Removes a worktree once no process of the worker uses it.
//!
//! A process that an agent started and detached (a server, a file watcher) outlives the agent of a plain worker on
//! purpose. Without its directory its output would be lost. It is found by the environment that the worker gave it.
//! Not here: ending such processes, which is a person's decision.

use std::path::Path;
use std::time::Duration;

use swarm_state::model::{WorkerName, Worktree};
use swarm_state::removal::RemovalCommand;

use crate::daemon::messages::WorktreeRemoval;
use crate::daemon::run::context::RunContext;
use crate::error::{Error, Result};
use crate::git;
use crate::procs::{self, Proc};

/// How often processes are checked again, and the interval: processes that are ending are gone by then.
const MAX_PROCESS_CHECKS: usize = 5;
const PROCESS_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Removes a worktree as [`git::remove_worktree`] does. Fails in addition with a conflict while processes of the worker
/// use the worktree.
pub(crate) async fn remove(
    context: &RunContext,
    worktree: &Worktree,
    removal: WorktreeRemoval,
) -> Result<git::Removed> {
    let mut left = processes_in(context, &worktree.path).await;
    for _ in 0..MAX_PROCESS_CHECKS {
        if left.is_empty() {
            let removed = git::remove_worktree(worktree, removal.permission).await;
            return removed.map_err(|error| refused(error, worktree, removal.command, &context.name));
        }
        tokio::time::sleep(PROCESS_CHECK_INTERVAL).await;
        left = processes_in(context, &worktree.path).await;
    }
    let (name, tree) = (&context.name, worktree.path.display());
    let who: Vec<String> = left.iter().map(|proc| format!("{} ({})", proc.pid, proc.comm)).collect();
    let pids: Vec<String> = left.iter().map(|proc| proc.pid.to_string()).collect();
    let message = format!("processes of worker '{name}' still use worktree '{tree}': {}", who.join(", "));
    Err(Error::conflict(message).hint(format!("kill {}", pids.join(" "))))
}

/// The worker's processes that use its worktree.
async fn processes_in(context: &RunContext, tree: &Path) -> Vec<Proc> {
    let marks = context.marks().map(|(key, value)| format!("{key}={value}").into_bytes());
    let tree = tree.to_owned();
    tokio::task::spawn_blocking(move || procs::marked_in(&tree, &marks)).await.unwrap_or_default()
}

/// The error of a removal, with the command that removes the worktree anyway.
pub(crate) fn refused(
    error: git::RemoveError,
    worktree: &Worktree,
    command: RemovalCommand,
    name: &WorkerName,
) -> Error {
    error.into_error(&worktree.path, |refusal| Some(refusal.command(command, name)))
}

/// A line about the ignored files that were deleted with a worktree; `None` if there were none.
pub(crate) fn ignored_note(removed: &git::Removed) -> Option<String> {
    let ignored = &removed.ignored;
    (!ignored.is_empty()).then(|| format!("deleted the worktree's ignored files: {}", ignored.summary()))
}
