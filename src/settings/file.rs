//! Reads the text of a settings file.

use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::files::read_bounded;

/// The largest settings file.
pub(super) const MAX_SETTINGS_BYTES: u64 = 1024 * 1024;

/// A file's text; `None` if it is missing and not required.
pub(super) fn read_file(path: &Path, required: bool) -> Result<Option<String>> {
    let text = read_bounded(path, MAX_SETTINGS_BYTES).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    });
    match text {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_absent(&error) && path.is_symlink() => {
            let message =
                format!("the settings file '{}' is a link to a file that does not exist", path.display());
            Err(Error::invalid(message).hint("create that file, or remove the link"))
        }
        Err(error) if !required && is_absent(&error) => Ok(None),
        Err(error) => Err(Error::invalid(format!("cannot read settings file '{}': {error}", path.display()))),
    }
}

/// The file does not exist, also because a directory above it is a file.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
