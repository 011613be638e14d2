//! Appends to a file of bounded size: when it is full, it is renamed to `FILE.1`, replacing the earlier one.
//!
//! `daemon.log` and the output kept by `--record` are written this way, each by one process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::file_name;

/// The size at which `daemon.log` is rotated. The two files together take about twice that.
pub const MAX_DAEMON_LOG_BYTES: u64 = 4 << 20;

/// The size at which the output kept by `--record` is rotated. The two files together take twice that.
pub const MAX_RECORD_BYTES: u64 = 32 << 20;

/// The name of a rotated file.
pub(super) fn rotated(path: &Path) -> PathBuf {
    path.with_file_name(format!("{}.1", file_name(path)))
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Appends `input` to `path` until `input` ends, rotating at `limit` bytes. Data that cannot be written is dropped:
/// the writer of `input` must never wait for the disk.
pub fn record(mut input: impl Read, path: &Path, limit: u64) {
    let mut out = open(path).ok();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let size = out.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
        // If the file was moved away, start a new one.
        if size > 0 && size.saturating_add(read as u64) > limit || !path.exists() {
            drop(fs::rename(path, rotated(path)));
            out = open(path).ok();
        }
        let written = out.as_mut().map(|file| file.write_all(&buffer[..read]));
        if !matches!(written, Some(Ok(()))) {
            out = open(path).ok();
        }
    }
}

/// Writes to standard error, the daemon's log. Rotates it if it is the file at `path`, not a terminal or a journal.
#[derive(Clone, Debug)]
pub struct LogWriter {
    path: PathBuf,
}

impl LogWriter {
    /// Makes a writer for the log at `path`.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Rotates a full log and makes the new file standard error. After an error, standard error is unchanged.
    fn rotate_if_full(&self) -> io::Result<()> {
        let own = nix::sys::stat::fstat(io::stderr())?;
        if u64::try_from(own.st_size).unwrap_or(0) < MAX_DAEMON_LOG_BYTES {
            return Ok(());
        }
        let there = fs::symlink_metadata(&self.path)?;
        if (there.dev(), there.ino()) != (own.st_dev, own.st_ino) {
            return Ok(());
        }
        fs::rename(&self.path, rotated(&self.path))?;
        let fresh = open(&self.path)?;
        nix::unistd::dup2_stderr(&fresh)?;
        Ok(())
    }
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Logging goes on even if the rotation fails.
        drop(self.rotate_if_full());
        // A full disk drops the line. After an error, tracing would print to the same file and panic.
        drop(io::stderr().write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_is_complete_across_a_rotation_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.raw");
        let input: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
        record(input.as_slice(), &path, 1 << 20);
        let (old, new) = (fs::read(rotated(&path)).unwrap(), fs::read(&path).unwrap());
        assert!(old.len() <= 1 << 20 && new.len() <= 1 << 20);
        let kept = [old, new].concat();
        assert!(input.ends_with(&kept) && kept.len() > 1 << 20);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        // A second recording is appended.
        record(&b"more"[..], &path, 1 << 20);
        assert!(fs::read(&path).unwrap().ends_with(b"more"));
    }

    #[test]
    fn full_disk_does_not_stop_reading_the_pane() {
        let mut input = io::Cursor::new(vec![b'x'; 1 << 20]);
        record(&mut input, Path::new("/dev/full"), 1 << 20);
        record(&mut input, Path::new("/no/such/directory/a.raw"), 1 << 20);
        assert_eq!(input.position(), 1 << 20);
    }
}
