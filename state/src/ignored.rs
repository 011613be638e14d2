//! Ignored files of a worktree: which of them a build or a package manager creates again, and how the others are
//! listed for a person.
//!
//! git deletes ignored files with their worktree and never mentions them. A `.env`, a database or a result that
//! exists nowhere else would be lost. Deliberately absent: the file system; `git` lists and measures the paths.

use serde::{Deserialize, Serialize};

use crate::model::is_default;
use crate::notice::counted;
use crate::screen::printable;

/// Maximum number of paths that a group keeps.
const MAX_KEPT_PATHS: usize = 20;

/// Maximum number of paths of a group in a message.
const MAX_NAMED_PATHS: usize = 5;

/// Directories that a build or a package manager of any kind fills.
pub const CACHE_DIRS: [&str; 16] = [
    "target",
    "node_modules",
    "__pycache__",
    ".venv",
    ".tox",
    ".nox",
    ".eggs",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".turbo",
    ".parcel-cache",
];

/// Endings of files that a compiler makes from a source file in the same directory.
pub const CACHE_ENDINGS: [&str; 4] = [".pyc", ".pyo", ".o", ".class"];

/// Files that a program writes into any directory that it visits.
pub const CACHE_FILES: [&str; 1] = [".DS_Store"];

/// Files in a directory that mark it as a cache, each with the text that it starts with. `CACHEDIR.TAG` follows the
/// Cache Directory Tagging Specification; `pyvenv.cfg` is in every Python virtual environment.
pub const CACHE_MARKERS: [(&str, &str); 2] =
    [("CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55"), ("pyvenv.cfg", "")];

/// Directories in which test runners and checkers keep their own data, wherever they run.
const RUNNER_CACHE_DIRS: [&str; 3] = [".pytest_cache", ".mypy_cache", ".ruff_cache"];

/// Whether a file is the cache of a test runner or is made from a source file. `path` is relative. Other caches, such
/// as `node_modules`, can hold files that a test reads.
pub fn is_generated(path: &str) -> bool {
    let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
    dirs.split('/').any(|dir| RUNNER_CACHE_DIRS.contains(&dir))
        || CACHE_FILES.contains(&name)
        || CACHE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// One ignored path, as git lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredPath {
    /// Relative to the worktree; a directory ends with `/`.
    pub path: String,
    /// How many files it holds; 1 for a file.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// The path holds more: counting stopped early, or a directory in it could not be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// Ignored paths of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredGroup {
    /// The first of them, in order.
    pub paths: Vec<IgnoredPath>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub more: u64,
}

/// The ignored files of a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredFiles {
    /// Files outside caches: they may exist nowhere else.
    #[serde(default, skip_serializing_if = "IgnoredGroup::is_empty")]
    pub data: IgnoredGroup,
    /// Caches.
    #[serde(default, skip_serializing_if = "IgnoredGroup::is_empty")]
    pub caches: IgnoredGroup,
}

/// The kind of an ignored path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredKind {
    /// No convention covers it.
    Data,
    /// A tool creates the path again when it is missing.
    Cache,
    /// swarm wrote it for its own use.
    Own,
}

/// Classifies a path by its name. `is_marked`: it is a directory that holds one of [`CACHE_MARKERS`].
pub fn kind(path: &str, is_dir: bool, is_marked: bool) -> IgnoredKind {
    let path = path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_cache = match is_dir {
        true => is_marked || CACHE_DIRS.contains(&name),
        false => CACHE_FILES.contains(&name) || CACHE_ENDINGS.iter().any(|ending| name.ends_with(ending)),
    };
    if is_cache {
        return IgnoredKind::Cache;
    }
    if !is_dir && is_own(path, name) { IgnoredKind::Own } else { IgnoredKind::Data }
}

/// The progress file of a loop, and the state file of a session loop.
fn is_own(path: &str, name: &str) -> bool {
    let parent = path.rsplit('/').nth(1);
    match parent {
        Some(".swarm") => name == "ralph-progress.md",
        Some(".claude") => {
            name == crate::session::DO_IT_FILE
                || (name.starts_with("ralph-loop.") && name.ends_with(".local.md"))
        }
        _ => false,
    }
}

impl IgnoredFiles {
    /// Groups paths. One that holds no file is left out: nothing is lost with it.
    pub fn new(paths: Vec<(IgnoredKind, IgnoredPath)>) -> Self {
        let group = |wanted: IgnoredKind| {
            let of_kind = paths.iter().filter(|(kind, _)| *kind == wanted).map(|(_, path)| path);
            IgnoredGroup::new(of_kind.filter(|path| path.files > 0 || path.at_least).cloned().collect())
        };
        Self { data: group(IgnoredKind::Data), caches: group(IgnoredKind::Cache) }
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty() && self.caches.is_empty()
    }

