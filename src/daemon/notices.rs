//! The stream of notices: the last notices, and the subscribers.
//!
//! Sequence numbers grow across restarts of the daemon, so that a subscriber can name the notice after which it wants
//! to continue: a stream continues from the event log, and no number is below the wall clock's, in case the log was
//! deleted. A subscriber whose number is ahead of this stream gets all notices.

use std::collections::VecDeque;

use swarm_state::model::Status;
use swarm_state::notice::Entry;
use tokio::sync::mpsc;

use crate::daemon::event_log::{EventLog, Stored};
use crate::protocol::{MissingNotices, MissingReason, Notice};

/// Notices that are kept for subscribers that reconnect.
const MAX_KEPT_NOTICES: usize = 10_000;

/// Notices that may wait for one slow subscriber before it is disconnected (it reconnects and resumes).
const MAX_WAITING_NOTICES: usize = 4_096;

struct Subscriber {
    worker: Option<String>,
    to: mpsc::Sender<Notice>,
}

pub(crate) struct Notices {
    /// All notices after this number are kept, except those in `missing`.
    after: u64,
    /// There were notices before that number.
    earlier: bool,
    missing: Vec<MissingNotices>,
    seq: u64,
    kept: VecDeque<Notice>,
    log: Option<EventLog>,
    listeners: Vec<Subscriber>,
}

pub(crate) struct NewSubscriber {
    /// The kept notices after the requested number, then all new ones.
    pub(crate) notices: mpsc::Receiver<Notice>,
    /// How many of them are there already.
    pub(crate) replayed: usize,
    /// The places after the wanted number where notices are missing.
    pub(crate) missing: Vec<MissingNotices>,
    /// The requested number does not belong to this stream.
    pub(crate) foreign: bool,
}

impl Notices {
    /// The number that a stream without a log starts from, at a time in milliseconds.
    pub(crate) fn first_number(now_ms: i64) -> u64 {
        u64::try_from(now_ms).unwrap_or(0).saturating_mul(1000)
    }

