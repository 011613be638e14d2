//! A session's loop as JSON, and the row of `session ls`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use swarm_state::promise::Promise;
use swarm_state::session::{Book, SessionId, SessionLoop, SessionStatus};

use crate::session::store::SessionStore;

/// A session's loop. A missing value is null.
#[derive(Debug, Default, Serialize)]
pub(super) struct SessionView {
    pub(super) session: Option<String>,
    pub(super) kind: Option<&'static str>,
    pub(super) active: bool,
    pub(super) status: Option<&'static str>,
    pub(super) reason: Option<String>,
    pub(super) iteration: Option<u32>,
    /// Null for no limit.
    pub(super) max_iterations: Option<u32>,
    completion_promise: Option<String>,
    pause_promise: Option<String>,
    started: Option<String>,
    tool_calls: Option<u64>,
    project: Option<String>,
    branch: Option<String>,
    pub(super) project_dir: Option<PathBuf>,
    pub(super) state_file: Option<PathBuf>,
}

impl SessionView {
    /// A loop that has a state file.
    pub(super) fn of(path: &Path, state: &SessionLoop, book: Option<&Book>) -> Self {
        let token = |promise: &Option<Promise>| promise.as_ref().map(|promise| promise.token().to_owned());
        Self {
            session: state.session().map(ToString::to_string),
            kind: Some(state.kind.word()),
            active: state.active,
            status: book.and_then(|book| book.status).map(SessionStatus::word),
            reason: book.and_then(|book| book.why.clone()),
            iteration: Some(state.iteration),
            max_iterations: Some(state.max_iterations).filter(|max| *max > 0),
            completion_promise: token(&state.completion),
            pause_promise: token(&state.pause),
            started: state.started_at.map(|at| at.to_rfc3339()),
            tool_calls: book.map(|book| book.tool_calls),
            project: Some(state.project.clone()).filter(|name| !name.is_empty()),
            branch: Some(state.branch.clone()).filter(|name| !name.is_empty()),
            project_dir: book.and_then(|book| book.project_dir.clone()),
            state_file: Some(path.to_path_buf()),
        }
    }

    /// The current or last loop of a session.
    pub(super) fn of_session(sessions: &SessionStore, session: &SessionId) -> Self {
        let book = sessions.book(session);
        let found = sessions.find(session, &[]);
        let located =
            found.as_ref().and_then(|found| Some((found.path.as_path(), found.file.as_ref().ok()?)));
        let view = match located {
            Some((path, file)) => Self::of(path, file.state(), Some(&book)),
            None => Self {
                kind: book.kind.map(|kind| kind.word()),
                status: book.status.map(SessionStatus::word),
                reason: book.why,
                iteration: book.iteration,
                max_iterations: book.max_iterations.filter(|max| *max > 0),
                project_dir: book.project_dir,
                ..Self::default()
            },
        };
        Self { session: Some(session.to_string()), ..view }
    }
}
