//! Keeps a copy of swarm's executable, from which helpers start: wrapper, recorder, and agents' hooks.
//!
//! A helper may start long after the daemon. By then the installed executable may be gone or have a newer version,
//! for example when a package manager installs each version into a folder of its own and removes the old one. So each
//! daemon copies its own executable to a fixed path in its directory, and all helpers start from there. Helpers
//! therefore always have the version of the last daemon, also the hooks of an older run.
//!
//! If no program can be started from that directory (disk full, mounted `noexec`), the installed path is used.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files::replace;
use crate::paths::Paths;
use crate::procs;

/// How much of two executables is read at once to compare them.
const COMPARED_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Helper {
    /// Its path when the daemon started.
    installed: PathBuf,
    /// Its place in the daemon's directory.
    placed: PathBuf,
}

impl Helper {
    /// Puts the program of this process into its place. Fails when the system does not report which program this is.
    pub(crate) fn new(paths: &Paths) -> Result<Self> {
        let installed = installed().map_err(|e| Error::system("cannot find this program", e))?;
        let helper = Self { installed, placed: paths.helper() };
        // The copy may never have reached the disk before a power cut, so its size and time do not prove it.
        let own = own_executable(&helper.installed);
        if !(is_same(&own, &helper.placed) && has_same_bytes(&own, &helper.placed)) {
            helper.put().unwrap_or_else(|error| helper.warn(&error));
        }
        Ok(helper)
    }

    /// The program to start. If it was removed, it is placed again.
    pub(crate) fn path(&self) -> &Path {
        let there = is_same(&own_executable(&self.installed), &self.placed);
        let put = if there { Ok(()) } else { self.put() };
        // Also refused on a file system from which nothing may be executed.
        match put.and_then(|()| procs::can_execute(&self.placed)) {
            Ok(()) => &self.placed,
            Err(error) => {
                self.warn(&error);
                &self.installed
            }
        }
    }

    fn warn(&self, error: &io::Error) {
        let (place, instead) = (self.placed.display(), self.installed.display());
        tracing::warn!(%place, %error, %instead, "cannot copy swarm's program; panes and hooks run the installed one");
    }

    fn put(&self) -> io::Result<()> {
        let own = own_executable(&self.installed);
        let dir = self.placed.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        replace(&self.placed, |part| self.write(&own, part))
    }

    fn write(&self, own: &Path, part: &Path) -> io::Result<()> {
        let mut from = fs::File::open(own)?;
        let found = from.metadata()?;
        // A link shares its mode with the installed program. Where that is the user's alone, so may the link be;
        // otherwise a `chmod -R` of the directory would take the program from others.
        let is_private = found.mode() & 0o077 == 0;
        if is_private && is_same_file(own, &self.installed) && fs::hard_link(&self.installed, part).is_ok() {
            return Ok(());
        }
        let mut to = fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(part)?;
        io::copy(&mut from, &mut to)?;
        to.set_modified(found.modified()?)
    }
}

/// The path that this process was started from. Linux marks one that is gone or replaced.
fn installed() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").map(PathBuf::from).unwrap_or(path))
}

/// A path to this process's own executable. On Linux, it works even if the file was deleted or replaced.
fn own_executable(installed: &Path) -> PathBuf {
    if cfg!(target_os = "linux") { PathBuf::from("/proc/self/exe") } else { installed.to_owned() }
}

/// Whether `copy` is `own`, by a link or as [`Helper::write`] copies it.
fn is_same(own: &Path, copy: &Path) -> bool {
    let (Ok(own), Ok(copy)) = (fs::metadata(own), fs::metadata(copy)) else { return false };
    let linked = (own.dev(), own.ino()) == (copy.dev(), copy.ino());
    linked || own.len() == copy.len() && own.modified().ok() == copy.modified().ok()
}

/// Whether both can be read to their ends and are equal. Reading is many times faster than writing a copy, which
/// delays each start of a daemon by seconds where the disk is busy.
fn has_same_bytes(one: &Path, other: &Path) -> bool {
    if is_same_file(one, other) {
        return true;
    }
    let open = |path| fs::File::open(path).map(|file| BufReader::with_capacity(COMPARED_BYTES, file));
    let (Ok(mut one), Ok(mut other)) = (open(one), open(other)) else { return false };
    loop {
        let (Ok(left), Ok(right)) = (one.fill_buf(), other.fill_buf()) else { return false };
        let length = left.len().min(right.len());
        if left[..length] != right[..length] || length == 0 {
            return left.is_empty() && right.is_empty();
        }
        one.consume(length);
        other.consume(length);
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    id(one).is_some_and(|one| id(other) == Some(one))
}
