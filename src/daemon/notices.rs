//! The stream of notices: the last notices, and the subscribers.
//!
//! Sequence numbers start from the wall clock, so that they grow across restarts of the daemon and a subscriber can
//! name the notice after which it wants to continue. If the clock was set back between two daemons, a subscriber's
//! number may be ahead of this stream; then it gets all notices of this daemon.

use std::collections::VecDeque;

use swarm_state::model::Status;
use swarm_state::notice::Entry;
use tokio::sync::mpsc;

use crate::protocol::Notice;

/// Notices that are kept for subscribers that reconnect.
const MAX_KEPT_NOTICES: usize = 10_000;

/// Notices that may wait for one slow subscriber before it is disconnected (it reconnects and resumes).
const MAX_WAITING_NOTICES: usize = 4_096;

struct Subscriber {
    worker: Option<String>,
    to: mpsc::Sender<Notice>,
}

/// The stream.
pub(crate) struct Notices {
    /// The number that the stream starts from; the first notice has the next number.
    first: u64,
    seq: u64,
    kept: VecDeque<Notice>,
    listeners: Vec<Subscriber>,
}

/// A new subscriber.
pub(crate) struct NewSubscriber {
    /// The kept notices after the requested number, then all new ones.
    pub(crate) notices: mpsc::Receiver<Notice>,
    /// How many of them are there already.
    pub(crate) replayed: usize,
    /// Some of what came after the wanted number is no longer kept.
    pub(crate) gap: bool,
    /// The requested number does not belong to this stream.
    pub(crate) foreign: bool,
}

impl Notices {
    /// An empty stream whose numbers start at a time in milliseconds.
    pub(crate) fn new(now_ms: i64) -> Self {
        let first = u64::try_from(now_ms).unwrap_or(0).saturating_mul(1000);
        Self { first, seq: first, kept: VecDeque::new(), listeners: vec![] }
    }

    /// The number of the last notice.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Adds a notice and sends it to the subscribers.
    pub(crate) fn add(&mut self, worker: &str, status: Status, entry: Entry) {
        self.seq += 1;
        let at = crate::daemon::clock::local_now().to_rfc3339();
        let notice = Notice { seq: self.seq, worker: worker.to_owned(), at, status, entry };
        self.listeners.retain(|l| {
            let wanted = l.worker.as_deref().is_none_or(|w| w == worker);
            if wanted { l.to.try_send(notice.clone()).is_ok() } else { !l.to.is_closed() }
        });
        if self.kept.len() == MAX_KEPT_NOTICES {
            self.kept.pop_front();
        }
        self.kept.push_back(notice);
    }

    /// Adds a subscriber. It gets the kept notices after `since`, then all new ones. If `since` does not belong to
    /// this stream, it gets all kept notices.
    pub(crate) fn subscribe(&mut self, worker: Option<String>, since: Option<u64>) -> NewSubscriber {
        let (to, notices) = mpsc::channel(MAX_WAITING_NOTICES + MAX_KEPT_NOTICES);
        let foreign = since.is_some_and(|since| since < self.first || since > self.seq);
        let since = if foreign { 0 } else { since.unwrap_or(self.seq) };
        let full = self.kept.len() == MAX_KEPT_NOTICES;
        let gap = full && self.kept.front().is_some_and(|first| first.seq > since + 1);
        let mut replayed = 0;
        let old = self.kept.iter().filter(|n| n.seq > since);
        for notice in old.filter(|n| worker.as_ref().is_none_or(|w| *w == n.worker)) {
            // The channel holds all that is kept.
            drop(to.try_send(notice.clone()));
            replayed += 1;
        }
        self.listeners.push(Subscriber { worker, to });
        NewSubscriber { notices, replayed, gap, foreign }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_resumes_from_where_it_was() {
        let mut notices = Notices::new(5);
        notices.add("a", Status::Running, Entry::Started { run: 1 });
        let seen = notices.seq();
        notices.add("a", Status::Running, Entry::Ready { run: 1 });
        notices.add("b", Status::Running, Entry::Started { run: 1 });
        let listening = notices.subscribe(Some("a".into()), Some(seen));
        assert!(!listening.gap && !listening.foreign);
        assert_eq!(listening.replayed, 1);
        let mut from = listening.notices;
        notices.add("a", Status::Running, Entry::PromptSent { run: 1 });
        assert_eq!(from.try_recv().unwrap().entry, Entry::Ready { run: 1 });
        assert_eq!(from.try_recv().unwrap().entry, Entry::PromptSent { run: 1 });
        assert!(from.try_recv().is_err());
    }

    #[test]
    fn who_heard_a_daemon_whose_clock_was_ahead_hears_all_of_this_one() {
        let mut notices = Notices::new(1_000);
        notices.add("a", Status::Running, Entry::Started { run: 1 });
        let NewSubscriber { notices: mut from, gap, .. } = notices.subscribe(None, Some(2_000_000));
        assert!(!gap);
        assert_eq!(from.try_recv().unwrap().entry, Entry::Started { run: 1 });
    }

    #[test]
    fn who_fell_behind_what_is_kept_is_told_so() {
        let mut notices = Notices::new(0);
        for run in 0..=MAX_KEPT_NOTICES as u64 {
            notices.add("a", Status::Running, Entry::Started { run });
        }
        assert!(notices.subscribe(None, Some(0)).gap);
        assert!(!notices.subscribe(None, Some(1)).gap);
        assert!(notices.subscribe(None, Some(u64::MAX)).foreign);
    }

    #[test]
    fn a_number_of_another_daemon_is_known_as_such_and_nothing_is_skipped() {
        let mut notices = Notices::new(5);
        assert!(!notices.subscribe(None, None).foreign);
        assert!(!notices.subscribe(None, Some(notices.seq())).foreign, "the start is its own");
        notices.add("a", Status::Running, Entry::Started { run: 1 });
        for number in [0, 4999, notices.seq() + 1, u64::MAX] {
            let listening = notices.subscribe(None, Some(number));
            assert!(listening.foreign && listening.replayed == 1, "{number}");
        }
        assert_eq!(notices.subscribe(None, None).replayed, 0);
    }

    #[test]
    fn a_listener_that_never_reads_is_let_go_and_the_others_miss_nothing() {
        let mut notices = Notices::new(0);
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
