//! A settings file of somebody else's: read, changed whole or not at all, and given back as it was.
//!
//! Used by [`super::install`] and [`super::plugin`]. What was there before the first change is kept in
//! `$SWARM_DIR/hooks/`, with a hash of what was written: when nobody has changed the file since, taking everything of
//! ours out gives back its former bytes, or no file where there was none. Else only ours is taken out. A link stays
//! a link (what it leads to is changed), and the mode stays. Deliberately absent: what is changed ([`super::merge`]).

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fs2::FileExt;
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::layout;
use super::merge::{self, Shape};
use crate::error::{Error, ErrorCode, Result};
use crate::files;
use crate::paths::{Paths, private_dir};

/// A settings file is a few KB; nobody's has a thousand times as much.
const SIZE_MAX: u64 = 8 << 20;

/// How many links lead to a file at most, as in Linux.
const LINKS_MAX: usize = 40;

/// What a change came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is as it was.
    None,
    /// There was no file; now there is.
    Created,
    /// It has other contents now.
    Changed,
    /// It has its former contents, byte for byte.
    Restored,
    /// It was ours alone, and is gone.
    Removed,
}

/// What is kept of a file that we have changed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// Which file.
    file: PathBuf,
    /// There was none before.
    created: bool,
    /// The directory for it was made too.
    made_dir: bool,
    /// Its former contents.
    original: Option<String>,
    /// SHA-256 of what we wrote last.
    written: String,
}

/// What stands in a file.
#[derive(Debug)]
struct Present {
    text: String,
    value: Value,
    layout: layout::Layout,
    mode: u32,
}

/// The value in `file`; `None` when there is no such file. Changes nothing.
///
/// # Errors
/// When it cannot be read, or is no JSON.
pub fn read(file: &Path) -> Result<Option<Value>> {
    Ok(present(&target(file)?)?.map(|present| present.value))
}

/// Changes `file` by `edit`, which gets its value, `{}` where there is none.
///
/// # Errors
/// When the file is no JSON, has a shape that `edit` refuses, is read-only or cannot be written. It is then untouched.
pub fn change(
    paths: &Paths,
    file: &Path,
    edit: impl FnOnce(&Value) -> Result<Value, Shape>,
) -> Result<Change> {
    let file = target(file)?;
    let dir = paths.hooks_dir();
    private_dir(&dir)?;
    let _lock = lock(&dir, "lock")?;
    let before = present(&file)?;
    let empty = Value::Object(serde_json::Map::new());
    let value = before.as_ref().map_or(&empty, |before| &before.value);
    let after = edit(value).map_err(|Shape(what)| not_ours_to_change(&file, &what))?;
    if same(value, &after) {
        return Ok(Change::None);
    }
    if let Some(before) = &before {
        writable(&file, before.mode)?;
    }
    let place = dir.join(format!("{}.json", &hash(file.as_os_str().as_encoded_bytes())[..32]));
    let mut kept = kept(&place, &file, before.as_ref());
    if merge::has_ours(&after) {
        kept.made_dir |= make_dir(&file)?;
        return write_ours(&place, kept, &file, before.as_ref(), &after);
    }
    let change = give_back(&kept, &file, before.as_ref(), &after)?;
    let _ = fs::remove_file(&place);
    Ok(change)
}

/// What is kept of `file`, or what is to be kept from now on.
fn kept(place: &Path, file: &Path, before: Option<&Present>) -> Kept {
    let known: Option<Kept> = fs::read(place).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let fresh = !before.is_some_and(|before| merge::has_ours(&before.value));
    match known {
        Some(mut kept) if !fresh => {
            if before.is_none_or(|before| hash(before.text.as_bytes()) != kept.written) {
                kept.original = None;
            }
            kept
        }
        // Ours is there, and what was there before it is not known.
        None if !fresh => Kept { file: file.to_owned(), ..Kept::default() },
        _ => Kept {
            file: file.to_owned(),
            created: before.is_none(),
            original: before.map(|before| before.text.clone()),
            ..Kept::default()
        },
    }
}

fn write_ours(
    place: &Path,
    mut kept: Kept,
    file: &Path,
    before: Option<&Present>,
    after: &Value,
) -> Result<Change> {
    let text = rendered(file, before, after)?;
    // Of what was made of a file by its owner since, only the file itself is ours to take away again.
    if kept.original.is_none() && before.is_some_and(|before| hash(before.text.as_bytes()) != kept.written) {
        kept.written = String::new();
    } else {
        kept.written = hash(text.as_bytes());
    }
    let json = serde_json::to_vec_pretty(&kept).map_err(|e| Error::system("cannot keep the original", e))?;
    files::write_atomic(place, &json).map_err(|e| failed("write", place, e))?;
    replace(file, before, &text)?;
    Ok(if before.is_none() { Change::Created } else { Change::Changed })
}

