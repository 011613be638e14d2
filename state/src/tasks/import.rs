//! Reads the task lists of other programs and adds their stories to a list.
//!
//! [`read`] detects the format and reads it: [`forms`] has the forms of JSON, [`plan`] has Markdown with check boxes.
//! [`merge`] adds the stories to a list. A story never replaces another one unless the caller permits it.
//! Deliberately absent: reading and writing files.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::schema::TasksFault;
use super::selection::DependencyFault;
use super::{ReviewStatus, key};

mod detect;
mod forms;
pub(super) mod markdown;
mod merge;
mod plan;
pub(super) mod plan_story;

pub use merge::{MergedList, merge};

/// The note of a story that was done in the list of another program.
pub const DONE_NOTE: &str = "imported as done";

/// A format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// A `prd.json` or `tasks.json` with `userStories`.
    Prd,
    /// Markdown with check boxes.
    Markdown,
    /// The `tasks.json` of task-master, also with tags.
    TaskMaster,
    /// JSON lines of `bd export`, or the array of `bd list --json`.
    Beads,
    /// The array of `gh issue list --json`.
    Github,
}

impl ImportFormat {
    /// The name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prd => "prd.json",
            Self::Markdown => "Markdown",
            Self::TaskMaster => "task-master",
            Self::Beads => "beads",
            Self::Github => "GitHub issues",
        }
    }
}

/// Why a list cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportFault {
    /// There is no text.
    #[error("it is empty")]
    Empty,
    /// The JSON is broken.
    #[error("it is not valid JSON: {message} at line {line}, column {column}")]
    Syntax {
        /// The parser's message.
        message: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// No format fits.
    #[error(
        "its format is unknown: it is neither a known form of JSON nor Markdown with check boxes (- [ ] …)"
    )]
    UnknownFormat,
    /// The text does not have the format that was named.
    #[error("it is not a list in the format {format}: {reason}", format = .0.name(), reason = .1)]
    OtherFormat(ImportFormat, &'static str),
    /// The list has no stories.
    #[error("it has no stories")]
    NoStories,
    /// A story has no title.
    #[error("story number {0} has no title")]
    NoTitle(usize),
    /// A list of task-master has several tags, and none is `master`.
    #[error("it has no tag \"{tag}\"; its tags are {tags}", tags = .tags.join(", "))]
    NoTag {
        /// The tag.
        tag: String,
        /// The tags of the file.
        tags: Vec<String>,
    },
    /// Stories of the input have the same id.
    #[error("several of its stories have the id {}", .0.join(", "))]
    SameIds(Vec<String>),
    /// The list has stories with these ids.
    #[error("the list already has {}", .0.join(", "))]
    Existing(Vec<String>),
    /// The result would have faulty dependencies.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Dependencies(Vec<DependencyFault>),
    /// The list that receives the stories is not valid.
    #[error("{0}")]
    Target(TasksFault),
    /// The result would not be a valid list.
    #[error("{0}")]
    Result(TasksFault),
}

/// The stories of another program.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedStories {
    /// The format.
    pub format: ImportFormat,
    /// The texts of the list (`project`, `branchName`, `description`) that the input has.
    pub(super) texts: Vec<(&'static str, String)>,
    pub(super) stories: Vec<ForeignStory>,
    /// The number of stories that were canceled or deleted there. They are left out.
    pub left_out: usize,
}

/// A story of another program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ForeignStory {
    /// `None` if it gets the next free id.
    pub(super) id: Option<String>,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) criteria: Vec<String>,
    /// `None` for its position.
    pub(super) priority: Option<f64>,
    pub(super) is_done: bool,
    pub(super) notes: String,
    pub(super) depends_on: Vec<String>,
    /// Fields that replace or extend the others.
    pub(super) fields: Map<String, Value>,
}

impl ForeignStory {
    /// Adds a line to the notes.
    fn note(&mut self, line: &str) {
        if !line.is_empty() {
            let lines = [self.notes.trim(), line];
            self.notes = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        }
    }

    /// The story as the list has it. A story that another program did without a review counts as approved.
    fn into_raw(mut self, id: String, position: usize) -> Map<String, Value> {
        let is_foreign = !self.fields.contains_key(key::REVIEW_STATUS);
        if self.is_done && is_foreign {
            self.note(DONE_NOTE);
        }
        if self.criteria.is_empty() {
            self.criteria.push(format!("The change works as the title describes: {}", self.title));
        }
        let mut needed = BTreeSet::new();
        self.depends_on.retain(|id| needed.insert(id.clone()));
        let status = (self.is_done && is_foreign).then(|| ReviewStatus::Approved.word());
        let mut raw = Map::new();
        raw.insert(key::ID.into(), id.into());
        raw.insert("title".into(), self.title.into());
        raw.insert("description".into(), self.description.into());
        raw.insert("acceptanceCriteria".into(), self.criteria.into());
        raw.insert("priority".into(), number(self.priority.unwrap_or(position as f64)));
        raw.insert(key::PASSES.into(), self.is_done.into());
        raw.insert(key::REVIEW_STATUS.into(), status.into());
        raw.insert(key::REVIEW_COUNT.into(), 0.into());
        raw.insert(key::FEEDBACK.into(), "".into());
        raw.insert(key::NOTES.into(), self.notes.into());
        raw.insert("dependsOn".into(), self.depends_on.into());
        raw.extend(self.fields);
        raw
    }
}

/// A number as JSON has it: without a fraction where there is none.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 { (number as i64).into() } else { number.into() }
}

/// Reads the stories of another program. Without `format`, the text decides; `tag` selects a list of task-master.
///
/// # Errors
/// The text is broken, or has another format.
pub fn read(
    text: &str,
    format: Option<ImportFormat>,
    tag: Option<&str>,
) -> Result<ImportedStories, ImportFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ImportFault::Empty);
    }
    let imported = match detect::detect(text, format)? {
        detect::Source::Markdown => plan::read(text),
        detect::Source::Json(ImportFormat::Prd, values) => forms::prd(&values)?,
        detect::Source::Json(ImportFormat::TaskMaster, values) => forms::task_master(&values, tag)?,
        detect::Source::Json(ImportFormat::Beads, values) => forms::beads(values)?,
        detect::Source::Json(ImportFormat::Github | ImportFormat::Markdown, values) => forms::github(values)?,
    };
    if imported.stories.is_empty() {
        return Err(ImportFault::NoStories);
    }
    match imported.stories.iter().position(|story| story.title.trim().is_empty()) {
        Some(position) => Err(ImportFault::NoTitle(position + 1)),
        None => Ok(imported),
    }
}
