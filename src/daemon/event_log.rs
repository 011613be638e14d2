//! The event log: keeps the notices across restarts and crashes of the daemon, and where some are missing.
//!
//! Each file starts with a header; the other lines are notices as subscribers get them, and marks where notices are
//! missing. A line is written before subscribers get the notice. It is not synced: a killed daemon loses nothing, a
//! power cut loses the last seconds. While the disk refuses lines, they wait in memory, and an empty file marks
//! the gap for the next daemon. Not here: the stream ([`super::notices`]) and the files ([`crate::store`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::protocol::{MissingNotices, MissingReason, Notice};
use crate::store::Store;

const EVENT_LOG_FORMAT: u32 = 1;

/// The most bytes of lines that wait for the disk.
const MAX_PENDING_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    format: u32,
    /// The file has all notices after this number.
    after: u64,
    /// There were notices before it.
    earlier: bool,
}

/// A line that marks missing notices before the next line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Gap {
    missing: MissingReason,
}

/// The notices in the log, and what is known to be missing.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stored {
    pub(crate) notices: Vec<Notice>,
    /// All notices after this number are stored, except those in `missing`; `None` without a log.
    pub(crate) after: Option<u64>,
    /// There were notices before that number.
    pub(crate) earlier: bool,
    pub(crate) missing: Vec<MissingNotices>,
}

impl Stored {
    pub(crate) fn seq(&self) -> u64 {
        self.notices.last().map_or(0, |notice| notice.seq).max(self.after.unwrap_or(0))
    }

    fn is_missing(&mut self, reason: MissingReason) {
        let after = self.seq();
        if self.missing.last().is_none_or(|last| last.after != after) {
            self.missing.push(MissingNotices { after, reason });
        }
    }

    /// Reads the files, the older one first.
    fn parse(texts: &[String]) -> Self {
        let mut stored = Self::default();
        for text in texts {
            let mut lines = text.lines();
            match header(text) {
                Some(head) => {
                    lines.next();
                    if stored.after.is_none() {
                        (stored.after, stored.earlier) = (Some(head.after), head.earlier);
                    } else if head.after != stored.seq() {
                        stored.is_missing(MissingReason::Damaged);
                    }
                }
                None if stored.after.is_none() => {
                    let first = lines.clone().find_map(|line| serde_json::from_str::<Notice>(line).ok());
                    stored.after = first.map(|notice| notice.seq.saturating_sub(1));
                    stored.earlier = true;
                }
                None => stored.is_missing(MissingReason::Damaged),
            }
            lines.for_each(|line| stored.line(line));
        }
        stored
    }

    fn line(&mut self, line: &str) {
        match serde_json::from_str::<Notice>(line) {
            Ok(notice) if notice.seq > self.seq() => self.notices.push(notice),
            Ok(_) => {}
            Err(_) => {
                let gap = serde_json::from_str::<Gap>(line).map(|gap| gap.missing);
                self.is_missing(gap.unwrap_or(MissingReason::Damaged));
            }
        }
    }
}

fn header(text: &str) -> Option<Header> {
    serde_json::from_str(text.lines().next()?).ok()
}

fn readable(text: &str) -> Result<(), String> {
    match header(text).filter(|head| head.format > EVENT_LOG_FORMAT) {
        None => Ok(()),
        Some(head) => Err(format!("format {} is newer than this swarm", head.format)),
    }
}

pub(crate) struct EventLog {
    store: Arc<Store>,
    pending: String,
    /// Lines before those of `pending` were dropped.
    dropped: bool,
    /// Whether the empty file exists that marks unwritten lines for the next daemon.
    marked: bool,
    /// The header of the next new file.
    next: Header,
    /// The number of the last notice in `pending`.
    seq: u64,
}

impl EventLog {
    /// Reads the log, and opens it for the notices to come, whose numbers are above `first`.
    pub(crate) fn open(store: Arc<Store>, first: u64) -> (Self, Stored) {
        let (texts, damaged) = store.read_events(readable);
        let mut stored = Stored::parse(&texts);
        if damaged {
            stored.earlier |= stored.after.is_none();
            stored.is_missing(MissingReason::Damaged);
        }
        let marked = store.has_unwritten_events();
        if marked {
            stored.is_missing(MissingReason::Unwritten);
        }
        let after = if stored.after.is_some() { stored.seq() } else { first };
        let next =
            Header { format: EVENT_LOG_FORMAT, after, earlier: stored.after.is_some() || stored.earlier };
        let mut log = Self { store, pending: String::new(), dropped: marked, marked, next, seq: after };
        log.flush();
        (log, stored)
    }

