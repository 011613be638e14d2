//! Decides everything about a task list: `tasks.json`, the stories in it, and the review of each story.
//!
//! The agent edits the file. [`schema`] reads it and finds its faults, [`review`] has the rules for the review fields,
//! [`selection`] chooses the story and the mode of an iteration, [`marker`] is `.ralph-active`, [`stop_check`] decides
//! for the Stop hook whether the agent may end, and [`enforce`] decides for the daemon what stays of the agent's edits.
//! [`check`], [`graph`], [`import`] and [`export`] are for people who work on a list.
//! The section numbers are those of the source document. Deliberately absent: reading and writing files.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub mod check;
pub mod enforce;
pub mod export;
pub mod graph;
pub mod import;
pub mod marker;
pub mod review;
pub mod schema;
pub mod selection;
pub mod stop_check;

#[cfg(test)]
mod tests;

/// The text with which a story begins its feedback if it was approved because of the review cap (§6).
pub const APPROVED_AT_CAP: &str = "[AUTO-APPROVED AT CAP]";

/// The default of `--review-cap` (§3).
pub const REVIEW_CAP: u64 = 5;

/// Where a story is in its review (§8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewStatus {
    /// Implemented and committed, awaiting a review in a fresh context.
    NeedsReview,
    /// A review found issues, which are in the story's feedback.
    ChangesRequested,
    /// A review found nothing more.
    Approved,
}

impl ReviewStatus {
    /// The word in the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::NeedsReview => "needs_review",
            Self::ChangesRequested => "changes_requested",
            Self::Approved => "approved",
        }
    }

    /// The status with this word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        [Self::NeedsReview, Self::ChangesRequested, Self::Approved].into_iter().find(|it| it.word() == word)
    }
}

/// The fields that only a review may change, as `.ralph-active` and the file have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReviewState {
    /// The story is done.
    pub passes: bool,
    /// Where it is in its review; `None` for a story that is not implemented yet.
    pub review_status: Option<ReviewStatus>,
    /// How many reviews it had.
    pub review_count: u64,
}

/// The review fields of all stories, by id.
pub type ReviewStates = BTreeMap<String, ReviewState>;

/// A story of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Story {
    /// Its id, unique in the list.
    pub id: String,
    /// A line for people.
    pub title: String,
    /// The text for the agent.
    pub description: String,
    /// The conditions for an approval; never empty in a valid list.
    pub criteria: Vec<String>,
    /// Stories with a lower number come first.
    pub priority: f64,
    /// The fields that only a review may change.
    pub review: ReviewState,
    /// The issues that the last review found.
    pub feedback: String,
    /// What was done, for later iterations.
    pub notes: String,
    /// The ids of stories that must be approved first.
    pub depends_on: Vec<String>,
    /// Commands that must exit with 0 before the story can be approved. swarm runs them.
    pub checks: Vec<String>,
}

impl Story {
    /// True for a story that needs no further iteration. With `skip_review`, `passes` alone is enough.
    pub fn is_done(&self, skip_review: bool) -> bool {
        self.review.passes && (skip_review || self.review.review_status == Some(ReviewStatus::Approved))
    }

    /// One word for its state, for tables: `open`, `done`, or its review status.
    pub fn state_word(&self) -> &'static str {
        match (self.review.review_status, self.review.passes) {
            (Some(status), _) => status.word(),
            (None, true) => "done",
            (None, false) => "open",
        }
    }
}

/// A valid task list. Fields that swarm does not have stay in the file when it is rewritten.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskList {
    value: Map<String, Value>,
    stories: Vec<Story>,
}

/// The keys of the file that more than one module uses.
mod key {
    pub(super) const STORIES: &str = "userStories";
    pub(super) const ID: &str = "id";
    pub(super) const PASSES: &str = "passes";
    pub(super) const REVIEW_STATUS: &str = "reviewStatus";
    pub(super) const REVIEW_COUNT: &str = "reviewCount";
    pub(super) const FEEDBACK: &str = "reviewFeedback";
    pub(super) const NOTES: &str = "notes";
    pub(super) const CHECKS: &str = "checks";
}

impl TaskList {
    /// The stories in the order of the file.
    pub fn stories(&self) -> &[Story] {
        &self.stories
    }

