//! The event log: two files with one JSON object a line, which the daemon's notices are appended to.
//!
//! At [`MAX_EVENT_LOG_BYTES`] `events.jsonl` becomes `events.jsonl.1` and replaces the earlier one. The content of
//! the lines is not decided here. Nothing waits for the disk.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use super::load::aside_sentence;
use super::logs::append;
use super::rotate::rotated;
use super::{Store, read_bounded, set_aside};

/// The size at which the event log is rotated. The two files together take twice that.
pub const MAX_EVENT_LOG_BYTES: u64 = 2 << 20;

impl Store {
    /// Reads the files of the event log, the older one first. Sets aside files that are not `readable`, and
    /// then returns true.
    pub fn read_events(&self, readable: impl Fn(&str) -> Result<(), String>) -> (Vec<String>, bool) {
        let path = self.paths.event_log();
        let (mut texts, mut damaged) = (vec![], false);
        for path in [rotated(&path), path] {
            let text = match read_bounded(&path, 2 * MAX_EVENT_LOG_BYTES) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => Err(error.to_string()),
                Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            };
            match text.and_then(|text| readable(&text).map(|()| text)) {
                Ok(text) => texts.push(text),
                Err(cause) => {
                    damaged = true;
                    match set_aside(&path) {
                        Ok(aside) => tracing::warn!("{}", aside_sentence(&path, &aside, &cause)),
                        Err(error) => tracing::warn!(%error, "the event log cannot be set aside: {cause}"),
                    }
                }
            }
        }
        (texts, damaged)
    }

    /// Appends whole lines to the event log. A new file starts with `header`, which is a line too. Fails when the lines
    /// cannot be written. The log is then unchanged, or rotated without these lines.
    pub fn append_events(&self, header: &str, lines: &str) -> io::Result<()> {
        self.check_owner().map_err(io::Error::other)?;
        let path = self.paths.event_log();
        let mut size = fs::metadata(&path).map_or(0, |found| found.len());
        if size > 0 && size + lines.len() as u64 > MAX_EVENT_LOG_BYTES {
            fs::rename(&path, rotated(&path))?;
            size = 0;
        }
        match size {
            0 => append(&path, [header, lines].concat().as_bytes()),
            _ => append(&path, lines.as_bytes()),
        }
    }

    /// Whether an earlier daemon could not write all events.
    pub fn has_unwritten_events(&self) -> bool {
        self.paths.events_unwritten().exists()
    }

    /// Marks that events are not written. The mark is an empty file, for which a full disk usually has room.
    pub fn mark_unwritten_events(&self) -> bool {
        OpenOptions::new().append(true).create(true).mode(0o600).open(self.paths.events_unwritten()).is_ok()
    }

    /// Removes the mark.
    pub fn unmark_unwritten_events(&self) -> bool {
        fs::remove_file(self.paths.events_unwritten()).is_ok()
    }
}
