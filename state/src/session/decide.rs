//! Decides on a stop: the agent continues, or its turn may end.
//!
//! One function, [`decide()`], pure and total. If a fact is unknown, the stop happens and the loop stays.
//! Used by `swarm hook stop`, and by `swarm session` for [`cancel`] and [`resume`].
//! Deliberately absent: collecting the facts, and the texts ([`crate::session::texts`]).

use chrono::{DateTime, TimeDelta, Utc};

use crate::outage::{self, Outage};
use crate::promise::{Claim, OnNoWork, Promise, Work};
use crate::session::book::{Book, Decision, LastStop, LogLine, PromiseFound};
use crate::session::queue::Queue;
use crate::session::state::{Owner, SessionId, SessionKind, SessionLoop, SessionStatus};
use crate::session::stop::{After, Failure, Stop, StopAnswer, StopOutcome};
use crate::session::texts::ANSWERED_TWICE;

mod outcomes;

/// Maximum length of an error message, bytes.
const MAX_ERROR_BYTES: usize = 300;

/// Maximum time between two reports of the same stop.
const SAME_STOP_WINDOW: TimeDelta = TimeDelta::seconds(1);

/// Decides on a stop.
pub fn decide(state: &SessionLoop, book: &Book, stop: &Stop) -> StopOutcome {
    let owner = stop.session.as_ref().filter(|session| state.belongs_to(session) && !stop.is_sub_agent);
    let Some(owner) = owner else { return untouched(book, None) };
    if let Some(last) = &book.last_stop {
        if last.was_answered_for(&stop.key, stop.called) {
            let answer = StopAnswer::Answered { held: last.decision == Decision::Block };
            return StopOutcome { answer, ..untouched(book, book.status) };
        }
        if is_same(last, stop) {
            return repeated(book, last);
        }
    }
    if !state.active {
        return untouched(book, Some(SessionStatus::NotActive));
    }
    let state = &SessionLoop { owner: Owner::Session(owner.clone()), ..state.clone() };
    let case = Case { state, before: book, stop };
    if let Some(Failure::Reported(error)) = &stop.failure {
        return case.failed(error);
    }
    if stop.background_tasks > 0 {
        return case.kept(format!("{} background task(s) run on", stop.background_tasks));
    }
    let Some(said) = &stop.said else {
        return case
            .kept("the agent's words could not be read, so the stop happens and the loop stays".into());
    };
    case.judged(said)
}

/// Ends a loop for a person.
pub fn cancel(state: &SessionLoop, book: &Book, now: DateTime<Utc>) -> StopOutcome {
    let why = "cancelled by hand";
    let status = Some(SessionStatus::Cancelled);
    StopOutcome {
        after: After::Remove,
        book: Book { status, why: Some(why.to_owned()), ..book.clone() }.of(state),
        log: Some(LogLine { status, ..LogLine::unread(now, state.iteration, why) }),
        status,
        ..StopOutcome::default()
    }
}

/// Continues a paused loop in the same turn. A promise that the agent printed during the pause does not count, so the
/// caller moves [`Book::mark`] to the end of the transcript, if it knows the transcript.
pub fn resume(state: &SessionLoop, book: &Book, session: &SessionId, now: DateTime<Utc>) -> StopOutcome {
    let state = SessionLoop { active: true, owner: Owner::Session(session.clone()), ..state.clone() };
    let book = Book {
        last_stop: None,
        blocks_in_a_row: 0,
        without_diff: 0,
        last_words: None,
        last_was_error: false,
        queue: Queue::default(),
        status: None,
        why: None,
        ..book.clone()
    };
    StopOutcome {
        log: Some(LogLine::unread(now, state.iteration, "resumed")),
        after: After::Write(Box::new(state)),
        book,
        ..StopOutcome::default()
    }
}

/// The outcome of a stop that belongs to another loop, or to a paused one.
fn untouched(book: &Book, status: Option<SessionStatus>) -> StopOutcome {
    StopOutcome { book: book.clone(), status, ..StopOutcome::default() }
}

/// Whether a second hook probably reports the stop that was decided last. It can also be the next stop, with the same
/// last message and a transcript that is late.
fn is_same(last: &LastStop, stop: &Stop) -> bool {
    let since = stop.now.signed_duration_since(last.at);
    let nothing_since = stop.is_news.map_or(since.abs() <= SAME_STOP_WINDOW, |is_news| !is_news);
    last.key == stop.key && nothing_since
}

/// Repeats the last answer without the task, which the agent has from the first hook. A block stays a block, because
/// this may be the next stop.
fn repeated(book: &Book, last: &LastStop) -> StopOutcome {
    let answer = match last.decision {
        Decision::Block => StopAnswer::Block(ANSWERED_TWICE.to_owned()),
        Decision::Allow => StopAnswer::Allow(last.message.clone()),
    };
    StopOutcome { answer, ..untouched(book, book.status) }
}

/// A stop to decide on.
struct Case<'a> {
    state: &'a SessionLoop,
    before: &'a Book,
    stop: &'a Stop,
}

