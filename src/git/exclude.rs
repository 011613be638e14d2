//! The patterns of a repository that git ignores, in addition to those in its tree.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::run::{SHORT_TIMEOUT, git};
use crate::error::{Error, Result};

/// Adds a pattern to the `info/exclude` of the repository that holds `dir`. Does nothing outside a repository.
///
/// # Errors
/// When the file cannot be written.
pub(crate) async fn exclude(dir: &Path, pattern: &str) -> Result<()> {
    let said =
        git(dir, SHORT_TIMEOUT, &["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"])
            .await?;
    if !said.ok {
        return Ok(());
    }
    let path = said.path();
    let trouble = |e| Error::system(format!("cannot write '{}'", path.display()), e);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(trouble(error)),
    };
    if text.lines().any(|line| line.trim() == pattern) {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(trouble)?;
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).map_err(trouble)?;
    file.write_all(format!("{gap}{pattern}\n").as_bytes()).map_err(trouble)
}
