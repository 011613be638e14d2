//! The notice stream: a bounded memory of what happened, and those who listen.
//!
//! Sequence numbers start from the wall clock, so that they grow over restarts of the daemon and a
//! listener can always say from where it wants to go on. Where the clock was put back between two daemons
//! they do not: a listener that is ahead of what there is heard another daemon, and gets all of this one's.

use std::collections::VecDeque;

use swarm_state::model::Status;
use swarm_state::notice::Entry;
use tokio::sync::mpsc;

use crate::protocol::Notice;

/// Notices that are kept for those who come back.
const KEPT: usize = 10_000;

/// Notices that may wait for one slow listener before it is dropped (it reconnects and resumes).
const BACKLOG: usize = 4_096;

struct Listener {
    worker: Option<String>,
    to: mpsc::Sender<Notice>,
}

/// The stream.
pub(crate) struct Notices {
    seq: u64,
    kept: VecDeque<Notice>,
    listeners: Vec<Listener>,
}

impl Notices {
    /// An empty stream whose numbers start at a time in milliseconds.
    pub(crate) fn new(now_ms: i64) -> Self {
        let seq = u64::try_from(now_ms).unwrap_or(0) * 1000;
        Self { seq, kept: VecDeque::new(), listeners: vec![] }
    }

    /// The number of the last notice.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Adds a notice and sends it to those who listen.
    pub(crate) fn tell(&mut self, worker: &str, status: Status, entry: Entry) {
        self.seq += 1;
        let at = super::local_now().to_rfc3339();
        let notice = Notice { seq: self.seq, worker: worker.to_owned(), at, status, entry };
        self.listeners.retain(|l| {
            let wanted = l.worker.as_deref().is_none_or(|w| w == worker);
            if wanted { l.to.try_send(notice.clone()).is_ok() } else { !l.to.is_closed() }
        });
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(notice);
    }

    /// Adds a listener. It gets what is kept after `since`, then what is to come; `true` when some of what
    /// came after `since` is no longer kept.
    pub(crate) fn listen(
        &mut self,
        worker: Option<String>,
        since: Option<u64>,
    ) -> (mpsc::Receiver<Notice>, bool) {
        let (to, from) = mpsc::channel(BACKLOG + KEPT);
        let since = since.map_or(self.seq, |since| if since > self.seq { 0 } else { since });
        let full = self.kept.len() == KEPT;
        let gap = full && self.kept.front().is_some_and(|first| first.seq > since.saturating_add(1));
        let old = self.kept.iter().filter(|n| n.seq > since);
        for notice in old.filter(|n| worker.as_ref().is_none_or(|w| *w == n.worker)) {
            // The channel holds all that is kept.
            drop(to.try_send(notice.clone()));
        }
        self.listeners.push(Listener { worker, to });
        (from, gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_resumes_from_where_it_was() {
        let mut notices = Notices::new(5);
        notices.tell("a", Status::Running, Entry::Started { run: 1 });
        let seen = notices.seq();
        notices.tell("a", Status::Running, Entry::Ready { run: 1 });
        notices.tell("b", Status::Running, Entry::Started { run: 1 });
        let (mut from, gap) = notices.listen(Some("a".into()), Some(seen));
        assert!(!gap);
        notices.tell("a", Status::Running, Entry::PromptSent { run: 1 });
        assert_eq!(from.try_recv().unwrap().entry, Entry::Ready { run: 1 });
        assert_eq!(from.try_recv().unwrap().entry, Entry::PromptSent { run: 1 });
        assert!(from.try_recv().is_err());
    }

    #[test]
    fn who_heard_a_daemon_whose_clock_was_ahead_hears_all_of_this_one() {
        let mut notices = Notices::new(1_000);
        notices.tell("a", Status::Running, Entry::Started { run: 1 });
        let (mut from, gap) = notices.listen(None, Some(2_000_000));
        assert!(!gap);
        assert_eq!(from.try_recv().unwrap().entry, Entry::Started { run: 1 });
    }

    #[test]
    fn who_fell_behind_what_is_kept_is_told_so() {
        let mut notices = Notices::new(0);
        for run in 0..=KEPT as u64 {
            notices.tell("a", Status::Running, Entry::Started { run });
        }
        assert!(notices.listen(None, Some(0)).1);
        assert!(!notices.listen(None, Some(1)).1);
        assert!(notices.listen(None, Some(u64::MAX)).1, "it heard another daemon, of which nothing is known");
    }

    #[test]
    fn a_listener_that_never_reads_is_let_go_and_the_others_miss_nothing() {
        let mut notices = Notices::new(0);
        let (_stuck, _) = notices.listen(None, None);
        let (mut reading, _) = notices.listen(None, None);
        for run in 1..=2 * (BACKLOG + KEPT) as u64 {
            notices.tell("a", Status::Running, Entry::Started { run });
            assert_eq!(reading.try_recv().unwrap().entry, Entry::Started { run });
        }
        assert_eq!(notices.listeners.len(), 1);
        assert_eq!(notices.kept.len(), KEPT);
    }
}
