//! The patterns of a repository that git ignores, in addition to those in its tree.

use std::fs;
use std::path::{Path, PathBuf};

use super::run::{SHORT_TIMEOUT, git};
use crate::error::{Error, Result};

/// Adds a pattern to the `info/exclude` of the repository that holds `dir`. Does nothing outside a repository.
pub(crate) async fn exclude(dir: &Path, pattern: &str) -> Result<()> {
    let Some((path, text)) = exclude_text(dir, pattern).await? else { return Ok(()) };
    let dir = path.parent().unwrap_or(&path);
    let written = fs::create_dir_all(dir).and_then(|()| fs::write(&path, text));
    written.map_err(|e| Error::system(format!("cannot write '{}'", path.display()), e))
}

/// The path and the text of that file with the pattern. `None` outside a repository, or if it has the pattern.
pub(crate) async fn exclude_text(dir: &Path, pattern: &str) -> Result<Option<(PathBuf, String)>> {
    let said =
        git(dir, SHORT_TIMEOUT, &["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"])
            .await?;
    if !said.ok {
        return Ok(None);
    }
    let path = said.path();
    let trouble = |e| Error::system(format!("cannot read '{}'", path.display()), e);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(trouble(error)),
    };
    if text.lines().any(|line| line.trim() == pattern) {
        return Ok(None);
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Ok(Some((path, format!("{text}{gap}{pattern}\n"))))
}
