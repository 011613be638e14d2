//! Reads `tasks.json` and finds its faults (§5b, check 1).
//!
//! A fault names the story and the field, or the line and the column if the text is not JSON. The first fault in the
//! order of the file counts, since the agent fixes one at a time.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::list::{ReviewStatus, Story, TaskList, key, story_of};

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
        /// The story.
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
    pub(super) fn syntax(error: &serde_json::Error, line: usize) -> Self {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        Self::Syntax { message, line, column: error.column() }
    }

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

impl TaskList {
    /// Reads a valid list; the error is the first fault in the order of the file.
    pub fn parse(text: &str) -> Result<Self, TasksFault> {
        let (list, fault) = parse_leniently(text)?;
        fault.map_or(Ok(list), Err)
    }
}

/// Reads a list whose stories may have faults, and returns the first of these too. A fault elsewhere is an error.
pub(super) fn parse_leniently(text: &str) -> Result<(TaskList, Option<TasksFault>), TasksFault> {
    let (list, mut faults) = read(text)?;
    let whole = faults.iter().position(|fault| fault.story().is_none());
    match whole {
        Some(at) => Err(faults.swap_remove(at)),
        None => Ok((list, faults.into_iter().next())),
    }
}

/// Reads as much of a list as possible, with all its faults in the order of the file. Fails if the text is not a JSON
/// object.
pub(super) fn read(text: &str) -> Result<(TaskList, Vec<TasksFault>), TasksFault> {
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value =
        serde_json::from_str(text).map_err(|error| TasksFault::syntax(&error, error.line()))?;
    let Value::Object(value) = value else { return Err(TasksFault::NotAnObject) };
    let mut faults = vec![];
    for field in LIST_TEXTS {
        faults.extend(text_of(&value, field).err().map(|rule| TasksFault::List { field, rule }));
    }
    let field = "verifyCommands";
    faults.extend(optional_texts(&value, field).err().map(|rule| TasksFault::List { field, rule }));
    let rule = "must be an array";
    let list = value.get(key::STORIES).and_then(Value::as_array);
    if list.is_none() {
        faults.push(TasksFault::List { field: key::STORIES, rule });
    }
    let (mut stories, mut ids) = (vec![], BTreeSet::new());
    for (position, raw) in (1..).zip(list.into_iter().flatten()) {
        let label = match raw.get(key::ID).and_then(Value::as_str) {
            Some(id) if !id.is_empty() => StoryLabel::Id(id.to_owned()),
            _ => StoryLabel::Position(position),
        };
        let Value::Object(raw) = raw else {
            faults.push(TasksFault::NotAStory(label));
            continue;
        };
        let story = story_of(raw);
        check_story(raw, &story, &label, &mut faults);
        if matches!(label, StoryLabel::Id(_)) && !ids.insert(story.id.clone()) {
            faults.push(TasksFault::DuplicateId(story.id.clone()));
        }
        stories.push(story);
    }
    Ok((TaskList::of(value, stories), faults))
}

/// Adds the faults of a story's fields.
fn check_story(raw: &Map<String, Value>, story: &Story, label: &StoryLabel, faults: &mut Vec<TasksFault>) {
    let mut check = |field, checked: Result<(), &'static str>| {
        faults.extend(checked.err().map(|rule| TasksFault::Story { story: label.clone(), field, rule }));
    };
    let rule = "must be a string that is not empty";
    let is_id = |value: &Value| value.as_str().is_some_and(|id| !id.trim().is_empty());
    check(key::ID, has_type(raw, key::ID, is_id, rule));
    // An id is part of messages and of the names of branches.
    let is_plain = |value: &Value| !value.as_str().is_some_and(|id| id.chars().any(char::is_control));
    if raw.get(key::ID).is_some_and(|id| !is_plain(id)) {
        check(key::ID, Err("must not contain control characters"));
    }
    check("title", text_of(raw, "title").map(drop));
    check(key::PASSES, has_type(raw, key::PASSES, Value::is_boolean, "must be true or false"));
    check("priority", has_type(raw, "priority", Value::is_number, "must be a number"));
    let (field, rule) = ("acceptanceCriteria", "must be an array with at least one entry");
    let is_list = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
    check(field, has_type(raw, field, is_list, rule));
    let (field, rule) =
        (key::REVIEW_STATUS, "must be null, \"needs_review\", \"changes_requested\" or \"approved\"");
    let is_status =
        |value: &Value| value.is_null() || value.as_str().and_then(ReviewStatus::of_word).is_some();
    check(field, has_type(raw, field, is_status, rule));
    let (field, rule) = (key::REVIEW_COUNT, "must be an integer, 0 or more");
    check(field, has_type(raw, field, Value::is_u64, rule));
    check(key::FEEDBACK, text_of(raw, key::FEEDBACK).map(drop));
    for field in ["description", key::NOTES] {
        if raw.contains_key(field) {
            check(field, text_of(raw, field).map(drop));
        }
    }
    for field in ["dependsOn", key::CHECKS] {
        check(field, optional_texts(raw, field));
    }
    if story.review.passes && story.notes.trim().is_empty() {
        faults.push(TasksFault::NoNotes(label.clone()));
    }
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
