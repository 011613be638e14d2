//! Refuses to change a task list that a loop works on.
//!
//! The daemon's list of workers decides, since an agent can delete `.ralph-active`. The file only shows the loops of
//! other swarms and of other programs. Used by the verbs that write a list, and by [`crate::archive`].

use swarm_state::model::Status;

use crate::client::connect::{QUICK_TIMEOUT, connect, connect_existing};
use crate::error::{Error, ErrorCode, Result};
use crate::paths::{Paths, resolve};
use crate::protocol::{Call, Empty, Listing, WorkerView};
use crate::shell::quote;
use crate::task_files::TaskDir;

/// The change that a command is about to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListChange {
    /// An edit, which is permitted while the loop is paused.
    Edit,
    /// The list is replaced, so that a paused loop could not continue.
    Replace,
}

/// Refuses to change the list in `place` while a loop works on it. Starts the daemon if it does not run and there are
/// records of workers: one of them may be a loop whose agent still works. Returns a warning if the list is replaced
/// while a loop works on a copy of it in a worktree.
///
/// # Errors
/// With the name of the worker and how to continue. When the daemon does not answer.
pub(crate) async fn refuse_used_list(place: &TaskDir, change: ListChange) -> Result<Option<String>> {
    let paths = Paths::from_env()?;
    let has_records = paths.workers_dir().read_dir().is_ok_and(|mut entries| entries.next().is_some());
    let client = if has_records {
        Some(connect(&(&paths).into()).await?)
    } else {
        connect_existing(&(&paths).into()).await?
    };
    let workers = match client {
        Some(mut client) => client.call::<Listing>(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?.workers,
        None => vec![],
    };
    if let Some(user) = workers.iter().find(|worker| uses(worker, place, change)) {
        return Err(refusal(user, place, change));
    }
    place.refuse_marker()?;
    let user = workers.iter().find(|worker| change == ListChange::Replace && has_copy(worker, place));
    Ok(user.map(|user| {
        format!("worker '{}' works on a copy of this list, in {}", user.name, user.cwd.display())
    }))
}

/// Whether a loop that has not ended works in a worktree of the list's repository, on the same list.
fn has_copy(worker: &WorkerView, place: &TaskDir) -> bool {
    let original = worker.worktree.as_ref().zip(worker.tasks.as_ref());
    let original = original.map(|(worktree, tasks)| worktree.base_repo.join(&tasks.dir));
    let is_open = worker.status.is_live() || matches!(worker.status, Status::Paused | Status::Lost);
    is_open && original.is_some_and(|original| resolve(&original) == resolve(&place.dir))
}

fn uses(worker: &WorkerView, place: &TaskDir, change: ListChange) -> bool {
    let is_in_use = match worker.status {
        Status::Paused => change == ListChange::Replace,
        status => status.is_live() || status == Status::Lost,
    };
    let is_dir = |dir: &String| resolve(&worker.cwd.join(dir)) == resolve(&place.dir);
    is_in_use && worker.tasks.as_ref().is_some_and(|tasks| is_dir(&tasks.dir))
}

fn refusal(worker: &WorkerView, place: &TaskDir, change: ListChange) -> Error {
    let (name, list) = (quote(&worker.name), place.shown(""));
    let state = match worker.status {
        Status::Paused => "is paused and not finished with",
        Status::Lost => "is lost and not finished with",
        _ => "works on",
    };
    let text = format!("worker '{}' {state} the task list '{list}'", worker.name);
    let hint = match (change, worker.status) {
        (ListChange::Edit, status) if status.is_live() => {
            format!("swarm ralph pause {name}, or swarm kill {name}; then retry")
        }
        _ => format!("to end the loop: swarm kill {name}; then retry"),
    };
    Error::new(ErrorCode::Conflict, text).hint(hint)
}
