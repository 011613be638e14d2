//! Changes files in the tree of an agent.
//!
//! Every write of swarm into a tree while its loop runs goes through [`TreeFiles`]. Outside of a Docker sandbox, it
//! changes the files themselves. A Docker sandbox ignores changes outside of files that it has, so they are changed
//! inside, and this waits until they are outside too. Used by the loops.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use swarm_state::docker::{CREATE_SCRIPT, PUT_SCRIPT};

use super::docker::DockerSandbox;
use crate::files::{create, replace};

/// How long a change inside may take until it is outside, and how often to look.
const SYNC_TIMEOUT: Duration = Duration::from_secs(15);
const SYNC_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The way to the files of a tree. A change fails with the system's error, or docker's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TreeFiles {
    docker: Option<DockerSandbox>,
}

impl TreeFiles {
    /// The way into the sandbox, or the direct one.
    pub(crate) fn new(docker: Option<DockerSandbox>) -> Self {
        Self { docker }
    }

    /// The sandbox if it runs. One that was stopped reads the files outside at its next start.
    fn running(&self) -> Option<&DockerSandbox> {
        self.docker.as_ref().filter(|docker| docker.is_running())
    }

    /// Writes a file as a whole or not at all, and its directory. With `sync`, waits for the disk.
    pub(crate) fn put(&self, path: &Path, text: &[u8], mode: u32, sync: bool) -> io::Result<()> {
        if let Some(docker) = self.running() {
            let arguments = [&*path.to_string_lossy(), &format!("{mode:o}"), &text.len().to_string()];
            change(docker, PUT_SCRIPT, &arguments, Some(text.to_vec()))?;
            return until(path, || fs::read(path).is_ok_and(|found| found == text));
        }
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        replace(path, |temporary| {
            let mut file = create(temporary)?;
            file.set_permissions(Permissions::from_mode(mode))?;
            file.write_all(text)?;
            if sync { file.sync_all() } else { Ok(()) }
        })
    }

    /// Writes a file that must not exist.
    pub(crate) fn create(&self, path: &Path, text: &[u8]) -> io::Result<()> {
        if let Some(docker) = self.running() {
            change(docker, CREATE_SCRIPT, &[&*path.to_string_lossy()], Some(text.to_vec()))?;
            return until(path, || fs::read(path).is_ok_and(|found| found == text));
        }
        let mut new = fs::File::options();
        new.write(true).create_new(true).custom_flags(nix::libc::O_NOFOLLOW);
        new.open(path)?.write_all(text)
    }

    pub(crate) fn create_dir(&self, path: &Path) -> io::Result<()> {
        match self.running() {
            Some(docker) => change(docker, r#"mkdir -- "$1""#, &[&*path.to_string_lossy()], None),
            None => fs::create_dir(path),
        }
    }

    /// Removes a file, or a directory with everything in it.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        if let Some(docker) = self.running() {
            let removed = change(docker, r#"rm -rf -- "$1""#, &[&*path.to_string_lossy()], None);
            return removed.and_then(|()| until(path, || path.symlink_metadata().is_err()));
        }
        match path.symlink_metadata()?.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        }
    }

    pub(crate) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        match self.running() {
            // Others are not missed, so a removal that fails costs no call.
            Some(_) if fs::read_dir(path)?.next().is_some() => Err(ErrorKind::DirectoryNotEmpty.into()),
            Some(docker) => change(docker, r#"rmdir -- "$1""#, &[&*path.to_string_lossy()], None),
            None => fs::remove_dir(path),
        }
    }

    /// Moves a file out of the tree, or under another name if that is on another disk. `outside` is not in the sandbox.
    pub(crate) fn move_out(&self, path: &Path, outside: &Path) -> io::Result<()> {
        let aside = path.with_file_name(outside.file_name().unwrap_or_default());
        let Some(docker) = self.running() else {
            return fs::rename(path, outside).or_else(|_| fs::rename(path, aside));
        };
        if path.symlink_metadata()?.is_file() && fs::copy(path, outside).is_ok() {
            return self.remove(path);
        }
        let arguments = [&*path.to_string_lossy(), &*aside.to_string_lossy()];
        change(docker, r#"mv -- "$1" "$2""#, &arguments, None)?;
        until(path, || path.symlink_metadata().is_err())
    }
}

fn change(
    docker: &DockerSandbox,
    script: &str,
    arguments: &[&str],
    input: Option<Vec<u8>>,
) -> io::Result<()> {
    docker.script(script, arguments, input).map(drop).map_err(io::Error::other)
}

/// Waits until a change inside is outside.
fn until(path: &Path, is_done: impl Fn() -> bool) -> io::Result<()> {
    let end = Instant::now() + SYNC_TIMEOUT;
    while !is_done() {
        if Instant::now() > end {
            let seconds = SYNC_TIMEOUT.as_secs();
            let text = format!("'{}' was not synchronized in {seconds} s", path.display());
            return Err(io::Error::other(text));
        }
        std::thread::sleep(SYNC_POLL_INTERVAL);
    }
    Ok(())
}
