//! Lists the contents of a worktree: the repositories below it, and the files in git's output. The other files of this
//! folder decide what of it would be lost.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Walks through directories on a thread that may block.
pub(super) async fn walk<T: Send + 'static>(walk: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let walked = tokio::task::spawn_blocking(walk).await;
    walked.map_err(|e| Error::internal(format!("walking through directories: {e}")))
}

/// The repositories below `root`, bare ones included. Does not follow links.
pub(super) fn repositories(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (vec![], vec![root.to_owned()]);
    while let Some(dir) = left.pop() {
        let Ok(list) = fs::read_dir(&dir) else { continue };
        let (mut below, mut marks) = (vec![], 0);
        for entry in list.flatten() {
            let name = entry.file_name();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if name == ".git" {
                if dir != root {
                    found.push(dir.clone());
                }
            } else if is_dir {
                marks += usize::from(name == "objects" || name == "refs");
                below.push(entry.path());
            } else {
                marks += usize::from(name == "HEAD");
            }
        }
        if marks == 3 {
            found.push(dir);
        } else {
            left.extend(below);
        }
    }
    found.sort();
    found
}

/// The commits and paths of the submodules in the output of `git ls-files -z --stage`, where an entry is
/// `160000 COMMIT STAGE<tab>PATH`.
pub(super) fn gitlinks(output: &[u8]) -> Vec<(String, PathBuf)> {
    let link = |entry: &[u8]| {
        let rest = entry.strip_prefix(b"160000 ")?;
        let tab = rest.iter().position(|byte| *byte == b'\t')?;
        let commit = rest.split(|byte| *byte == b' ').next()?;
        let path = PathBuf::from(OsStr::from_bytes(&rest[tab + 1..]));
        Some((String::from_utf8_lossy(commit).into_owned(), path))
    };
    output.split(|byte| *byte == 0).filter_map(link).collect()
}

/// The files in the output of `git status --porcelain -z`.
pub(super) fn changed_files(output: &[u8]) -> Vec<String> {
    status_entries(output).into_iter().map(|(_, file)| String::from_utf8_lossy(file).into_owned()).collect()
}

/// The entries in the output of `git status --porcelain -z`: three bytes of state, and the path.
pub(super) fn status_entries(output: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut files = vec![];
    while let Some(field) = fields.next() {
        let Some((state, file)) = field.split_at_checked(3) else { continue };
        files.push((state, file));
        // The old name follows a renamed file.
        if state.starts_with(b"R") || state.starts_with(b"C") {
            fields.next();
        }
    }
    files
}

/// The files in the output of `git ls-files -v -z` that are marked skip-worktree or assume-unchanged.
pub(super) fn hidden_files(output: &[u8]) -> Vec<Vec<u8>> {
    let fields = output.split(|byte| *byte == 0).filter_map(|field| field.split_at_checked(2));
    let hidden = fields.filter(|(tag, _)| tag[0] == b'S' || tag[0].is_ascii_lowercase());
    hidden.map(|(_, file)| file.to_vec()).collect()
}
