//! Decides for the Stop hook whether an agent that works on a task list may end (§5b).
//!
//! The checks run in the document's order, and the first fault blocks. Used by `swarm hook stop`. The daemon does not
//! rely on it, since an agent can edit `.ralph-active` and many CLIs have no hooks ([`super::enforce`]).

use super::TaskList;
use super::marker::RalphMarker;
use super::review::{invariants, transitions};

/// The facts that the hook collected.
#[derive(Clone, Copy, Debug)]
pub struct StopFacts<'a> {
    /// `.ralph-active`.
    pub marker: &'a RalphMarker,
    /// The path of the task list, for messages.
    pub tasks_file: &'a str,
    /// Its text, or why it cannot be read.
    pub tasks: Result<&'a str, &'a str>,
    /// The output of `git status --porcelain`; `None` outside of a repository, or if git did not answer.
    pub status: Option<&'a str>,
    /// The files of the list that are as they were when the iteration started: no work of the agent.
    pub untouched: &'a [String],
}

/// The decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopCheck {
    /// The text with which the agent continues; `None` allows the stop.
    pub block: Option<String>,
    /// A line for the session's log.
    pub warning: Option<String>,
}

/// The largest number of uncommitted files that a message lists.
const MAX_UNCOMMITTED_FILES: usize = 20;

/// Decides.
pub fn stop_check(facts: StopFacts<'_>) -> StopCheck {
    let file = facts.tasks_file;
    let list = match facts.tasks.map(TaskList::parse) {
        Ok(Ok(list)) => list,
        Ok(Err(fault)) => {
            let message = format!("{file} is not a valid task list: {fault}. Fix it, then stop again.");
            return StopCheck::blocked(message);
        }
        Err(why) => {
            return StopCheck::blocked(format!("{file} {why}. Restore it: git checkout -- {file}"));
        }
    };
    if let Some(fault) = list.dependency_faults().first() {
        return StopCheck::blocked(format!("{file}: {fault}. Fix dependsOn."));
    }
    let RalphMarker { review_cap, iteration_mode, snapshot, story, .. } = facts.marker;
    let mut warning = None;
    if !facts.marker.skip_review {
        if let Some(broken) = invariants(&list, *review_cap).into_iter().next() {
            return StopCheck::blocked(broken.message);
        }
        match (snapshot, iteration_mode) {
            (Some(before), Some(mode)) => {
                let found = transitions(*mode, before, &list, *review_cap, story.as_deref());
                if let Some(broken) = found.violations.into_iter().next() {
                    return StopCheck::blocked(broken.message);
                }
            }
            (None, _) => warning = Some("preIterationSnapshot is missing"),
            (_, None) => warning = Some("iterationMode is missing"),
        }
    }
    let warning = warning.map(|what| format!("{what} in .ralph-active, so transitions were not checked"));
    StopCheck { block: facts.status.and_then(|status| uncommitted(file, status, facts.untouched)), warning }
}

impl StopCheck {
    fn blocked(message: String) -> Self {
        Self { block: Some(message), warning: None }
    }
}

/// Check 3: the text if files are not committed.
fn uncommitted(tasks_file: &str, status: &str, untouched: &[String]) -> Option<String> {
    // git prints paths relative to the repository, which may be above the project.
    let is_untouched = |line: &str| {
        let path = line.get(3..).unwrap_or_default();
        untouched.iter().any(|file| {
            path.strip_suffix(file.as_str()).is_some_and(|dir| dir.is_empty() || dir.ends_with('/'))
        })
    };
    let files: Vec<&str> =
        status.lines().filter(|line| !line.trim().is_empty() && !is_untouched(line)).collect();
    if files.is_empty() {
        return None;
    }
    let dir = tasks_file.strip_suffix("tasks.json").unwrap_or("ralph/");
    let mut text = format!(
        "There are uncommitted changes. Before you stop:\n\
         1. Update {dir}progress.txt with what was accomplished and what you learned.\n\
         2. Consider whether a lasting pattern belongs in CLAUDE.md or .claude/rules/.\n\
         3. Commit ALL changes, including progress.txt and tasks.json.\n\
         Uncommitted files (git status --porcelain):\n"
    );
    for line in files.iter().take(MAX_UNCOMMITTED_FILES) {
        text.push_str(line);
        text.push('\n');
    }
    if let Some(more) = files.len().checked_sub(MAX_UNCOMMITTED_FILES).filter(|more| *more > 0) {
        text.push_str(&format!("… and {more} more\n"));
    }
    Some(text)
}
