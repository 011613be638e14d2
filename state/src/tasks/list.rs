//! The task list and its stories, as the file has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The stage of a story in its review (§8).
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

crate::word_table!(
    pub ReviewStatus,
    word,
    of_word,
    [(NeedsReview, "needs_review"), (ChangesRequested, "changes_requested"), (Approved, "approved")]
);

/// The fields that only a review may change, as `.ralph-active` and the file have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReviewState {
    /// The story is done.
    pub passes: bool,
    /// Its stage in the review; `None` for a story that is not implemented yet.
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
    /// A summary of the work, for later iterations.
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
pub(super) mod key {
    pub(crate) const STORIES: &str = "userStories";
    pub(crate) const ID: &str = "id";
    pub(crate) const PASSES: &str = "passes";
    pub(crate) const REVIEW_STATUS: &str = "reviewStatus";
    pub(crate) const REVIEW_COUNT: &str = "reviewCount";
    pub(crate) const FEEDBACK: &str = "reviewFeedback";
    pub(crate) const NOTES: &str = "notes";
    pub(crate) const CHECKS: &str = "checks";
    pub(crate) const DEPENDS_ON: &str = "dependsOn";
}

impl TaskList {
    pub(super) fn of(value: Map<String, Value>, stories: Vec<Story>) -> Self {
        Self { value, stories }
    }

    pub(super) fn value(&self) -> &Map<String, Value> {
        &self.value
    }

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
    pub(crate) fn verify_commands(&self) -> Vec<&str> {
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

    /// Whether the list is that of a loop without reviews: a story passes, and no story has a review.
    pub fn is_unreviewed(&self) -> bool {
        let has_no_review =
            |story: &Story| story.review.review_status.is_none() && story.review.review_count == 0;
        self.stories.iter().all(has_no_review) && self.stories.iter().any(|story| story.review.passes)
    }

    /// Sets the review fields and the feedback of a story.
    pub(crate) fn set_review(&mut self, id: &str, review: ReviewState, feedback: &str) {
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

    pub(super) fn raw(&self, id: &str) -> Option<&Value> {
        self.value.get(key::STORIES)?.as_array()?.iter().find(|raw| has_id(raw, id))
    }

    pub(super) fn edit(&mut self, id: &str, change: impl FnOnce(&mut Map<String, Value>)) {
        let raw = self.value.get_mut(key::STORIES).and_then(Value::as_array_mut);
        let raw = raw.and_then(|stories| stories.iter_mut().find(|raw| has_id(raw, id)));
        let Some(raw) = raw.and_then(Value::as_object_mut) else { return };
        change(raw);
        let changed = story_of(raw);
        if let Some(story) = self.stories.iter_mut().find(|story| story.id == id) {
            *story = changed;
        }
    }

    /// Sets a field of a story to its value in another list, or removes it if it has none there.
    pub(super) fn restore_field(&mut self, id: &str, field: &str, other: &Self) {
        let known = other.raw(id).and_then(|raw| raw.get(field)).cloned();
        self.edit(id, |story| {
            match known {
                Some(known) => story.insert(field.into(), known),
                None => story.shift_remove(field),
            };
        });
    }

    pub(super) fn append_story(&mut self, id: &str, other: &Self) {
        let (Some(raw), Some(story)) = (other.raw(id), other.story(id)) else { return };
        let Some(list) = self.value.get_mut(key::STORIES).and_then(Value::as_array_mut) else { return };
        list.push(raw.clone());
        self.stories.push(story.clone());
    }

    /// Puts a story of an earlier list in, at its place there. Replaces a story with the same id.
    pub(super) fn restore_story(&mut self, id: &str, earlier: &Self) {
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

/// The story that an object describes. A field with another type than its own is read as empty.
pub(super) fn story_of(raw: &Map<String, Value>) -> Story {
    let text = |field| raw.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let texts = |field| {
        let list = raw.get(field).and_then(Value::as_array).into_iter().flatten();
        list.map(|entry| entry.as_str().map_or_else(|| entry.to_string(), str::to_owned)).collect()
    };
    let status = raw.get(key::REVIEW_STATUS).and_then(Value::as_str).and_then(ReviewStatus::of_word);
    Story {
        id: text(key::ID),
        title: text("title"),
        description: text("description"),
        criteria: texts("acceptanceCriteria"),
        priority: raw.get("priority").and_then(Value::as_f64).unwrap_or_default(),
        review: ReviewState {
            passes: raw.get(key::PASSES).and_then(Value::as_bool).unwrap_or_default(),
            review_status: status,
            review_count: raw.get(key::REVIEW_COUNT).and_then(Value::as_u64).unwrap_or_default(),
        },
        feedback: text(key::FEEDBACK),
        notes: text(key::NOTES),
        depends_on: texts(key::DEPENDS_ON),
        checks: texts(key::CHECKS),
    }
}
