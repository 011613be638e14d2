//! Logs: a worker's output, run by run, and a loop's `iterations.log`.
//!
//! A worker's log is bounded: at [`MAX_WORKER_LOG_BYTES`] it becomes `NAME.log.1` and replaces the earlier one, so a
//! worker takes at most twice that. Reads start at the end and use no more memory than the caller allows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use swarm_state::model::WorkerName;

use super::rotate::rotated;
use super::{Store, entries, failed, file_name, if_exists};
use crate::error::Result;
use crate::paths::private_dir;

/// The size at which a worker's log is rotated. The two files together take twice that.
pub const MAX_WORKER_LOG_BYTES: u64 = 8 << 20;

/// The end of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTail {
    /// The lines, without line ends.
    pub lines: Vec<String>,
    /// There are earlier lines.
    pub truncated: bool,
    /// The total number of lines, if the whole log was read.
    pub total: Option<u64>,
}

impl Store {
    /// Appends a line, which contains its time, to a loop's log. [`Store::sync_iteration`] makes it durable. The daemon
    /// adds lines again at its start that a power cut took. On failure, the log is unchanged.
    pub fn append_iteration_log(&self, name: &WorkerName, line: &str) -> Result<()> {
        self.check_owner()?;
        private_dir(&self.paths.ralph_dir(name))?;
        let path = self.paths.iterations_log(name);
        // One call writes one line: an agent's text must not fake log entries.
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        append(&path, format!("{line}\n").as_bytes()).map_err(|e| failed("write", &path, e))
    }

    /// The last lines of a loop's log, read from at most `max_bytes` of it; empty if there is none.
    pub fn read_iteration_log(&self, name: &WorkerName, lines: usize, max_bytes: u64) -> Result<LogTail> {
        let path = self.paths.iterations_log(name);
        tail(&path, lines, max_bytes).map_err(|e| failed("read", &path, e))
    }

    /// Appends a run's output to the worker's log, below a header line. If the output is longer than a log may be, its
    /// end is kept and the header reports it. On failure, the log is unchanged, or rotated without this output.
    pub fn append_worker_log(&self, name: &WorkerName, header: &str, text: &str) -> Result<()> {
        self.check_owner()?;
        let path = self.paths.worker_log(name);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let (kept, left_out) = last_bytes(text, MAX_WORKER_LOG_BYTES as usize / 2);
        let mut block = header.replace(['\n', '\r'], " ");
        if left_out > 0 {
            block.push_str(&format!(" [the first {left_out} bytes omitted]"));
        }
        block.push('\n');
        if !kept.is_empty() {
            block.push_str(kept);
            block.push('\n');
        }
        let size = fs::metadata(&path).map_or(0, |found| found.len());
        if size > 0 && size + block.len() as u64 > MAX_WORKER_LOG_BYTES {
            fs::rename(&path, rotated(&path)).map_err(|e| failed("rotate", &path, e))?;
        }
        append(&path, block.as_bytes()).map_err(|e| failed("write", &path, e))
    }

    /// The last lines of a worker's output, across a rotation, read from at most `max_bytes` of its log, or empty.
    pub fn read_worker_log_tail(&self, name: &WorkerName, lines: usize, max_bytes: u64) -> Result<LogTail> {
        let path = self.paths.worker_log(name);
        let new = tail(&path, lines, max_bytes).map_err(|e| failed("read", &path, e))?;
        let path = rotated(&path);
        if new.truncated {
            return Ok(new);
        }
        let used = new.lines.iter().map(|line| line.len() as u64 + 1).sum();
        let missing = lines.saturating_sub(new.lines.len());
        let mut old =
            tail(&path, missing, max_bytes.saturating_sub(used)).map_err(|e| failed("read", &path, e))?;
        old.lines.extend(new.lines);
        old.total = old.total.zip(new.total).map(|(old, new)| old + new);
        Ok(old)
    }

    /// The number of lines in both files of a worker's log. Reads them whole, in chunks.
    pub fn count_worker_log_lines(&self, name: &WorkerName) -> Result<u64> {
        let path = self.paths.worker_log(name);
        let mut total = 0;
        for path in [rotated(&path), path] {
            total += count_lines(&path).map_err(|e| failed("read", &path, e))?;
        }
        Ok(total)
    }

