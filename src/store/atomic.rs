//! Writing a file whole or not at all.
//!
//! Two grades: what decides how a worker goes on is on the disk when the call returns. What a daemon that was
//! killed must find again, but not a machine that lost its power, is not waited for: it is about panes, which
//! are gone with the power too, or it is made safe a moment later. Waiting for the disk is most of what stands
//! between two iterations.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{file_name, sync_dir};

/// The ending of a file that is being written: `.NAME.PID-N.tmp`.
const ENDING: &str = ".tmp";

/// Writes `bytes` to `path` (mode 0600): a temporary file beside it, fsync, rename, fsync of the
/// directory. When it fails, what was at `path` is still there and the temporary file is gone.
///
/// # Errors
/// The system's own.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, |file| file.write_all(bytes)).map(drop)
}

/// As [`write_atomic`], but nothing waits for the disk: readers find the old file or the new one, and after a
/// loss of power either of them, or an empty one.
///
/// # Errors
/// The system's own.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, |temporary| create(temporary)?.write_all(bytes))
}

/// As [`write_atomic`]; gives what the system says of the new file, taken before anybody else can see it.
pub(super) fn write_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<Metadata> {
    let metadata = replace(path, |temporary| {
        let mut file = create(temporary)?;
        write(&mut file)?;
        file.sync_all()?;
        file.metadata()
    })?;
    sync_dir(path.parent().unwrap_or(Path::new("/")))?;
    Ok(metadata)
}

/// Fills a temporary file and puts it in the place of `path`. On failure nothing of it is left.
fn replace<T>(path: &Path, fill: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary =
        path.with_file_name(format!(".{}.{}-{count}{ENDING}", file_name(path), std::process::id()));
    let done = fill(&temporary).and_then(|filled| fs::rename(&temporary, path).map(|()| filled));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

fn create(temporary: &Path) -> io::Result<File> {
    // Truncated, not `create_new`: a left-over of a dead process with our pid must not stop us.
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(temporary)
}

/// True for the temporary file of a write, finished or not.
pub(super) fn is_temporary(path: &Path) -> bool {
    let name = file_name(path);
    name.starts_with('.') && name.ends_with(ENDING)
}
