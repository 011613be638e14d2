//! Reads and writes single files: a read is bounded, a write happens whole or not at all.
//!
//! The store, the wrapper, the hooks and tmux's configuration use it. It does not decide where files are
//! ([`crate::paths`]) or interpret them. Also detects network file systems.
//!
//! A write goes to a temporary file in the same directory, which is then renamed. [`write_atomic`] waits for the disk:
//! use it for data that is needed after a power cut. [`write_unsynced`] does not wait: waiting takes most
//! of the time between two iterations. Its file survives a killed daemon, but perhaps not a power cut. That is enough
//! for facts about panes, which do not survive one either.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::statfs::statfs;
use sha2::{Digest, Sha256};

/// The suffix of a file that is being written: `.NAME.PID-N.tmp`.
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Writes `bytes` to `path` with mode 0600 and waits until the file and its directory are on the disk. After a failure
/// the earlier file is still there and the temporary file is gone.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, |file| file.write_all(bytes)).map(drop)
}

/// Writes as [`write_atomic`] does, but does not wait for the disk. Readers see the old file or the new one. After a
/// power cut there may be either of them, or an empty file.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, |temporary| create(temporary)?.write_all(bytes))
}

/// Writes as [`write_atomic`] does. Returns the metadata of the new file from before another process could open it.
pub(crate) fn write_with(
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

/// Calls `fill` to make a temporary file and renames that file to `path`. After a failure the temporary file is gone.
pub(crate) fn replace<T>(path: &Path, fill: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let temporary = temporary_of(path);
    let done = fill(&temporary).and_then(|filled| fs::rename(&temporary, path).map(|()| filled));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

/// Writes a new file. Readers see all of it or none. Fails with [`io::ErrorKind::AlreadyExists`] if the path exists.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_of(path);
    let written = fs::write(&temporary, bytes).and_then(|()| fs::hard_link(&temporary, path));
    let _ = fs::remove_file(&temporary);
    written
}

/// A name beside the path that no other write uses.
fn temporary_of(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let (name, pid) = (file_name(path), std::process::id());
    path.with_file_name(format!(".{name}.{pid}-{count}{TEMPORARY_SUFFIX}"))
}

/// Creates a file with mode 0600, or empties the one that is there.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    // Truncates instead of `create_new`: a dead process with our pid may have left a temporary file.
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Opens a file for reading and writing. Creates it with mode 0600 if it does not exist.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of bytes as hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Makes a finished rename or removal in `dir` durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Whether `path` is the temporary file of a write, finished or not.
pub(crate) fn is_temporary(path: &Path) -> bool {
    let name = file_name(path);
    name.starts_with('.') && name.ends_with(TEMPORARY_SUFFIX)
}

/// The process that writes, or wrote, a temporary file.
pub(crate) fn writer_of(path: &Path) -> Option<i32> {
    let name = file_name(path).strip_suffix(TEMPORARY_SUFFIX).filter(|_| is_temporary(path))?;
    name.rsplit_once('-')?.0.rsplit_once('.')?.1.parse().ok()
}

/// The entries of a directory, sorted by name; empty if it cannot be read.
pub(crate) fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(list) = fs::read_dir(dir) else { return vec![] };
    let mut found: Vec<_> = list.flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The outcome of a call for a file or directory; `None` if it does not exist.
pub(crate) fn if_exists<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The file's name as text; empty when the path has none.
pub(crate) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Opens a regular file for reading. Others may have put anything at `path`. Fails with `InvalidInput` if it is not a
/// regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    // Without this flag, opening a FIFO waits for its writer.
    let flags = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

/// Reads a whole regular file of at most `limit` bytes. `/dev/null` counts as an empty file. Other users may have put
/// any file at `path`: a daemon must neither hang on a FIFO nor read a device. Fails with `InvalidInput` if it is not a
/// regular file, and with `FileTooLarge` over the limit.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = match open_regular(path) {
        Err(_) if path.canonicalize().is_ok_and(|path| path == Path::new("/dev/null")) => return Ok(vec![]),
        opened => opened?,
    };
    let mut bytes = vec![];
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

/// Whether the file system of `path`, or of its nearest existing parent, is a network file system.
pub(crate) fn is_network(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| Some((path, statfs(path).ok()?)));
    found.is_some_and(|(path, found)| is_network_kind(path, &found))
}

#[cfg(target_os = "linux")]
fn is_network_kind(path: &Path, found: &nix::sys::statfs::Statfs) -> bool {
    // The type of the number differs between systems; the number itself has 32 bits.
    let magic = found.filesystem_type().0 as u64;
    let device = fs::metadata(path).map_or(0, |found| found.dev());
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    swarm_state::owner::is_network(magic, None)
        && swarm_state::owner::is_network(magic, kind_of(&mounts(), device).as_deref())
}

#[cfg(not(target_os = "linux"))]
fn is_network_kind(_path: &Path, found: &nix::sys::statfs::Statfs) -> bool {
    !found.flags().contains(nix::mount::MntFlags::MNT_LOCAL)
}

/// The name of the file system on a device, from the list of mounts.
fn kind_of(mounts: &str, device: u64) -> Option<String> {
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let wanted = format!("{major}:{minor}");
    let mut found = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(&wanted));
    let (_, rest) = found.next_back()?.split_once(" - ")?;
    rest.split(' ').next().map(str::to_owned)
}

/// The file that marks a directory as shared between hosts, for file systems that swarm does not recognize.
pub(crate) const SHARED_MARK: &str = "shared";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read_bounded(&file, 5).unwrap(), b"12345");
        assert_eq!(read_bounded(&file, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [&fifo, dir.path(), Path::new("/dev/zero")] {
            assert!(read_bounded(path, 5).is_err(), "{}", path.display());
        }
        assert_eq!(read_bounded(Path::new("/dev/null"), 5).unwrap(), b"");
        let missing = read_bounded(&dir.path().join("missing"), 5).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn file_system_type_is_found_by_device() {
        let mounts = "36 35 0:41 / /home rw,relatime shared:1 - fuse.sshfs me@x:/ rw\n\
                      37 35 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      broken\n";
        let device = |major, minor| nix::sys::stat::makedev(major, minor);
        assert_eq!(kind_of(mounts, device(0, 41)).as_deref(), Some("fuse.sshfs"));
        assert_eq!(kind_of(mounts, device(8, 1)).as_deref(), Some("ext4"));
        assert_eq!(kind_of(mounts, device(8, 2)), None);
    }

    #[test]
    fn local_directory_is_not_a_network_file_system() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_network(dir.path()));
        assert!(!is_network(&dir.path().join("not/there")));
    }
}
