//! Finds work that a snapshot does not contain: files in nested repositories and files that git ignores.
//!
//! [`super::gates`] asks only if a promise was given and there is no other work, because this reads the whole tree.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use swarm_state::ignored::{CACHE_DIRS, is_generated};
use walkdir::{DirEntry, WalkDir};

/// Whether a file below `root` changed since then. Hidden files do not count, since agents keep their own data there,
/// and caches do not.
pub(super) async fn has_changed_since(root: &Path, since: SystemTime) -> bool {
    let root: PathBuf = root.to_owned();
    let walk = tokio::task::spawn_blocking(move || is_newer_in(&root, since));
    walk.await.unwrap_or(false)
}

fn is_newer_in(root: &Path, since: SystemTime) -> bool {
    let may_enter = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !name.starts_with('.') && !CACHE_DIRS.contains(&&*name)
    };
    WalkDir::new(root).into_iter().filter_entry(may_enter).flatten().any(|entry| {
        let is_newer = || entry.metadata().ok()?.modified().ok().map(|at| at >= since);
        entry.file_type().is_file()
            && !is_generated(&entry.file_name().to_string_lossy())
            && is_newer().unwrap_or(false)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_files_with_work_count() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let start = SystemTime::now() - Duration::from_secs(60);
        let later = SystemTime::now() + Duration::from_secs(60);
        for (file, counts) in [
            (".agent/history", false),
            (".git/index", false),
            ("target/x", false),
            ("src/__pycache__/a.pyc", false),
            ("data/app.db", true),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
            assert_eq!(is_newer_in(root, start), counts, "{file}");
        }
        assert!(!is_newer_in(root, later));
    }
}
