//! Reading a file that somebody else may have put there.
//!
//! A daemon must not hang on a FIFO or swallow a device: only regular files (and `/dev/null`, which is an
//! honest way to say "nothing") are read, and only up to a limit.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads a whole regular file of at most `limit` bytes.
///
/// # Errors
/// The system's own; `InvalidInput` for what is no regular file; `FileTooLarge` over the limit.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a FIFO waits for its writer, without this.
    let flags = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        let is_null = path.canonicalize().is_ok_and(|path| path == Path::new("/dev/null"));
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
        return if is_null { Ok(vec![]) } else { Err(error) };
    }
    let mut bytes = vec![];
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "12345").unwrap();
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
}
