//! The outcome of each decision on a stop: the answer, the book, the log line and the state to write.

use super::{Case, MAX_ERROR_BYTES, reason, untouched};
use crate::session::book::{Book, Decision, LastStop, LogLine, PromiseFound};
use crate::session::state::{SessionLoop, SessionStatus};
use crate::session::stop::{After, StopAnswer, StopOutcome};
use crate::session::texts::block_text;

impl Case<'_> {
    pub(super) fn completed(&self, book: Book, found: PromiseFound, why: &str) -> StopOutcome {
        self.removed(book, found, SessionStatus::PromiseAccepted, why.to_owned())
    }

    pub(super) fn out_of_iterations(&self, book: Book, found: PromiseFound) -> StopOutcome {
        let why = format!("{} and all {} iterations are used up", reason(found), self.state.max_iterations);
        self.removed(book, found, SessionStatus::MaxIterationsReached, why)
    }

    pub(super) fn paused_by_promise(&self, book: Book) -> StopOutcome {
        let why = "the pause promise was given: it is a person's turn".to_owned();
        self.removed(book, PromiseFound::Pause, SessionStatus::Paused, why)
    }

    pub(super) fn cancelled(&self, book: Book, found: PromiseFound) -> StopOutcome {
        let why = "a cancel was typed while the agent worked".to_owned();
        self.removed(book, found, SessionStatus::Cancelled, why)
    }

    /// The stop happens, so that the CLI submits queued messages. The loop continues at the next stop.
    pub(super) fn makes_way(&self, book: Book, found: PromiseFound) -> StopOutcome {
        let why = match book.queue.len() {
            1 => "a queued message goes to the agent first".to_owned(),
            count => format!("{count} queued messages go to the agent first"),
        };
        let message = format!("swarm: {why}; the loop continues after that");
        let book = Book {
            last_stop: Some(self.last_stop(Decision::Allow, found, Some(message.clone()))),
            blocks_in_a_row: 0,
            ..book
        };
        StopOutcome {
            answer: StopAnswer::Allow(Some(message)),
            after: After::Write(Box::new(self.state.clone())),
            log: Some(self.line(found, Decision::Allow, None, format!("{}; {why}", reason(found)))),
            book,
            ..StopOutcome::default()
        }
    }

    pub(super) fn capped(&self, book: Book, found: PromiseFound) -> StopOutcome {
        let why = format!(
            "{}, and the agent CLI lets a hook hold a turn only {} times in a row; the loop continues with the next prompt",
            reason(found),
            book.blocks_in_a_row
        );
        let after = After::Write(Box::new(self.state.clone()));
        self.ended(book, found, SessionStatus::HostCap, why, after)
    }

    pub(super) fn no_progress(&self, book: Book, found: PromiseFound) -> StopOutcome {
        let why = format!("the tree did not change in {} iterations in a row", book.without_diff);
        let note = format!(
            "No progress: {why} (up to iteration {}). The loop is paused until somebody has looked.",
            self.state.iteration
        );
        StopOutcome { note: Some(note), ..self.paused(book, found, why) }
    }

    pub(super) fn failed(&self, error: &str) -> StopOutcome {
        let why = format!("API error: {}", short(error));
        // The work of this turn counts when the loop continues.
        let book = self.counted(self.stop.said.as_deref().unwrap_or_default());
        self.paused(book, PromiseFound::Error, why)
    }

    pub(super) fn failed_again(&self, book: Book, error: &str) -> StopOutcome {
        let why = format!("API error, twice in a row: {}", short(error));
        self.paused(book, PromiseFound::Error, why)
    }

    /// The loop waits for a person, and can be resumed.
    fn paused(&self, book: Book, found: PromiseFound, why: String) -> StopOutcome {
        let state = SessionLoop { active: false, ..self.state.clone() };
        self.ended(book, found, SessionStatus::Paused, why, After::Write(Box::new(state)))
    }

    fn removed(&self, book: Book, found: PromiseFound, status: SessionStatus, why: String) -> StopOutcome {
        self.ended(book, found, status, why, After::Remove)
    }

    fn ended(
        &self,
        book: Book,
        found: PromiseFound,
        status: SessionStatus,
        why: String,
        after: After,
    ) -> StopOutcome {
        let message = format!("swarm: {} in iteration {}: {why}", status.word(), self.state.iteration);
        let book = Book {
            last_stop: Some(self.last_stop(Decision::Allow, found, Some(message.clone()))),
            blocks_in_a_row: 0,
            status: Some(status),
            why: Some(why.clone()),
            ..book
        }
        .of(self.state);
        StopOutcome {
            answer: StopAnswer::Allow(Some(message)),
            after,
            book,
            log: Some(self.line(found, Decision::Allow, Some(status), why)),
            status: Some(status),
            note: None,
        }
    }

    pub(super) fn blocked(&self, book: Book, found: PromiseFound) -> StopOutcome {
        let state = SessionLoop { iteration: self.state.iteration.saturating_add(1), ..self.state.clone() };
        let book = Book {
            last_stop: Some(self.last_stop(Decision::Block, found, None)),
            blocks_in_a_row: book.blocks_in_a_row.saturating_add(1),
            ..book
        };
        StopOutcome {
            answer: StopAnswer::Block(block_text(&state, found, book.tool_calls)),
            after: After::Write(Box::new(state)),
            log: Some(self.line(found, Decision::Block, None, reason(found).to_owned())),
            book,
            ..StopOutcome::default()
        }
    }

    /// The stop happens and nothing changes.
    pub(super) fn kept(&self, why: String) -> StopOutcome {
        let log = self.line(PromiseFound::Unread, Decision::Allow, None, why);
        StopOutcome { log: Some(log), ..untouched(self.before, None) }
    }

    fn last_stop(&self, decision: Decision, found: PromiseFound, message: Option<String>) -> LastStop {
        LastStop { key: self.stop.key.clone(), at: self.stop.now, decision, found, message }
    }

    fn line(
        &self,
        promise: PromiseFound,
        decision: Decision,
        status: Option<SessionStatus>,
        why: String,
    ) -> LogLine {
        LogLine { time: self.stop.now, iteration: self.state.iteration, promise, decision, status, why }
    }
}

fn short(error: &str) -> String {
    let line = error.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason was given");
    line.chars().take(MAX_ERROR_BYTES).collect()
}
