//! The task list as a gate of a loop: its options, the work of one iteration, and the result.

use serde::{Deserialize, Serialize};

use super::enforce::Enforced;
use super::selection::Selection;
use super::{IterationMode, ReviewOptions, ReviewStatus, Story, TaskList};
use crate::check_result::CheckResult;
use crate::model::is_default;
use crate::promise::Promise;

/// A gate that holds when every story is approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskGate {
    /// The directory with `tasks.json`, `prd.md` and `prompt.md`, relative to the worker's directory.
    pub dir: String,
    /// The rules of the reviews.
    #[serde(flatten)]
    pub review: ReviewOptions,
    /// The tag that an agent prints when it believes that every story is approved. The list alone decides.
    pub promise: Promise,
    /// The only story that the loop works on; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
}

impl TaskGate {
    /// The path of the list, relative to the worker's directory.
    pub fn file(&self) -> String {
        format!("{}/{TASKS_FILE}", self.dir)
    }

    /// The next work.
    pub fn select<'a>(&self, list: &'a TaskList) -> Selection<'a> {
        let skip_review = self.review.skip_review;
        let Some(id) = &self.story else { return list.select(skip_review) };
        let ready = list.ready(skip_review).into_iter().find(|(_, story)| story.id == *id);
        match (ready, list.story(id)) {
            (Some((mode, story)), _) => Selection::Work(mode, story),
            (None, Some(story)) if story.is_done(skip_review) => Selection::AllDone,
            (None, _) => Selection::Blocked,
        }
    }

    /// Why no story can be selected although some are left.
    pub fn blocked_because(&self, list: &TaskList) -> String {
        let Some(id) = &self.story else { return list.blocked_because() };
        let Some(story) = list.story(id) else { return format!("there is no story {id}") };
        let open: Vec<String> = list.open_dependencies(story, self.review.skip_review);
        if open.is_empty() { list.blocked_because() } else { format!("{id} depends on {}", open.join(", ")) }
    }

    /// The number of stories that need no further iteration, and of all stories of the loop.
    pub fn count(&self, list: &TaskList) -> (u64, u64) {
        let is_own = |story: &&Story| self.story.as_ref().is_none_or(|id| story.id == *id);
        let stories = || list.stories().iter().filter(is_own);
        let done = stories().filter(|story| story.is_done(self.review.skip_review)).count();
        (done as u64, stories().count() as u64)
    }
}

/// The list.
pub const TASKS_FILE: &str = "tasks.json";
/// The requirements, which iterations may not change.
pub const PRD_FILE: &str = "prd.md";
/// The prompt of each iteration, which iterations may not change.
pub const PROMPT_FILE: &str = "prompt.md";

/// The work of one iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTurn {
    /// The kind of work.
    pub mode: IterationMode,
    /// The id of its story.
    pub story: String,
    /// The story's title.
    #[serde(default)]
    pub title: String,
}

/// The result of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskVerdict {
    /// Its work.
    #[serde(flatten)]
    pub turn: TaskTurn,
    /// The story's review status afterwards.
    pub status: Option<ReviewStatus>,
    /// The story's review fields changed as the mode permits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_changed: bool,
    /// The story passes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_passed: bool,
    /// Stories that need no further iteration.
    pub done: u64,
    /// All stories.
    pub total: u64,
    /// No story is reviewed: a story is done when it passes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_review: bool,
    /// The agent printed the tag although stories were left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub promised_early: bool,
    /// The edits of the agent that swarm undid: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<String>,
    /// The results of the checks of stories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    /// The edits of the agent that a person should know: changed requirements, approvals at the cap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<String>,
    /// The reviews of the story in a row that approved it at the review cap and that swarm did not accept, because a
    /// check or a gate failed. 0 unless this iteration is such a review.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sent_back_at_cap: u32,
}

/// How often in a row swarm sends a story back at its review cap. Then the loop pauses, since a person has to decide.
const MAX_SENT_BACK_AT_CAP: u32 = 3;