    /// The story with this id.
    pub fn story(&self, id: &str) -> Option<&Story> {
        self.stories.iter().find(|story| story.id == id)
    }

    /// A text field of the list, such as `project` or `branchName`; empty if it is missing.
    pub fn text(&self, key: &str) -> &str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The commands that the agent runs in each iteration (`verifyCommands`).
    pub fn verify_commands(&self) -> Vec<&str> {
        let list = self.value.get("verifyCommands").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The review fields of all stories.
    pub fn review_states(&self) -> ReviewStates {
        self.stories.iter().map(|story| (story.id.clone(), story.review)).collect()
    }

    /// The number of stories that need no further iteration.
    pub fn done(&self, skip_review: bool) -> usize {
        self.stories.iter().filter(|story| story.is_done(skip_review)).count()
    }

    /// True when every story needs no further iteration.
    pub fn is_done(&self, skip_review: bool) -> bool {
        self.done(skip_review) == self.stories.len()
    }

    /// Sets the review fields and the feedback of a story.
    pub fn set_review(&mut self, id: &str, review: ReviewState, feedback: &str) {
        self.edit(id, |story| {
            story.insert(key::PASSES.into(), review.passes.into());
            let status = review.review_status.map_or(Value::Null, |status| status.word().into());
            story.insert(key::REVIEW_STATUS.into(), status);
            story.insert(key::REVIEW_COUNT.into(), review.review_count.into());
            story.insert(key::FEEDBACK.into(), feedback.into());
        });
    }

    /// The file's text: two spaces of indentation, and a newline at the end.
    pub fn to_text(&self) -> String {
        format!("{:#}\n", Value::Object(self.value.clone()))
    }

    /// The value of a story as the file has it.
    fn raw(&self, id: &str) -> Option<&Value> {
        self.value.get(key::STORIES)?.as_array()?.iter().find(|raw| has_id(raw, id))
    }

    fn edit(&mut self, id: &str, change: impl FnOnce(&mut Map<String, Value>)) {
        let raw = self.value.get_mut(key::STORIES).and_then(Value::as_array_mut);
        let raw = raw.and_then(|stories| stories.iter_mut().find(|raw| has_id(raw, id)));
        let Some(raw) = raw.and_then(Value::as_object_mut) else { return };
        change(raw);
        let changed = schema::story_of(raw);
        if let Some(story) = self.stories.iter_mut().find(|story| story.id == id) {
            *story = changed;
        }
    }

    /// Puts a story of an earlier list in, at its place there. Replaces a story with the same id.
    fn restore_story(&mut self, id: &str, earlier: &Self) {
        let (Some(raw), Some(story)) = (earlier.raw(id), earlier.story(id)) else { return };
        let place = earlier.stories.iter().position(|story| story.id == id).unwrap_or(usize::MAX);
        let Some(list) = self.value.get_mut(key::STORIES).and_then(Value::as_array_mut) else { return };
        match self.stories.iter().position(|story| story.id == id) {
            Some(at) => {
                (self.stories[at], list[at]) = (story.clone(), raw.clone());
            }
            None => {
                let at = place.min(list.len());
                list.insert(at, raw.clone());
                self.stories.insert(at, story.clone());
            }
        }
    }
}

fn has_id(raw: &Value, id: &str) -> bool {
    raw.get(key::ID).and_then(Value::as_str) == Some(id)
}

/// The kind of work of an iteration (§6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IterationMode {
    /// Implement a new story.
    Implement,
    /// Review a story that an earlier iteration implemented.
    Review,
    /// Fix the issues that a review found.
    ReviewFix,
}

impl IterationMode {
    /// The word in `.ralph-active`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Review => "review",
            Self::ReviewFix => "review-fix",
        }
    }
}

impl fmt::Display for IterationMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The options of a loop with a task list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewOptions {
    /// Implement iterations set `passes` themselves, and no story is reviewed.
    pub skip_review: bool,
    /// The most reviews of a story; at least 1.
    pub review_cap: u64,
}

impl Default for ReviewOptions {
    fn default() -> Self {
        Self { skip_review: false, review_cap: REVIEW_CAP }
    }
}
