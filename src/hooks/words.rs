//! What the verbs of `swarm hooks` and `swarm plugin` print of files.

use std::path::{Path, PathBuf};

use swarm_state::screen::printable;

use super::file::Change;

pub(super) fn taken(file: &Path, change: Change, what: &str) -> String {
    let file = shown(file);
    match change {
        Change::None => format!("{file} has no {what} of swarm's"),
        Change::Created | Change::Changed => format!("took swarm's {what} out of {file}"),
        Change::Restored => format!("{file} is as it was before"),
        Change::Removed => format!("removed {file}, which held nothing else"),
    }
}

/// What was done to files, a line each; those of the marketplace in `dir` in one.
pub(super) fn told(verb: &str, files: &[PathBuf], dir: Option<&Path>) -> Vec<String> {
    let inside = |file: &&PathBuf| dir.is_some_and(|dir| file.starts_with(dir));
    let plugins = files.iter().filter(inside).count();
    let mut lines: Vec<String> =
        files.iter().filter(|file| !inside(file)).map(|file| format!("{verb} {}", shown(file))).collect();
    if let (Some(dir), 1..) = (dir, plugins) {
        lines.insert(0, format!("{verb} the plugins in {} ({plugins} files)", shown(dir)));
    }
    lines
}

/// A path in a sentence.
pub(super) fn shown(path: &Path) -> String {
    format!("'{}'", printable(&path.display().to_string()))
}
