//! Writing a file whole or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
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

/// As [`write_atomic`]; gives what the system says of the new file, taken before anybody else can see it.
pub(super) fn write_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<Metadata> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary =
        path.with_file_name(format!(".{}.{}-{count}{ENDING}", file_name(path), std::process::id()));
    let written = fill(&temporary, write).and_then(|metadata| {
        fs::rename(&temporary, path)?;
        Ok(metadata)
    });
    match written {
        Ok(metadata) => {
            sync_dir(path.parent().unwrap_or(Path::new("/")))?;
            Ok(metadata)
        }
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
    }
}

fn fill(temporary: &PathBuf, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Metadata> {
    // Truncated, not `create_new`: a left-over of a dead process with our pid must not stop us.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(temporary)?;
    write(&mut file)?;
    file.sync_all()?;
    file.metadata()
}

/// True for the temporary file of a write, finished or not.
pub(super) fn is_temporary(path: &Path) -> bool {
    let name = file_name(path);
    name.starts_with('.') && name.ends_with(ENDING)
}
