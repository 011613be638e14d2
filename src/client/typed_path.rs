//! Paths as the user typed them: made absolute, and checked where a file must be readable.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::paths;

/// Checks that a prompt file can be read, again and again, and gives the path to keep.
pub(super) fn prompt_file(typed: &Path) -> Result<PathBuf> {
    again("prompt file", typed)
}

/// The same for what is called otherwise.
pub(super) fn again(what: &str, typed: &Path) -> Result<PathBuf> {
    let shown = typed.display();
    let not_found = || Error::invalid(format!("{what} not found: {shown}"));
    let unreadable = || Error::invalid(format!("cannot read {what}: {shown}"));
    let kind = match std::fs::metadata(typed) {
        Ok(metadata) => metadata.file_type(),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(not_found());
        }
        Err(_) => return Err(unreadable()),
    };
    // A pipe can be read once and then blocks; /dev/null is a prompt like an empty file.
    let again = kind.is_file() || typed == Path::new("/dev/null");
    if !again || File::open(typed).is_err() {
        return Err(unreadable());
    }
    pinned(typed)
}

/// A path that the user typed, as it is kept: see [`paths::pin`].
pub(super) fn pinned(path: &Path) -> Result<PathBuf> {
    paths::pin(path).map_err(|e| Error::system(format!("cannot resolve '{}'", path.display()), e))
}

pub(super) fn directory(typed: Option<&Path>) -> Result<PathBuf> {
    let path = match typed {
        Some(path) => pinned(path)?,
        None => std::env::current_dir().map_err(|e| Error::system("the current directory is gone", e))?,
    };
    if path.is_dir() {
        Ok(path)
    } else {
        Err(Error::invalid(format!("no such directory: {}", path.display())))
    }
}