impl Case<'_> {
    /// The first condition that holds decides.
    fn judged(&self, said: &str) -> StopOutcome {
        let book = self.counted(said);
        let found = self.found(said, &book);
        match found {
            PromiseFound::Found => return self.completed(book, found, "the promise was given"),
            PromiseFound::Doubtful => {
                return self.completed(book, found, "the promise was given, though no work was seen");
            }
            PromiseFound::Pause => return self.paused_by_promise(book),
            PromiseFound::Rejected | PromiseFound::Missing | PromiseFound::Error | PromiseFound::Unread => {}
        }
        // If the queue has not changed, the last stop was already allowed for its messages.
        let has_queue = !book.queue.is_empty() && !self.stop.queue.is_empty();
        if has_queue && book.queue.has_cancel() {
            return self.cancelled(book, found);
        }
        if let Some(error) = self.error_again(said, &book) {
            return self.failed_again(book, &error);
        }
        if self.state.is_last_turn() {
            return self.out_of_iterations(book, found);
        }
        if self.no_diff_limit() > 0 && book.without_diff >= self.no_diff_limit() {
            return self.no_progress(book, found);
        }
        if has_queue {
            return self.makes_way(book, found);
        }
        let cap = self.stop.host_cap.filter(|cap| *cap > 0);
        if cap.is_some_and(|cap| book.blocks_in_a_row >= cap) {
            return self.capped(book, found);
        }
        self.blocked(book, found)
    }

    /// The book after this stop is counted.
    fn counted(&self, said: &str) -> Book {
        let stop = self.stop;
        let has_worked = stop.tool_calls.is_some_and(|calls| calls > 0) || stop.is_cut;
        let has_cap = stop.host_cap.is_some_and(|cap| cap > 0);
        let is_fresh_row = has_worked || !has_cap || stop.stop_hook_active == Some(false);
        let before = self.before.clone();
        let mut queue = before.queue.clone();
        stop.queue.iter().for_each(|change| queue.apply(change));
        let without_diff = match (&before.tree, &stop.tree) {
            (Some(before_it), Some(now)) if before_it == now => before.without_diff.saturating_add(1),
            (Some(_), Some(_)) => 0,
            // An unreadable tree leaves the count as it is.
            (None, _) | (_, None) => before.without_diff,
        };
        Book {
            tool_calls: before.tool_calls.saturating_add(stop.tool_calls.unwrap_or(0)),
            has_gap: before.has_gap || stop.is_cut,
            mark: stop.mark.clone().or(before.mark),
            blocks_in_a_row: if is_fresh_row { 0 } else { before.blocks_in_a_row },
            without_diff,
            tree: stop.tree.clone().or(before.tree),
            last_words: Some(said).filter(|said| is_short(said)).map(ToOwned::to_owned),
            last_was_error: matches!(stop.failure, Some(Failure::Marked(_))),
            queue,
            status: None,
            why: None,
            ..before
        }
    }

    fn found(&self, said: &str, book: &Book) -> PromiseFound {
        let at =
            |promise: &Option<Promise>| promise.as_ref().and_then(|promise| said.find(&promise.marker()));
        let claim = match (at(&self.state.completion), at(&self.state.pause)) {
            (Some(completion), Some(pause)) if pause < completion => return PromiseFound::Pause,
            (None, Some(_)) => return PromiseFound::Pause,
            (completion, _) => {
                // Calls that could not be counted may have been work, so the promise is not rejected.
                let is_known = self.stop.tool_calls.is_some() && !book.has_gap;
                let enough = book.tool_calls >= self.state.min_tool_calls;
                let calls = (is_known || enough).then_some(book.tool_calls);
                let work = Work { tool_calls: calls, tree_changed: None };
                Claim::of(completion.is_some(), work, self.state.min_tool_calls, self.state.on_no_work)
            }
        };
        let is_seen = self.state.min_tool_calls == 0 || book.tool_calls >= self.state.min_tool_calls;
        match claim {
            // The promise counts, and the log records that the work could not be counted.
            Claim::Valid if !is_seen && self.state.on_no_work == OnNoWork::Reject => PromiseFound::Doubtful,
            Claim::Valid => PromiseFound::Found,
            Claim::Doubtful => PromiseFound::Doubtful,
            Claim::Rejected => PromiseFound::Rejected,
            Claim::Missing if self.stop.failure.is_some() => PromiseFound::Error,
            Claim::Missing => PromiseFound::Missing,
        }
    }

    /// The error that ended this turn and the one before, with nothing done in between.
    fn error_again(&self, said: &str, book: &Book) -> Option<String> {
        if self.stop.tool_calls.is_some_and(|calls| calls > 0) {
            return None;
        }
        match &self.stop.failure {
            Some(Failure::Marked(error) | Failure::Reported(error)) => {
                self.before.last_was_error.then(|| error.clone())
            }
            None => {
                let is_again = book.last_words.is_some() && book.last_words == self.before.last_words;
                (is_again && is_error(said, self.stop.now)).then(|| said.trim().to_owned())
            }
        }
    }

    /// A do-it loop's limit is in the book, unless its state file has one.
    fn no_diff_limit(&self) -> u32 {
        match (self.state.kind, self.state.no_diff_limit) {
            (SessionKind::DoIt, 0) => self.before.do_it.no_diff_limit,
            (SessionKind::DoIt | SessionKind::Ralph | SessionKind::Ulw, limit) => limit,
        }
    }
}

/// Why the loop is not complete.
fn reason(found: PromiseFound) -> &'static str {
    match found {
        PromiseFound::Rejected => "the promise was given without work",
        PromiseFound::Error => "the turn ended with an API error",
        PromiseFound::Found
        | PromiseFound::Doubtful
        | PromiseFound::Pause
        | PromiseFound::Missing
        | PromiseFound::Unread => "no promise was given",
    }
}

/// Whether a text may be an error message.
fn is_short(said: &str) -> bool {
    !said.trim().is_empty() && said.len() <= MAX_ERROR_BYTES
}

/// Whether a text is the CLI's message about a failed request.
fn is_error(said: &str, now: DateTime<Utc>) -> bool {
    let is_marked = said.trim_start().starts_with("API Error");
    is_marked || Outage::of_output(said, &outage::common(), now.fixed_offset()).is_some()
}
