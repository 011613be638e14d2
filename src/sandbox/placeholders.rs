//! Files that are created so that a mount can protect them: a missing file cannot be protected.
//!
//! Some of them exist only while a sandbox does. Several sandboxes in one checkout share them: each user holds a shared
//! lock of the file, and a user with an exclusive one deletes it. The lock ends with its process, so a killed process
//! blocks no other. Used by [`super::WorkerSandbox`] and the wrapper.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs2::FileExt;
use nix::libc::O_NOFOLLOW;

use crate::error::{Error, ErrorCode, Result};
use crate::files::{if_exists, write_new};

/// The text of a temporary file: `commondir` has to name its own directory.
const TEMPORARY_TEXT: &str = ".\n";
/// How often a placeholder is tried that another process deletes at the moment.
const MAX_TRIES: u32 = 100;
/// The pause between two of these tries.
const TRY_INTERVAL: Duration = Duration::from_millis(10);

/// Temporary placeholders in use. Dropped, it deletes those without other users.
#[derive(Debug, Default)]
pub(crate) struct HeldPlaceholders(Vec<(PathBuf, File)>);

impl HeldPlaceholders {
    /// Creates the missing ones: empty directories with the name `.git`, and files. Blocks for a second at most.
    /// Fails with [`ErrorCode::Sandbox`], which names the path and the reason.
    pub(crate) fn hold(paths: Vec<PathBuf>) -> Result<Self> {
        let mut held = Self::default();
        for path in paths {
            let file = hold(&path).map_err(|error| cannot_protect(&path, &error))?;
            held.0.push((path, file));
        }
        Ok(held)
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.0.iter().map(|(path, _)| path.clone()).collect()
    }
}

impl Drop for HeldPlaceholders {
    fn drop(&mut self) {
        for (path, file) in &self.0 {
            // Fails while another sandbox uses it. It does no harm if the file stays.
            if file.try_lock_exclusive().is_ok() && is_at(file, path) {
                let _ = match std::fs::read(path) {
                    Ok(text) if text == TEMPORARY_TEXT.as_bytes() => std::fs::remove_file(path),
                    Ok(_) => Ok(()),
                    // Only an empty directory.
                    Err(_) => std::fs::remove_dir(path),
                };
            }
        }
    }
}

fn hold(path: &Path) -> io::Result<File> {
    for _ in 0..MAX_TRIES {
        create(path, (!path.ends_with(".git")).then_some(TEMPORARY_TEXT))?;
        match File::options().read(true).custom_flags(O_NOFOLLOW).open(path) {
            // The one who deletes it holds an exclusive lock until it is gone.
            Ok(file) if FileExt::try_lock_shared(&file).is_ok() && is_at(&file, path) => return Ok(file),
            Ok(_) => std::thread::sleep(TRY_INTERVAL),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("another program holds a lock of it"))
}

/// Whether the path is still that of the open file.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: std::fs::Metadata| (found.dev(), found.ino());
    let opened = file.metadata().map(id).ok();
    opened.is_some() && opened == path.symlink_metadata().map(id).ok()
}

/// Creates a file with a text, or a directory, that stays, if the path is missing. Fails with [`ErrorCode::Sandbox`],
/// which names the path and the reason.
pub(super) fn create_lasting(path: &Path, text: Option<&str>) -> Result<()> {
    create(path, text).map_err(|error| cannot_protect(path, &error))
}

fn cannot_protect(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorCode::Sandbox, format!("cannot protect '{}': {error}", path.display()))
}

/// A symbolic link is refused: a mount would protect its target instead.
fn create(path: &Path, text: Option<&str>) -> io::Result<()> {
    match if_exists(path.symlink_metadata())? {
        Some(found) if found.is_symlink() => {
            return Err(io::Error::other("it is a symbolic link (replace the link by its target)"));
        }
        Some(_) => return Ok(()),
        None => {}
    }
    let created = match text {
        None => std::fs::create_dir(path),
        Some(text) => write_new(path, text.as_bytes()),
    };
    match created {
        // Another sandbox was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold_one(path: &Path) -> HeldPlaceholders {
        HeldPlaceholders::hold(vec![path.to_owned()]).unwrap()
    }

    #[test]
    fn placeholder_exists_while_a_sandbox_uses_it() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["commondir", ".git"] {
            let path = dir.path().join(name);
            let first = hold_one(&path);
            let second = hold_one(&path);
            drop(first);
            assert!(path.exists(), "{name}");
            drop(second);
            assert!(!path.exists(), "{name}");
        }
    }

    #[test]
    fn file_that_replaced_a_placeholder_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commondir");
        let held = hold_one(&path);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "..\n").unwrap();
        drop(held);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "..\n");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        assert!(HeldPlaceholders::hold(vec![link]).is_err());
    }

    #[test]
    fn concurrent_users_of_a_placeholder_always_find_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commondir");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let held = hold_one(&path);
                        assert_eq!(std::fs::read_to_string(&path).unwrap(), TEMPORARY_TEXT);
                        drop(held);
                    }
                });
            }
        });
        assert!(!path.exists());
    }
}
