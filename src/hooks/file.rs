//! Reads and changes an agent's settings file atomically, and restores the original.
//!
//! Used by [`super::install`] and [`super::plugin`]. The content before the first change is kept in
//! `$SWARM_DIR/hooks/`, with a hash of swarm's version. If the file has not changed since, removing swarm's last
//! entry restores the original bytes, or removes a file that swarm created. Otherwise only swarm's entries are removed.
//! A symbolic link stays a link (its target is changed), and the mode is kept. Deliberately absent: the change itself
//! ([`super::merge`]).

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fs2::FileExt;
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::layout;
use super::merge::{self, ShapeError};
use crate::error::{Error, ErrorCode, Result, failed};
use crate::files::{self, if_exists, sha256};
use crate::paths::{Paths, private_dir};

/// The maximum size of a settings file. Real ones have a few KB.
const MAX_HOOKS_FILE_BYTES: u64 = 8 << 20;

/// The maximum number of symbolic links on the way to a file, as in Linux.
const MAX_LINKS: usize = 40;

/// The change that was made to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// Nothing changed.
    None,
    /// The file was created.
    Created,
    /// The content was changed.
    Changed,
    /// The original content was restored, byte for byte.
    Restored,
    /// The file, which swarm had created, was removed.
    Removed,
}

/// The data to restore a file that swarm has changed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Backup {
    file: PathBuf,
    /// swarm created the file.
    created: bool,
    /// swarm also created its directory.
    made_dir: bool,
    /// The original content.
    original: Option<String>,
    /// SHA-256 of what swarm wrote last.
    written: String,
}

#[derive(Debug)]
struct FileContent {
    text: String,
    value: Value,
    layout: layout::Layout,
    mode: u32,
}

/// Reads the value in `file`; `None` when the file does not exist. Fails if it cannot be read or is not JSON.
pub fn read(file: &Path) -> Result<Option<Value>> {
    Ok(present(&target(file)?)?.map(|present| present.value))
}

/// Changes `file` with `edit`, which receives its value, or `{}` when the file does not exist. Fails if the file is
/// not JSON, has a structure that `edit` refuses, is read-only or cannot be written. It is then unchanged.
pub fn change(
    paths: &Paths,
    file: &Path,
    edit: impl FnOnce(&Value) -> Result<Value, ShapeError>,
) -> Result<FileChange> {
    let file = target(file)?;
    let dir = paths.hooks_dir();
    let _lock = lock(&dir, "lock")?;
    let before = present(&file)?;
    let empty = Value::Object(serde_json::Map::new());
    let value = before.as_ref().map_or(&empty, |before| &before.value);
    let after = edit(value).map_err(|ShapeError(what)| not_ours_to_change(&file, &what))?;
    if same(value, &after) {
        return Ok(FileChange::None);
    }
    if let Some(before) = &before {
        writable(&file, before.mode)?;
    }
    let place = dir.join(format!("{}.json", &sha256(file.as_os_str().as_encoded_bytes())[..32]));
    let mut kept = kept(&place, &file, before.as_ref());
    if merge::has_ours(&after) {
        kept.made_dir |= make_dir(&file)?;
        return write_ours(&place, kept, &file, before.as_ref(), &after);
    }
    let change = restore(&kept, &file, before.as_ref(), &after)?;
    let _ = fs::remove_file(&place);
    Ok(change)
}

/// Returns the record of `file`, or a new one.
fn kept(place: &Path, file: &Path, before: Option<&FileContent>) -> Backup {
    let known: Option<Backup> = fs::read(place).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let fresh = !before.is_some_and(|before| merge::has_ours(&before.value));
    match known {
        Some(mut kept) if !fresh => {
            if before.is_none_or(|before| sha256(before.text.as_bytes()) != kept.written) {
                kept.original = None;
            }
            kept
        }
        // The file contains swarm's entries, and its original is unknown.
        None if !fresh => Backup { file: file.to_owned(), ..Backup::default() },
        _ => Backup {
            file: file.to_owned(),
            created: before.is_none(),
            original: before.map(|before| before.text.clone()),
            ..Backup::default()
        },
    }
}

fn write_ours(
    place: &Path,
    mut kept: Backup,
    file: &Path,
    before: Option<&FileContent>,
    after: &Value,
) -> Result<FileChange> {
    let text = rendered(file, before, after)?;
    // The user has changed the file since, so its content must not be removed by its hash later.
    if kept.original.is_none() && before.is_some_and(|before| sha256(before.text.as_bytes()) != kept.written)
    {
        kept.written = String::new();
    } else {
        kept.written = sha256(text.as_bytes());
    }
    let json = serde_json::to_vec_pretty(&kept).map_err(|e| Error::system("cannot keep the original", e))?;
    files::write_atomic(place, &json).map_err(|e| failed("write", place, e))?;
    replace(file, before, &text)?;
    Ok(if before.is_none() { FileChange::Created } else { FileChange::Changed })
}