impl TaskVerdict {
    /// Why a person has to decide about the story; `None` if none has to. After each decision, the story has as many
    /// reviews as before.
    pub fn stuck(&self) -> Option<String> {
        let count = self.sent_back_at_cap;
        let is_stuck = count > 0 && count.is_multiple_of(MAX_SENT_BACK_AT_CAP);
        is_stuck.then(|| {
            let story = &self.turn.story;
            format!("story {story} has reached its review cap, and its checks or the gates failed after {count} approvals in a row")
        })
    }

    /// The verdict on a list as it is after an iteration.
    pub fn of(turn: TaskTurn, enforced: &Enforced, gate: &TaskGate) -> Self {
        let (list, skip_review) = (&enforced.list, gate.review.skip_review);
        let (done, total) = gate.count(list);
        let story = list.story(&turn.story).cloned();
        let status = story.as_ref().and_then(|story| story.review.review_status);
        Self {
            is_changed: enforced.changed.as_ref() == Some(&turn.story),
            is_passed: story.is_some_and(|story| story.review.passes),
            done,
            total,
            skip_review,
            undone: enforced.remarks.clone(),
            noted: enforced.noted.clone(),
            turn,
            status,
            ..Self::default()
        }
    }

    /// One word for the story's state.
    pub fn state(&self) -> &'static str {
        match self.status {
            Some(status) => status.word(),
            None if self.is_passed => "passes",
            None => "open",
        }
    }

    /// True when every story needs no further iteration.
    pub fn is_complete(&self) -> bool {
        self.done == self.total
    }

    /// The work, and how many stories are left; `None` if none is.
    pub fn left(&self) -> Option<String> {
        (!self.is_complete()).then(|| self.summary_with_count())
    }

    /// As [`TaskVerdict::summary`], with the number of stories that are done.
    pub fn summary_with_count(&self) -> String {
        let word = if self.skip_review { "done" } else { "approved" };
        format!("{} of {} stories are {word} ({})", self.done, self.total, self.summary())
    }

    /// The agent's faults: a sentence each.
    pub fn faults(&self) -> Vec<String> {
        let early = self.promised_early.then(|| "the promise was given although stories are left".to_owned());
        early.into_iter().chain(self.undone.iter().cloned()).collect()
    }

    /// The work and its result in a few words: `review US-001: approved`.
    pub fn summary(&self) -> String {
        let TaskTurn { mode, story, .. } = &self.turn;
        format!("{mode} {story}: {}", self.state())
    }
}

impl TaskList {
    /// Requests changes of a story that was approved, with this feedback. The review counts, but no further than to the
    /// cap. With `skip_review`, the story does not pass any more.
    pub fn send_back(&mut self, id: &str, feedback: &str, options: ReviewOptions) {
        let Some(Story { mut review, .. }) = self.story(id).cloned() else { return };
        review.passes = false;
        review.review_count = review.review_count.min(options.review_cap);
        review.review_status = (!options.skip_review).then_some(ReviewStatus::ChangesRequested);
        self.set_review(id, review, feedback);
    }
}

/// Whether a changed file may weaken the checks of a story: a test, or the configuration of a test runner or a build.
/// For the reviewer, who looks at such files first; a file too many does no harm.
pub fn is_sensitive(path: &str) -> bool {
    let lower = path.to_lowercase();
    let (dirs, file) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let is_test = |word| matches!(word, "test" | "tests" | "spec" | "specs" | "conftest" | "snapshots");
    let has_config = [".toml", ".ini", ".cfg", ".mk", ".csproj", ".gradle", ".config.js", ".config.ts", "rc"];
    let is_config = has_config.iter().any(|end| file.ends_with(end))
        || ["makefile", "justfile", "package.json", "dockerfile"].contains(&file)
        || dirs.starts_with(".github")
        || dirs.starts_with(".cargo");
    is_config || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(is_test)
}