    /// The last lines of one iteration's output, read from at most `max_bytes` of it; `None` if none is stored.
    pub fn read_iteration_output(
        &self,
        name: &WorkerName,
        iteration: u32,
        lines: usize,
        max_bytes: u64,
    ) -> Result<Option<LogTail>> {
        let path = self.paths.iteration_dir(name, iteration).join("output.txt");
        if !path.exists() {
            return Ok(None);
        }
        tail(&path, lines, max_bytes).map(Some).map_err(|e| failed("read", &path, e))
    }

    /// The iterations of a loop whose output is stored, in order.
    pub fn stored_iterations(&self, name: &WorkerName) -> Vec<u32> {
        let dirs = entries(&self.paths.ralph_dir(name).join("iterations"));
        let mut found: Vec<u32> = dirs
            .iter()
            .filter(|dir| dir.join("output.txt").exists())
            .filter_map(|dir| file_name(dir).parse().ok())
            .collect();
        found.sort_unstable();
        found
    }

    /// Removes a worker's log, its rotated log and its recorded output, if they exist.
    pub fn remove_worker_log(&self, name: &WorkerName) -> Result<()> {
        self.check_owner()?;
        let path = self.paths.worker_log(name);
        let record = self.paths.record_file(name);
        for path in [rotated(&path), path, rotated(&record), record] {
            if_exists(fs::remove_file(&path)).map_err(|e| failed("remove", &path, e))?;
        }
        Ok(())
    }
}

/// The end of `text`, at most `max` bytes, starting with a whole line if possible; and the number of bytes before it.
fn last_bytes(text: &str, max: usize) -> (&str, usize) {
    if text.len() <= max {
        return (text, 0);
    }
    let mut start = text.len() - max;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    if let Some(end) = text[start..].find('\n') {
        start += end + 1;
    }
    (&text[start..], start)
}

/// Appends whole lines. Ends a cut-off line first (crash, full disk). If the disk is full, removes what
/// this call wrote.
pub(super) fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let before = file.metadata()?.len();
    let mut whole = Vec::with_capacity(bytes.len() + 1);
    if before > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(before - 1))?;
        // The file was truncated and is empty now.
        if file.read(&mut last)? == 1 && last != [b'\n'] {
            whole.push(b'\n');
        }
    }
    whole.extend_from_slice(bytes);
    let written = file.write_all(&whole);
    if written.is_err() {
        let _ = file.set_len(before);
    }
    written
}

/// The last `lines` lines of a file, read from at most `max_bytes` of it.
fn tail(path: &Path, lines: usize, max_bytes: u64) -> io::Result<LogTail> {
    let Some(mut file) = if_exists(File::open(path))? else {
        return Ok(LogTail { total: Some(0), ..LogTail::default() });
    };
    let len = file.metadata()?.len();
    // Callers usually want few lines, so this reads a little and widens the range until it holds enough of them.
    let widest = len.min(max_bytes);
    let mut window = widest.min(64 << 10);
    loop {
        let mut bytes = vec![];
        file.seek(SeekFrom::Start(len - window))?;
        Read::by_ref(&mut file).take(window).read_to_end(&mut bytes)?;
        let newlines = bytes.iter().filter(|byte| **byte == b'\n').count();
        if newlines > lines || window == widest {
            return Ok(last_lines(&bytes, lines, window < len));
        }
        window = window.saturating_mul(4).min(widest);
    }
}

/// The last lines in `bytes`; `cut`: `bytes` is the end of a longer text.
fn last_lines(mut bytes: &[u8], lines: usize, cut: bool) -> LogTail {
    if cut {
        // The first line may be incomplete. Of one very long line, its end is better than nothing.
        let start = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if start < bytes.len() {
            bytes = &bytes[start..];
        }
    }
    if bytes.is_empty() {
        return LogTail { lines: vec![], truncated: cut, total: (!cut).then_some(0) };
    }
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let all: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let skipped = all.len().saturating_sub(lines);
    LogTail {
        lines: all[skipped..].iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect(),
        truncated: cut || skipped > 0,
        total: (!cut).then_some(all.len() as u64),
    }
}

fn count_lines(path: &Path) -> io::Result<u64> {
    let Some(mut file) = if_exists(File::open(path))? else { return Ok(0) };
    let (mut buffer, mut lines, mut last) = (vec![0; 64 << 10], 0, b'\n');
    loop {
        let read = file.read(&mut buffer)?;
        let Some(end) = buffer[..read].last() else { break };
        last = *end;
        lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
    }
    Ok(lines + u64::from(last != b'\n'))
}
