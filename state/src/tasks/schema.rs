//! Reads `tasks.json` and finds its faults (§5b, check 1).
//!
//! A fault names the story and the field, or the line and the column where the text is not JSON. The first fault in the
//! order of the file counts, since the agent fixes one at a time.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::list::{ReviewStatus, TaskList, key, story_of};

/// The required texts of a list.
const LIST_TEXTS: [&str; 3] = ["project", "branchName", "description"];

/// Why a task list is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TasksFault {
    /// The text is not JSON.
    #[error("it is not valid JSON: {message} at line {line}, column {column}")]
    Syntax {
        /// The parser's message.
        message: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// The JSON is not an object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// A field of the list is missing or has another type.
    #[error("the field \"{field}\" {rule}")]
    List {
        /// The field.
        field: &'static str,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// A field of a story is missing or has another type.
    #[error("{story}: the field \"{field}\" {rule}")]
    Story {
        /// Which story.
        story: StoryLabel,
        /// The field.
        field: &'static str,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// An element of the list of stories is not an object.
    #[error("{0} is not an object")]
    NotAStory(StoryLabel),
    /// Two stories have the same id.
    #[error("two stories have the id \"{0}\"; ids must be unique")]
    DuplicateId(String),
    /// A story that passes has no notes.
    #[error("{0} has passes=true but an empty \"notes\" field; write down what was done")]
    NoNotes(StoryLabel),
}

/// Names a story in a message: by its id, or by its position if it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoryLabel {
    /// Its id.
    Id(String),
    /// Its position, from 1.
    Position(usize),
}

impl fmt::Display for StoryLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "story {id}"),
            Self::Position(position) => write!(f, "userStories, story number {position}"),
        }
    }
}

impl TasksFault {
    /// The story that the fault is in, if only that story is affected.
    pub(super) fn story(&self) -> Option<&str> {
        match self {
            Self::Story { story: StoryLabel::Id(id), field, .. } if *field != key::ID => Some(id),
            Self::NoNotes(StoryLabel::Id(id)) => Some(id),
            Self::Story { .. } | Self::NoNotes(_) | Self::NotAStory(_) | Self::DuplicateId(_) => None,
            Self::Syntax { .. } | Self::NotAnObject | Self::List { .. } => None,
        }
    }
}

/// A list that can be read, with the first fault of its stories.
pub(super) struct LenientList {
    pub(super) list: TaskList,
    pub(super) fault: Option<TasksFault>,
}

impl TaskList {
    /// Reads a valid list.
    ///
    /// # Errors
    /// The first fault, in the order of the file.
    pub fn parse(text: &str) -> Result<Self, TasksFault> {
        let LenientList { list, fault } = parse_leniently(text)?;
        fault.map_or(Ok(list), Err)
    }
}

/// Reads a list whose stories may have faults.
///
/// # Errors
/// A fault that is not in a story's fields.
pub(super) fn parse_leniently(text: &str) -> Result<LenientList, TasksFault> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        TasksFault::Syntax { message, line: error.line(), column: error.column() }
    })?;
    let Value::Object(value) = value else { return Err(TasksFault::NotAnObject) };
    for field in LIST_TEXTS {
        text_of(&value, field).map_err(|rule| TasksFault::List { field, rule })?;
    }
    let field = "verifyCommands";
    optional_texts(&value, field).map_err(|rule| TasksFault::List { field, rule })?;
    let rule = "must be an array";
    let list = value.get(key::STORIES).and_then(Value::as_array);
    let list = list.ok_or(TasksFault::List { field: key::STORIES, rule })?;
    let (mut stories, mut ids, mut fault) = (vec![], BTreeSet::new(), None);
    for (position, raw) in (1..).zip(list) {
        let label = match raw.get(key::ID).and_then(Value::as_str) {
            Some(id) if !id.is_empty() => StoryLabel::Id(id.to_owned()),
            _ => StoryLabel::Position(position),
        };
        let Value::Object(raw) = raw else { return Err(TasksFault::NotAStory(label)) };
        if let Err(found) = check_story(raw, &label) {
            if found.story().is_none() {
                return Err(found);
            }
            fault.get_or_insert(found);
        }
        let story = story_of(raw);
        if !ids.insert(story.id.clone()) {
            return Err(TasksFault::DuplicateId(story.id));
        }
        stories.push(story);
    }
    Ok(LenientList { list: TaskList::of(value, stories), fault })
}

fn check_story(raw: &Map<String, Value>, label: &StoryLabel) -> Result<(), TasksFault> {
    let fault = |field, rule| TasksFault::Story { story: label.clone(), field, rule };
    match raw.get(key::ID) {
        Some(Value::String(id)) if !id.trim().is_empty() => {}
        Some(_) => return Err(fault(key::ID, "must be a string that is not empty")),
        None => return Err(fault(key::ID, MISSING)),
    }
    text_of(raw, "title").map_err(|rule| fault("title", rule))?;
    let (field, rule) = (key::PASSES, "must be true or false");
    has_type(raw, field, Value::is_boolean, rule).map_err(|rule| fault(field, rule))?;
    let (field, rule) = ("priority", "must be a number");
    has_type(raw, field, Value::is_number, rule).map_err(|rule| fault(field, rule))?;
    let (field, rule) = ("acceptanceCriteria", "must be an array with at least one entry");
    let is_list = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
    has_type(raw, field, is_list, rule).map_err(|rule| fault(field, rule))?;
    let (field, rule) =
        (key::REVIEW_STATUS, "must be null, \"needs_review\", \"changes_requested\" or \"approved\"");
    let is_status =
        |value: &Value| value.is_null() || value.as_str().and_then(ReviewStatus::of_word).is_some();
    has_type(raw, field, is_status, rule).map_err(|rule| fault(field, rule))?;
    let (field, rule) = (key::REVIEW_COUNT, "must be an integer, 0 or more");
    has_type(raw, field, Value::is_u64, rule).map_err(|rule| fault(field, rule))?;
    text_of(raw, key::FEEDBACK).map_err(|rule| fault(key::FEEDBACK, rule))?;
    for field in ["description", key::NOTES] {
        if raw.contains_key(field) {
            text_of(raw, field).map_err(|rule| fault(field, rule))?;
        }
    }
    for field in ["dependsOn", key::CHECKS] {
        optional_texts(raw, field).map_err(|rule| fault(field, rule))?;
    }
    let story = story_of(raw);
    if story.review.passes && story.notes.trim().is_empty() {
        return Err(TasksFault::NoNotes(label.clone()));
    }
    Ok(())
}

const MISSING: &str = "is missing";

fn text_of<'a>(raw: &'a Map<String, Value>, field: &str) -> Result<&'a str, &'static str> {
    raw.get(field).ok_or(MISSING)?.as_str().ok_or("must be a string")
}

fn has_type(
    raw: &Map<String, Value>,
    field: &str,
    is_right: impl Fn(&Value) -> bool,
    rule: &'static str,
) -> Result<(), &'static str> {
    let value = raw.get(field).ok_or(MISSING)?;
    if is_right(value) { Ok(()) } else { Err(rule) }
}

/// A list of texts that may be missing. None may be empty.
fn optional_texts(raw: &Map<String, Value>, field: &str) -> Result<(), &'static str> {
    let is_text = |entry: &Value| entry.as_str().is_some_and(|text| !text.trim().is_empty());
    match raw.get(field) {
        None => Ok(()),
        Some(Value::Array(list)) if list.iter().all(is_text) => Ok(()),
        Some(_) => Err("must be an array of strings that are not empty"),
    }
}
