//! An agent is about to end its turn: is there a loop that keeps it?
//!
//! Finds the loop of the session, finds out what the agent said and did, has `swarm_state::session` decide, and writes
//! down what follows before it is answered. Whatever cannot be done or known lets the stop happen and keeps the loop.
//! Used by [`crate::hooks::run`].

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use swarm_state::hook::{HookEvent, HookHost, HookInput};
use swarm_state::session::{
    After, Book, Decision, Failure, LogLine, PromiseFound, SessionId, SessionKind, SessionLoop, Stop,
    StopAnswer, StopKey, StopOutcome, decide,
};

use super::git::tree_of;
use super::store::{Located, Sessions, write_state};
use super::tail::{self, From, Tail};

/// How long a transcript that is behind is waited for.
const BEHIND: Duration = Duration::from_millis(2000);

/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(40);

/// How long the state of the tree may take to find out, where a loop asks for it.
const TREE: Duration = Duration::from_millis(1500);

/// How long all of it may take that is found out of a stop.
const LOOKING: Duration = Duration::from_millis(2150);

/// What is kept of a hook's time for all that follows the wait for the transcript.
const AFTER_TAIL: Duration = Duration::from_millis(300);

/// What is kept of a hook's time for all that follows the wait for the lock.
const AFTER_LOCK: Duration = Duration::from_millis(1000);

/// How often Claude Code lets itself be kept going in a row when nothing else is said.
const HOST_CAP: u32 = 8;

/// When a hook was called, and until when it must have answered.
#[derive(Clone, Copy, Debug)]
pub struct Called {
    /// When.
    pub at: DateTime<Utc>,
    /// Until when.
    pub until: Instant,
}

impl Called {
    /// How much of its time is left.
    pub fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// What a stop hook was asked, and where.
pub struct Asked<'a> {
    /// Which of the stops it is.
    pub event: HookEvent,
    /// What the host told.
    pub input: &'a HookInput,
    /// The hook's environment.
    pub var: &'a dyn Fn(&str) -> Option<OsString>,
    /// When it was called, and until when it must have answered.
    pub called: Called,
    /// Receives the loop's session and iteration as soon as they are found.
    pub found: &'a dyn Fn(&SessionId, u32),
}

