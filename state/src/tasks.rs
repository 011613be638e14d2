//! Decides everything about a task list: `tasks.json`, the stories in it, and the review of each story.
//!
//! The agent edits the file. [`check`], [`graph`], [`import`] and [`export`] are for people who work on a list.
//! The section numbers are those of the source document. Deliberately absent: reading and writing files.

use serde::{Deserialize, Serialize};

pub mod archive;
pub mod check;
pub mod enforce;
pub mod export;
pub mod gate;
pub mod graph;
pub mod history;
pub mod import;
mod list;
pub mod marker;
pub mod merge;
pub mod parallel;
pub mod review;
pub mod schema;
pub mod selection;
pub mod stop_check;
mod summary;

#[cfg(test)]
mod tests;

pub use list::{ReviewState, ReviewStates, ReviewStatus, Story, TaskList};

/// The text with which a story begins its feedback if it was approved because of the review cap (§6).
pub const APPROVED_AT_CAP: &str = "[AUTO-APPROVED AT CAP]";

/// The default of `--review-cap` (§3).
pub const DEFAULT_REVIEW_CAP: u64 = 5;

/// The kind of work of an iteration (§6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IterationMode {
    /// Implement a new story.
    #[default]
    Implement,
    /// Review a story that an earlier iteration implemented.
    Review,
    /// Fix the issues that a review found.
    ReviewFix,
}

crate::word_table!(
    pub IterationMode,
    word,
    [(Implement, "implement"), (Review, "review"), (ReviewFix, "review-fix")]
);

/// The options of a loop with a task list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewOptions {
    /// Implement iterations set `passes` themselves, and no story is reviewed.
    pub skip_review: bool,
    /// The maximum number of reviews of a story; at least 1.
    pub review_cap: u64,
}

impl Default for ReviewOptions {
    fn default() -> Self {
        Self { skip_review: false, review_cap: DEFAULT_REVIEW_CAP }
    }
}
