//! Makes the paths that the user typed absolute, and checks files that must be readable.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, failed};
use crate::paths;

/// Checks that a prompt file can be read more than once, and returns its absolute path.
pub(super) fn prompt_file(typed: &Path) -> Result<PathBuf> {
    readable_file("prompt file", typed)
}

/// As [`prompt_file`], for a file that messages call `what`.
pub(super) fn readable_file(what: &str, typed: &Path) -> Result<PathBuf> {
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
    // A pipe can be read only once; /dev/null is as good as an empty file.
    let again = kind.is_file() || typed == Path::new("/dev/null");
    if !again || File::open(typed).is_err() {
        return Err(unreadable());
    }
    absolute(typed)
}

/// Returns the absolute form of a path that the user typed ([`paths::pin`]).
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    paths::pin(path).map_err(|e| failed("resolve", path, e))
}

pub(super) fn directory(typed: Option<&Path>) -> Result<PathBuf> {
    let path = match typed {
        Some(path) => absolute(path)?,
        None => current_dir()?,
    };
    if path.is_dir() {
        Ok(path)
    } else {
        Err(Error::invalid(format!("no such directory: {}", path.display())))
    }
}

pub(super) fn current_dir() -> Result<PathBuf> {
    std::env::current_dir().map_err(|e| Error::system("cannot use the current directory", e))
}
