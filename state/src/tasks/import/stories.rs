//! The stories of another program, their formats, and the faults of an import.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::tasks::list::{ReviewStatus, key};
use crate::tasks::schema::TasksFault;

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

crate::word_table!(
    pub ImportFormat,
    name,
    [
        (Prd, "prd.json"),
        (Markdown, "Markdown"),
        (TaskMaster, "task-master"),
        (Beads, "beads"),
        (Github, "GitHub issues")
    ]
);

/// Why a list cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ImportFault {
    text: String,
    /// The next step for the user.
    pub hint: Option<&'static str>,
    /// The list that receives the stories is not valid.
    pub is_in_target: bool,
}

impl ImportFault {
    pub(super) fn new(text: impl ToString, hint: impl Into<Option<&'static str>>) -> Self {
        Self { text: text.to_string(), hint: hint.into(), is_in_target: false }
    }

    pub(super) fn in_target(fault: &TasksFault) -> Self {
        Self { is_in_target: true, ..Self::new(fault, None) }
    }

    pub(super) fn no_stories() -> Self {
        Self::new("it has no stories", None)
    }

    pub(super) fn unknown_format() -> Self {
        Self::new(
            "its format is unknown: it is neither a known form of JSON nor Markdown with check boxes (- [ ] …) or headings such as ### US-001: Title",
            "the formats are prd, markdown, task-master, beads and github; see swarm ralph tasks import --help",
        )
    }

    /// The text does not have the format that was named.
    pub(super) fn other_format(format: ImportFormat, reason: &str) -> Self {
        Self::new(format!("it is not a list in the format {format}: {reason}"), None)
    }
}

/// The stories of another program.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedStories {
    /// The format.
    pub format: ImportFormat,
    /// The texts of the list (`project`, `branchName`, `description`) that the input has.
    pub(in crate::tasks) texts: Vec<(&'static str, String)>,
    pub(in crate::tasks) stories: Vec<ForeignStory>,
    /// The number of stories that were canceled or deleted there. They are left out.
    pub left_out: usize,
}

/// A story of another program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::tasks) struct ForeignStory {
    /// `None` if it gets the next free id.
    pub(in crate::tasks) id: Option<String>,
    pub(in crate::tasks) title: String,
    pub(in crate::tasks) description: String,
    pub(in crate::tasks) criteria: Vec<String>,
    /// `None` for its position.
    pub(in crate::tasks) priority: Option<f64>,
    pub(in crate::tasks) is_done: bool,
    pub(in crate::tasks) notes: String,
    pub(in crate::tasks) depends_on: Vec<String>,
    /// Fields that replace or extend the others.
    pub(in crate::tasks) fields: Map<String, Value>,
}

impl ForeignStory {
    pub(super) fn note(&mut self, line: &str) {
        if !line.is_empty() {
            let lines = [self.notes.trim(), line];
            self.notes = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        }
    }

    /// The story as the list has it. A story that another program did without a review counts as approved.
    pub(super) fn into_raw(mut self, id: String, position: usize) -> Map<String, Value> {
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