    /// Writes a notice, and the earlier ones that are waiting.
    pub(crate) fn write(&mut self, notice: &Notice) {
        let Ok(line) = serde_json::to_string(notice) else { return };
        if self.pending.len() + line.len() > MAX_PENDING_BYTES {
            self.pending.clear();
            self.dropped = true;
        }
        self.pending.push_str(&line);
        self.pending.push('\n');
        self.seq = notice.seq;
        self.flush();
    }

    pub(crate) fn flush(&mut self) {
        if self.pending.is_empty() && !self.dropped {
            return;
        }
        let line = |value: serde_json::Result<String>| value.map(|text| text + "\n").unwrap_or_default();
        let gap = Gap { missing: MissingReason::Unwritten };
        let mut lines = if self.dropped { line(serde_json::to_string(&gap)) } else { String::new() };
        lines.push_str(&self.pending);
        match self.store.append_events(&line(serde_json::to_string(&self.next)), &lines) {
            Ok(()) => {
                self.pending.clear();
                self.dropped = false;
                (self.next.after, self.next.earlier) = (self.seq, true);
                self.marked = self.marked && !self.store.unmark_unwritten_events();
            }
            Err(error) if !self.marked => {
                tracing::warn!(%error, "the event log cannot be written; events wait in memory");
                self.marked = self.store.mark_unwritten_events();
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64) -> String {
        line_of(seq, "a")
    }

    fn line_of(seq: u64, worker: &str) -> String {
        let at = "2026-01-15T10:35:00+01:00";
        format!(
            r#"{{"seq":{seq},"worker":"{worker}","at":"{at}","status":"running","kind":"ready","run":1}}"#
        )
    }

    fn head(after: u64, earlier: bool) -> String {
        format!(r#"{{"format":1,"after":{after},"earlier":{earlier}}}"#)
    }

    #[test]
    fn missing_notices_in_the_log_files_are_found() {
        use MissingReason::{Damaged, Unwritten};
        let torn = line(8)[..20].to_owned();
        let gap = r#"{"missing":"unwritten"}"#.to_owned();
        let (one, two) = ([head(5, false), line(6), line(7)], [head(7, true), line(8)]);
        // The lines of both files, the number before the first notice, whether there were earlier ones, the numbers of
        // the notices, and what is missing.
        type Row<'a> = (&'a [&'a [String]], Option<u64>, bool, &'a [u64], &'a [(u64, MissingReason)]);
        let rows: [Row; 9] = [
            (&[], None, false, &[], &[]),
            (&[&one], Some(5), false, &[6, 7], &[]),
            (&[&one, &two], Some(5), false, &[6, 7, 8], &[]),
            (&[&two], Some(7), true, &[8], &[]),
            (&[&one[..2], &two], Some(5), false, &[6, 8], &[(6, Damaged)]),
            (&[&[head(5, false), line(6), torn.clone(), line(9)]], Some(5), false, &[6, 9], &[(6, Damaged)]),
            (&[&[head(5, false), line(6), gap, torn]], Some(5), false, &[6], &[(6, Unwritten)]),
            (&[&[line(6), line(6), line(4), line(8)]], Some(5), true, &[6, 8], &[]),
            (&[&one, &[line(8)]], Some(5), false, &[6, 7, 8], &[(7, Damaged)]),
        ];
        for (files, after, earlier, seqs, missing) in rows {
            let texts: Vec<String> = files.iter().map(|lines| lines.join("\n")).collect();
            let stored = Stored::parse(&texts);
            assert_eq!((stored.after, stored.earlier), (after, earlier), "{texts:#?}");
            let found: Vec<u64> = stored.notices.iter().map(|notice| notice.seq).collect();
            assert_eq!(found, seqs, "{texts:#?}");
            let found: Vec<_> = stored.missing.iter().map(|gap| (gap.after, gap.reason)).collect();
            assert_eq!(found, missing, "{texts:#?}");
        }
    }

    struct World {
        _dir: tempfile::TempDir,
        store: Arc<Store>,
        log: std::path::PathBuf,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let paths = crate::paths::Paths::new(dir.path().to_owned());
        let log = paths.event_log();
        World { _dir: dir, store: Arc::new(Store::open(paths).unwrap()), log }
    }

    /// A line that is so long that few fill a file.
    fn long(seq: u64) -> String {
        line_of(seq, &"a".repeat(5000))
    }

    fn write(log: &mut EventLog, seqs: impl IntoIterator<Item = u64>) {
        seqs.into_iter().for_each(|seq| log.write(&serde_json::from_str(&long(seq)).unwrap()));
    }

    #[test]
    fn log_continues_and_unwritten_events_are_written_later_or_reported() {
        let world = world();
        let open = || EventLog::open(world.store.clone(), 100);
        let (mut log, stored) = open();
        assert_eq!(stored, Stored::default());
        write(&mut log, 101..=102);
        let (mut log, stored) = open();
        assert_eq!((stored.seq(), stored.after, stored.earlier), (102, Some(100), false));
        // A directory in the way stands for a disk that refuses.
        let refuse = || {
            std::fs::rename(&world.log, world.log.with_extension("away")).unwrap();
            std::fs::create_dir(&world.log).unwrap();
        };
        let accept = || {
            std::fs::remove_dir(&world.log).unwrap();
            std::fs::rename(world.log.with_extension("away"), &world.log).unwrap();
        };
        refuse();
        write(&mut log, 103..=104);
        assert!(world.store.has_unwritten_events());
        accept();
        write(&mut log, [105]);
        assert!(!world.store.has_unwritten_events());
        let (mut log, stored) = open();
        assert_eq!((stored.notices.len(), stored.missing.len()), (5, 0));
        // Too many to wait.
        refuse();
        let many = MAX_PENDING_BYTES as u64 / long(106).len() as u64;
        write(&mut log, 106..=106 + many);
        accept();
        log.flush();
        let gap = |after| MissingNotices { after, reason: MissingReason::Unwritten };
        let (mut log, stored) = open();
        assert_eq!((stored.seq(), stored.missing), (106 + many, vec![gap(105)]));
        // The daemon ends before the disk accepts.
        refuse();
        write(&mut log, [1_000_000]);
        accept();
        drop(log);
        for _ in 0..2 {
            let stored = open().1;
            assert_eq!((stored.seq(), stored.missing), (106 + many, vec![gap(105), gap(106 + many)]));
        }
        assert!(!world.store.has_unwritten_events());
    }

    #[test]
    fn full_log_is_rotated_and_marks_that_earlier_events_existed() {
        use std::os::unix::fs::MetadataExt;
        let world = world();
        let (mut log, _) = EventLog::open(world.store.clone(), 100);
        let some = crate::store::MAX_EVENT_LOG_BYTES / long(101).len() as u64;
        write(&mut log, 101..=100 + 5 * some / 2);
        let stored = EventLog::open(world.store.clone(), 100).1;
        assert_eq!((stored.seq(), stored.earlier, stored.missing.len()), (100 + 5 * some / 2, true, 0));
        assert!(stored.notices.len() as u64 > some && (stored.notices.len() as u64) < 2 * some);
        assert_eq!(stored.notices[0].seq, stored.after.unwrap() + 1);
        for path in [world.log.clone(), world.log.with_extension("jsonl.1")] {
            let found = std::fs::metadata(path).unwrap();
            assert!(found.len() <= crate::store::MAX_EVENT_LOG_BYTES + 100 && found.mode() & 0o777 == 0o600);
        }
        // A file of a newer swarm is set aside.
        std::fs::write(&world.log, "{\"format\":2,\"after\":1,\"earlier\":true}\n").unwrap();
        let stored = EventLog::open(world.store.clone(), 100).1;
        assert_eq!(stored.missing.last().map(|gap| gap.reason), Some(MissingReason::Damaged));
        assert!(!world.log.exists());
    }
}
