//! Checks the directory with the files of the held-out checks.

use std::fs::File;
use std::path::Path;

use walkdir::{DirEntry, WalkDir};

/// Why the files of this directory cannot be copied over a checkout; `None` if they can.
pub(crate) fn hidden_fault(dir: &Path) -> Option<String> {
    if !dir.exists() {
        return Some("does not exist".to_owned());
    }
    if dir.read_dir().is_err() {
        return Some("is not a directory that can be read".to_owned());
    }
    let mut files = files(dir).peekable();
    if files.peek().is_none() {
        return Some("is empty".to_owned());
    }
    let fault = |entry: walkdir::Result<DirEntry>| match entry {
        Ok(entry) => {
            let file = entry.path().display();
            let kind = entry.file_type();
            if kind.is_file() {
                File::open(entry.path())
                    .err()
                    .map(|error| format!("has a file that cannot be read: {file}: {error}"))
            } else {
                let is_copied = kind.is_dir() || kind.is_symlink();
                (!is_copied).then(|| format!("has a file that cannot be copied: {file}"))
            }
        }
        Err(error) => Some(format!("has a directory that cannot be read: {error}")),
    };
    files.find_map(fault)
}

/// The files and directories that are copied: all except a repository's own.
pub(super) fn files(dir: &Path) -> impl Iterator<Item = walkdir::Result<DirEntry>> {
    let is_repository = |entry: &DirEntry| entry.depth() == 1 && entry.file_name() == ".git";
    WalkDir::new(dir).min_depth(1).into_iter().filter_entry(move |entry| !is_repository(entry))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn hidden_file_that_cannot_be_copied_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let fault = |name: &str| hidden_fault(&path(name)).unwrap_or_default();
        assert_eq!(fault("nowhere"), "does not exist");
        fs::write(path("file"), "").unwrap();
        assert_eq!(fault("file"), "is not a directory that can be read");
        fs::create_dir_all(path("good/.git")).unwrap();
        assert_eq!(fault("good"), "is empty");
        fs::write(path("good/a"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", path("good/link")).unwrap();
        assert_eq!(fault("good"), "");
        fs::set_permissions(path("good/a"), fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser can read everything.
        let is_readable = File::open(path("good/a")).is_ok();
        assert!(
            is_readable || fault("good").contains("has a file that cannot be read: "),
            "{}",
            fault("good")
        );
        fs::create_dir_all(path("odd/sub")).unwrap();
        let _socket = UnixListener::bind(path("odd/sub/s")).unwrap();
        let expected = format!("has a file that cannot be copied: {}", path("odd/sub/s").display());
        assert_eq!(fault("odd"), expected);
    }
}
