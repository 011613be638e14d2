//! Detects the format of a list that is imported.

use serde_json::Value;

use super::markdown::check_box;
use super::plan::has_story_heading;
use super::stories::{ImportFault, ImportFormat};
use crate::tasks::schema::TasksFault;

/// The input, parsed as far as the format requires.
pub(super) enum ImportSource {
    Markdown,
    /// The value of the file, the elements of its array, or its lines.
    Json(ImportFormat, Vec<Value>),
}

/// Detects the format, or holds the text to the one that was named.
pub(super) fn detect(text: &str, named: Option<ImportFormat>) -> Result<ImportSource, ImportFault> {
    let has_boxes = || text.lines().any(|line| check_box(line).is_some()) || has_story_heading(text);
    let is_json = text.trim_start().starts_with(['{', '[']);
    if named == Some(ImportFormat::Markdown) || (named.is_none() && !is_json && has_boxes()) {
        return Ok(ImportSource::Markdown);
    }
    if named.is_none() && !is_json {
        return Err(ImportFault::unknown_format());
    }
    let values = match values(text) {
        Ok(values) => values,
        // A plan may begin with a link or with front matter.
        Err(_) if named.is_none() && has_boxes() => return Ok(ImportSource::Markdown),
        Err(fault) => return Err(fault),
    };
    let found = values.first().and_then(format_of);
    match named.or(found) {
        Some(format) => Ok(ImportSource::Json(format, values)),
        // An empty array has no format, and no stories either.
        None if values.is_empty() => Err(ImportFault::no_stories()),
        None => Err(ImportFault::unknown_format()),
    }
}

/// The elements of an array, the single value of a text, or the values of its lines.
fn values(text: &str) -> Result<Vec<Value>, ImportFault> {
    match serde_json::from_str(text) {
        Ok(Value::Array(values)) => return Ok(values),
        Ok(value) => return Ok(vec![value]),
        Err(error) => {
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            if serde_json::from_str::<Value>(first).is_err() {
                return Err(syntax(&error, error.line()));
            }
        }
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| serde_json::from_str(line).map_err(|error| syntax(&error, number))).collect()
}

fn syntax(error: &serde_json::Error, line: usize) -> ImportFault {
    ImportFault::new(TasksFault::syntax(error, line), None)
}

/// The format of a value, from the fields that only this format has.
fn format_of(first: &Value) -> Option<ImportFormat> {
    let fields = first.as_object()?;
    let has = |field: &str| fields.contains_key(field);
    let has_tasks = |value: &Value| value.get("tasks").is_some_and(Value::is_array);
    if has("userStories") {
        Some(ImportFormat::Prd)
    } else if has_tasks(first) || fields.values().any(has_tasks) {
        Some(ImportFormat::TaskMaster)
    } else if has("number") && has("title") {
        Some(ImportFormat::Github)
    } else if has("_type") || has("_schema") || (has("id") && has("title")) {
        Some(ImportFormat::Beads)
    } else {
        None
    }
}