    /// A stream that continues from the log. Its numbers are above `first`.
    pub(crate) fn new(first: u64, stored: Stored, log: Option<EventLog>) -> Self {
        let seq = stored.seq().max(first);
        let after = stored.after.unwrap_or(first);
        let Stored { notices, earlier, missing, .. } = stored;
        let mut stream = Self { after, earlier, missing, seq, kept: VecDeque::new(), log, listeners: vec![] };
        notices.into_iter().for_each(|notice| stream.keep(notice));
        stream
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn kept(&self) -> impl Iterator<Item = &Notice> {
        self.kept.iter()
    }

    /// Adds a notice, writes it to the log and sends it to the subscribers.
    pub(crate) fn add(&mut self, worker: &str, status: Status, entry: Entry) {
        self.seq += 1;
        let at = crate::daemon::clock::local_now().to_rfc3339();
        let notice = Notice { seq: self.seq, worker: worker.to_owned(), at, status, entry };
        if let Some(log) = &mut self.log {
            log.write(&notice);
        }
        self.listeners.retain(|l| {
            let wanted = l.worker.as_deref().is_none_or(|w| w == worker);
            if wanted { l.to.try_send(notice.clone()).is_ok() } else { !l.to.is_closed() }
        });
        self.keep(notice);
    }

    fn keep(&mut self, notice: Notice) {
        if self.kept.len() == MAX_KEPT_NOTICES
            && let Some(oldest) = self.kept.pop_front()
        {
            (self.after, self.earlier) = (oldest.seq, true);
            self.missing.retain(|gap| gap.after >= oldest.seq);
        }
        self.kept.push_back(notice);
    }

    /// Writes the notices that the disk refused so far.
    pub(crate) fn flush_log(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
    }

    /// Adds a subscriber. It gets the kept notices after `since`, then all new ones. If the stream has not reached
    /// the number `since`, it gets all kept notices.
    pub(crate) fn subscribe(&mut self, worker: Option<String>, since: Option<u64>) -> NewSubscriber {
        let (to, notices) = mpsc::channel(MAX_WAITING_NOTICES + MAX_KEPT_NOTICES);
        let foreign = since.is_some_and(|since| since > self.seq);
        let since = if foreign { 0 } else { since.unwrap_or(self.seq) };
        let dropped = since < self.after && (since > 0 || self.earlier);
        let dropped = dropped.then_some(MissingNotices { after: self.after, reason: MissingReason::Dropped });
        let later = self.missing.iter().filter(|gap| gap.after >= since).copied();
        let missing = dropped.into_iter().chain(later).collect();
        let mut replayed = 0;
        let old = self.kept.iter().filter(|n| n.seq > since);
        for notice in old.filter(|n| worker.as_ref().is_none_or(|w| *w == n.worker)) {
            // The channel holds all that is kept.
            drop(to.try_send(notice.clone()));
            replayed += 1;
        }
        self.listeners.push(Subscriber { worker, to });
        NewSubscriber { notices, replayed, missing, foreign }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(first: u64) -> Notices {
        Notices::new(first, Stored::default(), None)
    }

    fn dropped(after: u64) -> Vec<MissingNotices> {
        vec![MissingNotices { after, reason: MissingReason::Dropped }]
    }

    #[test]
    fn listener_resumes_after_its_last_notice() {
        let mut notices = stream(5000);
        notices.add("a", Status::Running, Entry::Started { run: 1 });
        let seen = notices.seq();
        notices.add("a", Status::Running, Entry::Ready { run: 1 });
        notices.add("b", Status::Running, Entry::Started { run: 1 });
        let listening = notices.subscribe(Some("a".into()), Some(seen));
        assert!(listening.missing.is_empty() && !listening.foreign);
        assert_eq!(listening.replayed, 1);
        let mut from = listening.notices;
        notices.add("a", Status::Running, Entry::PromptSent { run: 1 });
        assert_eq!(from.try_recv().unwrap().entry, Entry::Ready { run: 1 });
        assert_eq!(from.try_recv().unwrap().entry, Entry::PromptSent { run: 1 });
        assert!(from.try_recv().is_err());
    }

    #[test]
    fn notices_that_are_no_longer_kept_are_reported() {
        let mut notices = stream(0);
        for run in 0..=MAX_KEPT_NOTICES as u64 {
            notices.add("a", Status::Running, Entry::Started { run });
        }
        assert_eq!(notices.subscribe(None, Some(0)).missing, dropped(1));
        assert_eq!(notices.subscribe(None, Some(1)).missing, []);
        assert!(notices.subscribe(None, Some(u64::MAX)).foreign);
    }

    #[test]
    fn unknown_sequence_number_is_foreign_and_skips_no_notice() {
        let mut notices = stream(5000);
        assert!(!notices.subscribe(None, None).foreign);
        assert!(!notices.subscribe(None, Some(notices.seq())).foreign, "the start is its own");
        notices.add("a", Status::Running, Entry::Started { run: 1 });
        for (number, missing, foreign) in [
            (0, vec![], false),
            (4999, dropped(5000), false),
            (notices.seq() + 1, vec![], true),
            (u64::MAX, vec![], true),
        ] {
            let listening = notices.subscribe(None, Some(number));
            assert_eq!((listening.missing, listening.foreign), (missing, foreign), "{number}");
            assert_eq!(listening.replayed, 1, "{number}");
        }
        assert_eq!(notices.subscribe(None, None).replayed, 0);
    }

    #[test]
    fn a_stream_continues_from_its_log_even_if_the_clock_was_set_back() {
        let notice = |seq| Notice {
            seq,
            worker: "a".into(),
            at: String::new(),
            status: Status::Running,
            entry: Entry::Resumed,
        };
        let gap = MissingNotices { after: 11, reason: MissingReason::Unwritten };
        let stored = |first: u64| Stored {
            notices: vec![notice(11), notice(12)],
            after: Some(first),
            earlier: true,
            missing: vec![gap],
        };
        for first in [3, 3000] {
            let mut notices = Notices::new(first, stored(10), None);
            assert_eq!(notices.seq(), first.max(12));
            notices.add("a", Status::Running, Entry::Resumed);
            for (since, missing, replayed) in [
                (0, [dropped(10), vec![gap]].concat(), 3),
                (9, [dropped(10), vec![gap]].concat(), 3),
                (10, vec![gap], 3),
                (11, vec![gap], 2),
                (12, vec![], 1),
                (first.max(12), vec![], 1),
            ] {
                let listening = notices.subscribe(None, Some(since));
                assert_eq!((listening.missing, listening.replayed), (missing, replayed), "{since}");
                assert!(!listening.foreign);
            }
        }
    }

    #[test]
    fn listener_that_never_reads_is_dropped_and_others_miss_nothing() {
        let mut notices = stream(0);
        let _stuck = notices.subscribe(None, None);
        let mut reading = notices.subscribe(None, None);
        for run in 1..=2 * (MAX_WAITING_NOTICES + MAX_KEPT_NOTICES) as u64 {
            notices.add("a", Status::Running, Entry::Started { run });
            assert_eq!(reading.notices.try_recv().unwrap().entry, Entry::Started { run });
        }
        assert_eq!(notices.listeners.len(), 1);
        assert_eq!(notices.kept.len(), MAX_KEPT_NOTICES);
    }
}