impl Asked<'_> {
    /// Decides; `None` when no loop holds this session.
    pub fn answer(&self, sessions: &Sessions) -> Option<StopAnswer> {
        let session = SessionId::new(self.input.session.as_deref()?).ok()?;
        let is_sub_agent = self.input.event.as_deref() == HookEvent::SubagentStop.setting();
        if self.event == HookEvent::SubagentStop || is_sub_agent {
            return None;
        }
        let found = self.locate(sessions, &session)?;
        (self.found)(&session, found.file.as_ref().map_or(0, |file| file.state().iteration));
        let _lock = match sessions.lock(&found.path, self.called.left().saturating_sub(AFTER_LOCK)) {
            Ok(lock) => lock,
            Err(error) => {
                let why = format!(
                    "the loop's state file stayed locked, so the stop happens and the loop stays: {error}"
                );
                let iteration = found.file.as_ref().map_or(0, |file| file.state().iteration);
                let _ = sessions.log(&session, &unread(iteration, why));
                return None;
            }
        };
        // What was found may have changed until it was ours.
        let found = self.locate(sessions, &session)?;
        let book = sessions.book(&session);
        let mut file = match &found.file {
            Ok(file) => file.clone(),
            Err(error) => {
                let why = format!("{} cannot be read: {error}", found.path.display());
                let _ = sessions.log(&session, &unread(0, why));
                return None;
            }
        };
        let state = file.state().clone();
        let stop = self.look(sessions, &session, &state, &book, &found);
        let outcome = decide(&state, &book, &stop);
        let kept = match &outcome.after {
            After::Unchanged => Ok(()),
            After::Write(state) => {
                file.set((**state).clone());
                write_state(&found.path, &file)
            }
            After::Remove => fs::remove_file(&found.path),
        };
        self.write_down(sessions, &session, &found, &outcome, &kept);
        // A turn that is not counted must not be given.
        kept.is_ok().then_some(outcome.answer)
    }

    fn locate(&self, sessions: &Sessions, session: &SessionId) -> Option<Located> {
        let cwd = self.input.cwd.clone().or_else(|| std::env::current_dir().ok());
        let project = (self.var)("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
        let around: Vec<&Path> = [&cwd, &project].into_iter().filter_map(Option::as_deref).collect();
        sessions.find(session, &around)
    }

    /// What the agent said and did since its last stop.
    fn look(
        &self,
        sessions: &Sessions,
        session: &SessionId,
        state: &SessionLoop,
        book: &Book,
        found: &Located,
    ) -> Stop {
        let (input, start) = (self.input, Instant::now());
        let told = input.last_message.as_deref();
        let key = StopKey::of(input.turn.as_deref(), input.stop_hook_active, told);
        if book.last_stop.as_ref().is_some_and(|last| last.was_answered_for(&key, Some(self.called.at))) {
            // Nothing else of it matters, and others wait for the lock.
            let (session, called) = (Some(session.clone()), Some(self.called.at));
            return Stop { session, key, called, now: Utc::now(), ..Stop::default() };
        }
        let reported = (self.event == HookEvent::StopFailure).then(|| {
            Failure::Reported(
                input.error.clone().or_else(|| input.last_message.clone()).unwrap_or("API error".into()),
            )
        });
        let is_waited_for =
            reported.is_none() && state.active && (told.is_none() || needs_work(state, book, told));
        let tail = self.tail(state, book, is_waited_for);
        let marked = || tail.as_ref().filter(|tail| !tail.is_behind)?.error.clone().map(Failure::Marked);
        let said = input.last_message.clone().or_else(|| {
            let whole = tail.as_ref().filter(|tail| !tail.is_behind)?;
            Some(whole.texts.join("\n\n"))
        });
        let limit =
            if state.kind == SessionKind::DoIt { book.do_it.no_diff_limit } else { state.no_diff_limit };
        let tree = (limit > 0).then(|| {
            let left = LOOKING.saturating_sub(start.elapsed()).min(TREE);
            tree_of(&found.project(), &sessions.scratch(session), left)
        });
        Stop {
            session: Some(session.clone()),
            now: Utc::now(),
            called: Some(self.called.at),
            is_sub_agent: false,
            background_tasks: input.background_tasks.unwrap_or(0),
            said,
            // A transcript that the host names and that is not there holds no work; one that it does not name may.
            tool_calls: tail
                .as_ref()
                .map_or_else(|| input.transcript.as_ref().map(|_| 0), |tail| Some(tail.tool_calls)),
            is_cut: tail.as_ref().is_some_and(|tail| tail.is_cut),
            stop_hook_active: input.stop_hook_active,
            host_cap: self.host_cap(),
            failure: reported.or_else(marked),
            tree: tree.flatten(),
            key,
            is_news: tail.as_ref().map(|tail| tail.is_news),
            queue: tail.as_ref().map(|tail| tail.queue.clone()).unwrap_or_default(),
            mark: tail.map(|tail| tail.mark),
        }
    }

    /// The end of the transcript; one that is behind is waited for when it must be.
    fn tail(&self, state: &SessionLoop, book: &Book, is_waited_for: bool) -> Option<Tail> {
        let path = self.input.transcript.as_deref()?;
        let from = From {
            mark: book.mark.as_ref(),
            began: state.started_at,
            last_message: self.input.last_message.as_deref(),
        };
        let until = Instant::now() + BEHIND.min(self.called.left().saturating_sub(AFTER_TAIL));
        loop {
            let tail = tail::read(path, from).ok();
            let is_whole = tail.as_ref().is_some_and(|tail| !tail.is_behind);
            if is_whole || !is_waited_for || Instant::now() >= until {
                return tail;
            }
            sleep(LOOK);
        }
    }

    /// How often in a row the host lets itself be kept going: only Claude Code has such a limit, and only since it
    /// tells hooks its last message.
    fn host_cap(&self) -> Option<u32> {
        let has = |name: &str| (self.var)(name).is_some_and(|value| !value.is_empty());
        let is_claude = ["CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PID", "CLAUDECODE"].iter().any(|name| has(name));
        if self.input.host != HookHost::Claude || !is_claude || self.input.last_message.is_none() {
            return None;
        }
        let said = (self.var)("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP")
            .and_then(|cap| cap.into_string().ok()?.trim().parse().ok());
        Some(said.unwrap_or(HOST_CAP)).filter(|cap| *cap > 0)
    }

    /// The book, the log and the note. The loop goes on without them.
    fn write_down(
        &self,
        sessions: &Sessions,
        session: &SessionId,
        found: &Located,
        outcome: &StopOutcome,
        kept: &io::Result<()>,
    ) {
        if let Err(error) = kept {
            let why = format!("{} could not be written, so the stop happens: {error}", found.path.display());
            let iteration = found.file.as_ref().map_or(0, |file| file.state().iteration);
            let _ = sessions.log(session, &unread(iteration, why));
            return;
        }
        let book = Book {
            state_file: Some(found.path.clone()),
            project_dir: Some(found.project()),
            ..outcome.book.clone()
        };
        let _ = sessions.keep_book(session, &book);
        if let Some(line) = &outcome.log {
            let _ = sessions.log(session, line);
        }
        if let Some(note) = &outcome.note {
            let _ = add_note(&found.project(), note);
        }
    }
}

/// Whether a promise stands in the agent's words that only counts with work, and none was seen yet.
fn needs_work(state: &SessionLoop, book: &Book, told: Option<&str>) -> bool {
    let is_given = state.completion.as_ref().zip(told).is_some_and(|(promise, told)| promise.is_in(told));
    is_given && state.min_tool_calls > book.tool_calls
}

/// The log's line for a stop that happened because something could not be done or found out.
pub(crate) fn unread(iteration: u32, why: String) -> LogLine {
    LogLine {
        time: Utc::now(),
        iteration,
        promise: PromiseFound::Unread,
        decision: Decision::Allow,
        status: None,
        why,
    }
}

/// Adds a note to the project's progress file, where it has one.
fn add_note(project: &Path, note: &str) -> io::Result<()> {
    let path = project.join(".do-it/progress.md");
    if !path.parent().is_some_and(Path::is_dir) {
        return Ok(());
    }
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("\n{}\n", note.trim_end()).as_bytes())
}
