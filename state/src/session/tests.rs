//! Tests of a session loop, rule by rule.

mod decide;
mod file;
mod preflight;
mod properties;
mod queue;
mod rules;
mod texts;
mod words;

use chrono::{DateTime, TimeDelta, Utc};

use crate::promise::Promise;
use crate::session::*;

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

/// A loop of session `s` that ends with DONE.
fn ralph(turns: u32) -> SessionLoop {
    let ceiling = Ceiling::new(turns).unwrap();
    let state =
        SessionLoop::ralph(SessionKind::Ralph, id("s"), "the task", ceiling, Promise::new("DONE").unwrap());
    SessionLoop { started_at: Some(at(0)), ..state }
}

/// A do-it loop of session `s`.
fn do_it(turns: u32) -> SessionLoop {
    let state = SessionLoop::do_it(id("s"), &ready(turns), b"the contract\n".to_vec());
    SessionLoop { started_at: Some(at(0)), ..state }
}

fn ready(turns: u32) -> Ready {
    Ready {
        project_name: "Shop".into(),
        project_type: ProjectType::Software,
        branch_name: "main".into(),
        create_branch: false,
        ceiling: Ceiling::new(turns).unwrap(),
    }
}

/// A stop of session `s` after some work.
fn says(text: &str) -> Stop {
    Stop {
        session: Some(id("s")),
        said: Some(text.to_owned()),
        tool_calls: Some(1),
        stop_hook_active: Some(false),
        key: StopKey::of(None, Some(false), Some(text)),
        is_news: Some(true),
        ..Stop::default()
    }
}

/// A loop and its book, as `swarm hook` keeps them.
struct World {
    state: Option<SessionLoop>,
    book: Book,
    log: Vec<LogLine>,
}

impl World {
    fn new(state: SessionLoop) -> Self {
        Self { state: Some(state), book: Book::default(), log: Vec::new() }
    }

    fn state(&self) -> &SessionLoop {
        self.state.as_ref().unwrap()
    }

    /// Decides on a stop and applies the outcome; `None` if the loop has ended.
    fn stop(&mut self, stop: &Stop) -> Option<StopOutcome> {
        let state = self.state.as_ref()?;
        let outcome = decide(state, &self.book, stop);
        // The state is rendered and parsed, as on disk.
        match &outcome.after {
            After::Unchanged => {}
            After::Write(state) => {
                let bytes = SessionFile::new(state.as_ref().clone()).render();
                self.state = Some(SessionFile::parse(&bytes).unwrap().state().clone());
                assert_eq!(self.state(), state.as_ref());
            }
            After::Remove => self.state = None,
        }
        self.book = Book::parse(&outcome.book.render());
        assert_eq!(self.book, outcome.book);
        self.log.extend(outcome.log.iter().map(|line| LogLine::parse(&line.render()).unwrap()));
        Some(outcome)
    }

    fn status(&mut self, stop: &Stop) -> Option<SessionStatus> {
        self.stop(stop).unwrap().status
    }
}

fn is_block(outcome: &StopOutcome) -> bool {
    matches!(outcome.answer, StopAnswer::Block(_))
}