/// The last of ours goes.
fn give_back(kept: &Kept, file: &Path, before: Option<&Present>, after: &Value) -> Result<Change> {
    let untouched = before.is_some_and(|before| hash(before.text.as_bytes()) == kept.written);
    let empty = after.as_object().is_some_and(serde_json::Map::is_empty);
    if kept.created && (untouched || empty) {
        fs::remove_file(file).map_err(|e| failed("remove", file, e))?;
        if let (true, Some(dir)) = (kept.made_dir, file.parent()) {
            // Only when it is empty.
            let _ = fs::remove_dir(dir);
        }
        return Ok(Change::Removed);
    }
    if let (true, Some(original)) = (untouched, &kept.original) {
        replace(file, before, original)?;
        return Ok(Change::Restored);
    }
    replace(file, before, &rendered(file, before, after)?)?;
    Ok(Change::Changed)
}

fn rendered(file: &Path, before: Option<&Present>, after: &Value) -> Result<String> {
    let layout = before.map_or_else(layout::Layout::default, |before| before.layout.clone());
    layout::render(after, &layout).map_err(|e| failed("write", file, e))
}

/// Equal with the order of keys, which `==` does not look at.
fn same(a: &Value, b: &Value) -> bool {
    a == b && serde_json::to_vec(a).ok() == serde_json::to_vec(b).ok()
}

/// Where `file` leads to. A link to nowhere leads to the file that it names.
fn target(file: &Path) -> Result<PathBuf> {
    let mut file = file.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&file) else { return Ok(crate::paths::resolve(&file)) };
        file = file.parent().unwrap_or(Path::new("/")).join(next);
    }
    Err(Error::invalid(format!("'{}' is a link that leads to itself", file.display())))
}

fn present(file: &Path) -> Result<Option<Present>> {
    let metadata = match fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", file, error)),
    };
    if !metadata.is_file() || metadata.len() > SIZE_MAX {
        let text = format!("'{}' is no settings file", file.display());
        return Err(Error::invalid(text).hint("move it away, or write the hooks yourself"));
    }
    let bytes = fs::read(file).map_err(|e| failed("read", file, e))?;
    let parsed = String::from_utf8(bytes).map_err(|e| e.to_string());
    let parsed = parsed.and_then(|text| layout::parse(&text).map(|(value, layout)| (text, value, layout)));
    let (text, value, layout) = parsed.map_err(|cause| {
        let text = format!("'{}' is no valid JSON ({cause}), and was not touched", file.display());
        Error::invalid(text).hint("mend it (JSON has no comments and no comma before a closing bracket)")
    })?;
    Ok(Some(Present { text, value, layout, mode: metadata.mode() & 0o7777 }))
}

/// Who takes the right to write from a file of his wants it as it is, also from root, whom the system would let.
fn writable(file: &Path, mode: u32) -> Result<()> {
    if mode & 0o222 != 0 && access(file, AccessFlags::W_OK).is_ok() {
        return Ok(());
    }
    let text = format!("'{}' is read-only, and was not touched", file.display());
    Err(Error::new(ErrorCode::System, text).hint("allow writing to it, or write the hooks yourself"))
}

/// Puts `text` in the place of what `before` saw there.
fn replace(file: &Path, before: Option<&Present>, text: &str) -> Result<()> {
    let now = match fs::read(file) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed("read", file, error)),
    };
    if now.as_deref() != before.map(|before| before.text.as_bytes()) {
        let text = format!("somebody else changed '{}' just now", file.display());
        return Err(Error::new(ErrorCode::Conflict, text).hint("try again"));
    }
    replace_with(file, before.map(|before| before.mode), text).map_err(|e| failed("write", file, e))
}

/// Writes `text` to `file` with `mode`, whole or not at all.
pub(super) fn replace_with(file: &Path, mode: Option<u32>, text: &str) -> io::Result<()> {
    files::replace(file, |temporary| fill(temporary, mode, text))
}

fn fill(temporary: &Path, mode: Option<u32>, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    // What may hold secrets is never open to others, not even for a moment.
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

/// Makes the directory of `file`; true when it was not there.
fn make_dir(file: &Path) -> Result<bool> {
    let dir = file.parent().unwrap_or(Path::new("/"));
    if dir.is_dir() {
        return Ok(false);
    }
    fs::create_dir_all(dir).map_err(|e| failed("make", dir, e))?;
    Ok(true)
}

/// One change at a time.
pub(super) fn lock(dir: &Path, name: &str) -> Result<File> {
    let path = dir.join(name);
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|e| failed("open", &path, e))?;
    file.lock_exclusive().map_err(|e| failed("lock", &path, e))?;
    Ok(file)
}

pub(super) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn not_ours_to_change(file: &Path, what: &str) -> Error {
    let text = format!("'{}' was not touched: {what}", file.display());
    Error::invalid(text).hint("look at it, and write the hooks yourself if it has to be so")
}

pub(super) fn failed(verb: &str, path: &Path, cause: impl std::fmt::Display) -> Error {
    Error::system(format!("cannot {verb} '{}'", path.display()), cause)
}

#[cfg(test)]
mod tests;
