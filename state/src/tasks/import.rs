//! Reads the task lists of other programs and adds their stories to a list.
//!
//! A story never replaces another one unless the caller permits it. Deliberately absent: reading and writing files.

mod detect;
mod forms;
pub(super) mod markdown;
mod merge;
mod plan;
pub(super) mod plan_story;
mod stories;

pub use merge::{MergedList, merge};
pub use stories::{DONE_NOTE, ImportFault, ImportFormat, ImportedStories};

/// Reads the stories of another program. Without `format`, the text decides; `tag` selects a list of task-master.
pub fn read(
    text: &str,
    format: Option<ImportFormat>,
    tag: Option<&str>,
) -> Result<ImportedStories, ImportFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ImportFault::new("it is empty", None));
    }
    let imported = match detect::detect(text, format)? {
        detect::ImportSource::Markdown => plan::read(text),
        detect::ImportSource::Json(ImportFormat::Prd, values) => forms::prd(&values)?,
        detect::ImportSource::Json(ImportFormat::TaskMaster, values) => forms::task_master(&values, tag)?,
        detect::ImportSource::Json(ImportFormat::Beads, values) => forms::beads(values)?,
        detect::ImportSource::Json(ImportFormat::Github | ImportFormat::Markdown, values) => {
            forms::github(values)?
        }
    };
    if imported.stories.is_empty() {
        return Err(ImportFault::no_stories());
    }
    match imported.stories.iter().position(|story| story.title.trim().is_empty()) {
        Some(position) => Err(ImportFault::new(format!("story number {} has no title", position + 1), None)),
        None => Ok(imported),
    }
}
