//! Checks the files of a task list before its loop starts.

use std::path::Path;

use swarm_state::tasks::TaskList;
use swarm_state::tasks::check::empty_parts;
use swarm_state::tasks::gate::{PRD_FILE, PROMPT_FILE, TASKS_FILE, TaskGate};
use swarm_state::tasks::review::invariants;
use swarm_state::tasks::selection::Selection;

use super::files::read_text;
use crate::error::{Error, Result};
use crate::git;
use crate::shell::quote;

/// Refuses a list with uncommitted files: a new worktree would not have them. The hint is the command to commit them.
pub(crate) async fn refuse_uncommitted_list(cwd: &Path, gate: &TaskGate) -> Result<()> {
    let files = [TASKS_FILE, PRD_FILE, PROMPT_FILE].map(|file| format!("{}/{file}", gate.dir));
    let found = git::uncommitted_of(cwd, &files).await;
    if found.is_empty() {
        return Ok(());
    }
    let dir = quote(&gate.dir);
    let message = format!("a new worktree would not have these uncommitted files: {}", found.join(", "));
    Err(Error::invalid(message)
        .hint(format!("commit them: git add {dir} && git commit -m 'Plan the task list' -- {dir}")))
}

/// Reads and checks the list before the loop starts. A list that no iteration could work on is an error too.
pub(crate) fn check_task_files(cwd: &Path, gate: &TaskGate) -> Result<TaskList> {
    let dir = cwd.join(&gate.dir);
    let init = "swarm ralph init --tasks";
    for file in [TASKS_FILE, PRD_FILE] {
        if !dir.join(file).is_file() {
            let message = format!("no such file: {}", dir.join(file).display());
            return Err(Error::invalid(message).hint(format!("to create the files of a task list: {init}")));
        }
    }
    let path = dir.join(TASKS_FILE);
    let check = format!("swarm ralph tasks check --ralph-dir {}", gate.dir);
    let refuse = |why: String| Error::invalid(format!("{}: {why}", path.display())).hint(check.clone());
    let text = read_text(&path).ok_or_else(|| refuse("it cannot be read as text".into()))?;
    let list = TaskList::parse(&text).map_err(|fault| refuse(fault.to_string()))?;
    if let Some(empty) = empty_parts(&list).into_iter().next() {
        let hint = match empty.story {
            None => "add stories, or let an agent plan them: swarm ralph plan".to_owned(),
            Some(_) => check,
        };
        return Err(Error::invalid(format!("{}: {}", path.display(), empty.message)).hint(hint));
    }
    if let Some(fault) = list.dependency_faults().first() {
        return Err(refuse(fault.to_string()));
    }
    if !gate.review.skip_review
        && let Some(broken) = invariants(&list, gate.review.review_cap).first()
    {
        return Err(refuse(broken.message.clone()));
    }
    match gate.select(&list) {
        Selection::Blocked => Err(refuse(gate.blocked_because(&list))),
        Selection::Work(..) | Selection::AllDone => Ok(list),
    }
}
