//! Formats the messages of `swarm hooks` and `swarm plugin` about files.

use std::path::{Path, PathBuf};

use swarm_state::screen::printable;

use super::file::FileChange;

pub(super) fn removal_line(file: &Path, change: FileChange, what: &str) -> String {
    let file = quoted_path(file);
    match change {
        FileChange::None => format!("{file} has no {what} of swarm"),
        FileChange::Created | FileChange::Changed => format!("removed swarm's {what} from {file}"),
        FileChange::Restored => format!("restored the original {file}"),
        FileChange::Removed => format!("removed {file}, which had no other content"),
    }
}

/// Formats what was done to files, one a line. The files of the marketplace in `dir` share one line.
pub(super) fn file_lines(verb: &str, files: &[PathBuf], dir: Option<&Path>) -> Vec<String> {
    let inside = |file: &&PathBuf| dir.is_some_and(|dir| file.starts_with(dir));
    let plugins = files.iter().filter(inside).count();
    let mut lines: Vec<String> = files
        .iter()
        .filter(|file| !inside(file))
        .map(|file| format!("{verb} {}", quoted_path(file)))
        .collect();
    if let (Some(dir), 1..) = (dir, plugins) {
        lines.insert(0, format!("{verb} the plugins in {} ({plugins} files)", quoted_path(dir)));
    }
    lines
}

pub(super) fn quoted_path(path: &Path) -> String {
    format!("'{}'", printable(&path.display().to_string()))
}
