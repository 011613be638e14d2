//! Decides for the stories of a task list that run at the same time (`--jobs`).
//!
//! Each story has a worker of its own, in a worktree of its own: a loop that is restricted to the story. The
//! integration branch has the list. A story is done there once its branch was merged, so a story can start when the
//! stories that it depends on were merged. The coordinator in the binary carries out one step after the other and then
//! requests the next. It keeps no state: after a crash the same facts lead to the same step.

use std::collections::BTreeMap;

use super::{Story, TaskList};
use crate::model::WorkerName;

/// How many characters of a worker's name are from its story and its coordinator; the rest is for a number.
const NAME_CHARS: usize = WorkerName::MAX_NAME_BYTES - 4;

/// The limits of `--jobs` and `--max-in-review`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelLimits {
    /// The most stories that run at the same time; at least 1.
    pub jobs: usize,
    /// No new story starts while this many wait for a review; at least 1.
    pub max_in_review: Option<usize>,
}

/// The state of a story's worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// Its loop is live or paused.
    Working {
        /// The story waits for a review.
        in_review: bool,
    },
    /// Its loop has ended, and the story is approved in its worktree.
    Approved,
    /// Its loop has ended and must run again: the story was sent back, the worker was lost, or belongs to an earlier
    /// list.
    Again,
    /// Its loop has ended without an approved story, or its branch cannot be merged; the reason.
    Failed(String),
}

/// The next action of the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParallelStep {
    /// Merge the branch of this story, or send the story back.
    Merge(String),
    /// Start the worker of this story, in its old worktree if it has one.
    Spawn(String),
    /// Wait until a worker changes.
    Wait,
    /// Every story was merged.
    Finished,
    /// Stories are left, but none can run; a reason for each of them.
    Stuck(Vec<String>),
}

/// Chooses the next action. `list` is the list of the integration branch; `children` has the workers by story. A merge
/// comes first, so that new stories start from the newest state of the integration branch.
pub fn next_step(
    list: &TaskList,
    children: &BTreeMap<String, ChildState>,
    limits: ParallelLimits,
    skip_review: bool,
) -> ParallelStep {
    let mut open: Vec<&Story> = list.stories().iter().filter(|story| !story.is_done(skip_review)).collect();
    open.sort_by(|one, other| one.priority.total_cmp(&other.priority));
    let is_approved = |story: &&&Story| children.get(&story.id) == Some(&ChildState::Approved);
    if let Some(story) = open.iter().find(is_approved) {
        return ParallelStep::Merge(story.id.clone());
    }
    let working = children.values().filter(|child| matches!(child, ChildState::Working { .. })).count();
    let in_review =
        children.values().filter(|child| **child == ChildState::Working { in_review: true }).count();
    if working < limits.jobs {
        let is_again = |story: &&&Story| children.get(&story.id) == Some(&ChildState::Again);
        let can_start = |story: &&&Story| list.open_dependencies(story, skip_review).is_empty();
        if let Some(story) = open.iter().filter(is_again).find(can_start) {
            return ParallelStep::Spawn(story.id.clone());
        }
        let is_free = limits.max_in_review.is_none_or(|max| in_review < max);
        let ready = list.ready(skip_review).into_iter().map(|(_, story)| story);
        let mut new = ready.filter(|story| is_free && !children.contains_key(&story.id));
        if let Some(story) = new.next() {
            return ParallelStep::Spawn(story.id.clone());
        }
    }
    match (working, open.as_slice()) {
        (1.., _) => ParallelStep::Wait,
        (0, []) => ParallelStep::Finished,
        (0, left) => {
            ParallelStep::Stuck(left.iter().map(|story| why(list, story, children, skip_review)).collect())
        }
    }
}

fn why(list: &TaskList, story: &Story, children: &BTreeMap<String, ChildState>, skip_review: bool) -> String {
    let id = &story.id;
    if let Some(ChildState::Failed(why)) = children.get(id) {
        return format!("{id} failed: {why}");
    }
    let needed = list.open_dependencies(story, skip_review);
    match needed.is_empty() {
        true => format!("{id} was not started: {}", list.blocked_because()),
        false => format!("{id} was not started: it depends on {}", needed.join(", ")),
    }
}

/// The names of the stories' workers by story: `checkout-US-002`. Characters that a name cannot have become `-`.
pub fn child_names(coordinator: &WorkerName, list: &TaskList) -> BTreeMap<String, WorkerName> {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' };
    let mut names: BTreeMap<String, WorkerName> = BTreeMap::new();
    for story in list.stories() {
        let base: String =
            format!("{coordinator}-{}", story.id).chars().map(legal).take(NAME_CHARS).collect();
        let numbered = (2..).map(|n| format!("{base}-{n}"));
        let free = std::iter::once(base.clone())
            .chain(numbered)
            .filter_map(|text| WorkerName::new(&text).ok())
            .find(|name| !names.values().any(|known| known == name));
        names.extend(free.map(|name| (story.id.clone(), name)));
    }
    names
}

#[cfg(test)]
mod tests;