/// Removes swarm's last entries: removes a file that swarm created, else restores the original where possible.
fn restore(kept: &Backup, file: &Path, before: Option<&FileContent>, after: &Value) -> Result<FileChange> {
    let untouched = before.is_some_and(|before| sha256(before.text.as_bytes()) == kept.written);
    let empty = after.as_object().is_some_and(serde_json::Map::is_empty);
    if kept.created && (untouched || empty) {
        fs::remove_file(file).map_err(|e| failed("remove", file, e))?;
        if let (true, Some(dir)) = (kept.made_dir, file.parent()) {
            // Only when it is empty.
            let _ = fs::remove_dir(dir);
        }
        return Ok(FileChange::Removed);
    }
    if let (true, Some(original)) = (untouched, &kept.original) {
        replace(file, before, original)?;
        return Ok(FileChange::Restored);
    }
    replace(file, before, &rendered(file, before, after)?)?;
    Ok(FileChange::Changed)
}

fn rendered(file: &Path, before: Option<&FileContent>, after: &Value) -> Result<String> {
    let layout = before.map_or_else(layout::Layout::default, |before| before.layout.clone());
    layout::render(after, &layout).map_err(|e| failed("write", file, e))
}

/// Whether two values are equal including the order of keys, which `==` ignores.
fn same(a: &Value, b: &Value) -> bool {
    a == b && serde_json::to_vec(a).ok() == serde_json::to_vec(b).ok()
}

/// Resolves symbolic links. A link to a missing file resolves to that file.
fn target(file: &Path) -> Result<PathBuf> {
    let mut file = file.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&file) else { return Ok(crate::paths::resolve(&file)) };
        file = file.parent().unwrap_or(Path::new("/")).join(next);
    }
    Err(Error::invalid(format!("'{}' is a symbolic link in a circle", file.display())))
}

fn present(file: &Path) -> Result<Option<FileContent>> {
    let found = if_exists(fs::metadata(file)).map_err(|e| failed("read", file, e))?;
    let Some(metadata) = found else { return Ok(None) };
    if !metadata.is_file() || metadata.len() > MAX_HOOKS_FILE_BYTES {
        let text = format!("'{}' is not a settings file", file.display());
        return Err(Error::invalid(text).hint("move it away, or add the hooks yourself"));
    }
    let bytes = fs::read(file).map_err(|e| failed("read", file, e))?;
    let parsed = String::from_utf8(bytes).map_err(|e| e.to_string());
    let parsed = parsed.and_then(|text| layout::parse(&text).map(|(value, layout)| (text, value, layout)));
    let (text, value, layout) = parsed.map_err(|cause| {
        let text = format!("'{}' is not valid JSON ({cause}); it was not changed", file.display());
        Error::invalid(text).hint("fix it (JSON has no comments and no comma before a closing bracket)")
    })?;
    Ok(Some(FileContent { text, value, layout, mode: metadata.mode() & 0o7777 }))
}

/// Refuses a read-only file. This includes root, for whom the system would allow the change.
fn writable(file: &Path, mode: u32) -> Result<()> {
    if mode & 0o222 != 0 && access(file, AccessFlags::W_OK).is_ok() {
        return Ok(());
    }
    let text = format!("'{}' is read-only; it was not changed", file.display());
    Err(Error::new(ErrorCode::System, text).hint("make it writable, or add the hooks yourself"))
}

/// Writes `text`, unless the file has changed since `before` was read.
fn replace(file: &Path, before: Option<&FileContent>, text: &str) -> Result<()> {
    let now = if_exists(fs::read(file)).map_err(|e| failed("read", file, e))?;
    if now.as_deref() != before.map(|before| before.text.as_bytes()) {
        let text = format!("another program has just changed '{}'", file.display());
        return Err(Error::new(ErrorCode::Conflict, text).hint("retry"));
    }
    replace_with(file, before.map(|before| before.mode), text).map_err(|e| failed("write", file, e))
}

/// Writes `text` to `file` with `mode`, atomically.
pub(super) fn replace_with(file: &Path, mode: Option<u32>, text: &str) -> io::Result<()> {
    files::replace(file, |temporary| fill(temporary, mode, text))
}

fn fill(temporary: &Path, mode: Option<u32>, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // The file may contain secrets, so it must never be readable by others, not even for a moment.
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode.map_or(0o644, |_| 0o600))
        .open(temporary)?;
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Creates the directory of `file`; returns whether it was missing.
fn make_dir(file: &Path) -> Result<bool> {
    let dir = file.parent().unwrap_or(Path::new("/"));
    let is_missing = !dir.is_dir();
    fs::create_dir_all(dir).map_err(|e| failed("make", dir, e))?;
    Ok(is_missing)
}

/// Locks, so that one process changes files at a time.
pub(super) fn lock(dir: &Path, name: &str) -> Result<File> {
    private_dir(dir)?;
    let path = dir.join(name);
    let file = files::open_or_create(&path).map_err(|e| failed("open", &path, e))?;
    file.lock_exclusive().map_err(|e| failed("lock", &path, e))?;
    Ok(file)
}

pub(super) fn not_ours_to_change(file: &Path, what: &str) -> Error {
    let text = format!("'{}' was not changed: {what}", file.display());
    Error::invalid(text).hint("fix the file, or add the hooks yourself")
}

#[cfg(test)]
mod tests;