    /// All of them in one line: `.env (6 B); caches: target/ (12 files, 3.1 MiB)`; empty when there are none.
    pub fn summary(&self) -> String {
        let data = (!self.data.is_empty()).then(|| self.data.summary());
        let caches = (!self.caches.is_empty()).then(|| format!("caches: {}", self.caches.summary()));
        [data, caches].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

impl IgnoredGroup {
    fn new(mut paths: Vec<IgnoredPath>) -> Self {
        paths.sort_by(|a, b| a.path.cmp(&b.path));
        let more = paths.len().saturating_sub(MAX_KEPT_PATHS) as u64;
        paths.truncate(MAX_KEPT_PATHS);
        Self { paths, more }
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Up to five paths with their sizes: `.env (6 B), results/ (3 files, 2.4 MiB) and 4 more`.
    pub fn summary(&self) -> String {
        let named: Vec<String> = self.paths.iter().take(MAX_NAMED_PATHS).map(IgnoredPath::text).collect();
        let more = (self.paths.len() - named.len()) as u64 + self.more;
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{rest}", named.join(", "))
    }
}

impl IgnoredPath {
    fn text(&self) -> String {
        let over = if self.at_least { "at least " } else { "" };
        let size = size_text(self.bytes);
        let count = match self.path.ends_with('/') {
            true => format!("{}, ", counted(self.files, "file")),
            false => String::new(),
        };
        format!("{} ({over}{count}{size})", printable(&self.path))
    }
}

/// `6 B`, `1.5 KiB`, `12 MiB`.
fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(size < 9.95);
    format!("{size:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::IgnoredKind::{Cache, Data, Own};
    use super::*;

    fn path(path: &str, files: u64, bytes: u64) -> IgnoredPath {
        IgnoredPath { path: path.to_owned(), files, bytes, at_least: false }
    }

    #[test]
    fn only_known_directories_and_files_are_caches() {
        for (path, is_dir, is_marked, wanted) in [
            (".env", false, false, Data),
            ("app.db", false, false, Data),
            ("results/", true, false, Data),
            ("dist/", true, false, Data),
            ("build/", true, false, Data),
            ("target/", true, false, Cache),
            ("web/node_modules/", true, false, Cache),
            ("pkg/__pycache__/", true, false, Cache),
            ("pkg/a.pyc", false, false, Cache),
            ("src/a.o", false, false, Cache),
            (".DS_Store", false, false, Cache),
            // The convention is for directories.
            ("target", false, false, Data),
            // Below a cache that is not ignored as a whole.
            ("target/.env", false, false, Data),
            ("my-target/", true, false, Data),
            ("venv/", true, true, Cache),
            ("anything/", true, true, Cache),
            ("sub/.swarm/ralph-progress.md", false, false, Own),
            (".swarm/notes.md", false, false, Data),
            ("ralph-progress.md", false, false, Data),
            (".claude/ralph-loop.0a1b.local.md", false, false, Own),
            (".claude/do-it-ralph.local.md", false, false, Own),
            (".claude/settings.local.json", false, false, Data),
        ] {
            assert_eq!(kind(path, is_dir, is_marked), wanted, "{path}");
        }
    }

    #[test]
    fn summary_names_five_with_sizes_and_counts_the_rest() {
        let data = |n: u64| (Data, path(&format!("f{n:02}"), 1, n));
        let files = IgnoredFiles::new((0..30).map(data).collect());
        assert_eq!(files.summary(), "f00 (0 B), f01 (1 B), f02 (2 B), f03 (3 B), f04 (4 B) and 25 more");
        let big = IgnoredPath { at_least: true, ..path("big/", 10_000, 3 << 30) };
        let files = IgnoredFiles::new(vec![
            (Cache, path("target/", 12, 3_250_586)),
            (Data, path("results/", 1, 1536)),
            (Data, path("a\nb", 1, 6)),
            (Data, big),
            (Data, path("empty/", 0, 0)),
            (Own, path(".swarm/ralph-progress.md", 1, 9)),
        ]);
        assert_eq!(
            files.summary(),
            "a b (6 B), big/ (at least 10000 files, 3.0 GiB), results/ (1 file, 1.5 KiB); \
             caches: target/ (12 files, 3.1 MiB)"
        );
        assert!(IgnoredFiles::default().is_empty() && IgnoredFiles::default().summary().is_empty());
    }

    #[test]
    fn sizes_have_a_unit_and_at_most_three_digits() {
        for (bytes, wanted) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (12_000, "12 KiB"),
            (1_048_575, "1.0 MiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(size_text(bytes), wanted);
        }
    }
}
