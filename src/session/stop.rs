//! Answers a Stop hook: may the agent end its turn, or does a loop keep it going?
//!
//! Finds the loop of the session, collects what the agent printed and did, calls `swarm_state::session::decide`, and
//! writes the outcome before the answer. When anything fails or is unknown, the stop is allowed and the loop is kept.
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
    Book, Failure, LogLine, SessionId, SessionKind, SessionLoop, Stop, StopAnswer, StopKey, StopOutcome,
    decide,
};

use super::git::tree_of;
use super::store::{LocatedLoop, SessionStore};
use super::tail::{self, TailStart, TranscriptTail};

/// How long to wait for a transcript that does not contain the last answer yet.
const TRANSCRIPT_TIMEOUT: Duration = Duration::from_millis(2000);

/// How often such a transcript is read again.
const TRANSCRIPT_POLL_INTERVAL: Duration = Duration::from_millis(40);

/// How long git may take for the tree's fingerprint, where a loop needs it.
const TREE_TIMEOUT: Duration = Duration::from_millis(1500);

/// How long the transcript and the fingerprint may take together.
const STOP_READ_TIMEOUT: Duration = Duration::from_millis(2150);

/// The part of the hook's time that is reserved for the steps after the transcript.
const RESERVE_AFTER_TRANSCRIPT: Duration = Duration::from_millis(300);

/// The part of the hook's time that is reserved for the steps after the lock.
const RESERVE_AFTER_LOCK: Duration = Duration::from_millis(1000);

/// How often in a row Claude Code accepts a block by default.
const DEFAULT_HOST_CAP: u32 = 8;

/// When a hook was called, and its deadline.
#[derive(Clone, Copy, Debug)]
pub struct HookCall {
    /// The time of the call.
    pub at: DateTime<Utc>,
    /// The deadline of the answer.
    pub until: Instant,
}

impl HookCall {
    /// Returns the time that is left.
    pub fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// One call of a Stop hook.
pub struct StopRequest<'a> {
    /// The kind of stop.
    pub event: HookEvent,
    /// The input from the host.
    pub input: &'a HookInput,
    /// The hook's environment.
    pub var: &'a dyn Fn(&str) -> Option<OsString>,
    /// When it was called, and its deadline.
    pub called: HookCall,
    /// Receives the loop's session and iteration as soon as they are found.
    pub found: &'a dyn Fn(&SessionId, u32),
}

impl StopRequest<'_> {
    /// Decides the stop; `None` when no loop keeps this session going.
    pub fn answer(&self, sessions: &SessionStore) -> Option<StopAnswer> {
        let session = SessionId::new(self.input.session.as_deref()?).ok()?;
        let is_sub_agent = self.input.event.as_deref() == HookEvent::SubagentStop.setting();
        if self.event == HookEvent::SubagentStop || is_sub_agent {
            return None;
        }
        let found = self.locate(sessions, &session)?;
        (self.found)(&session, found.file.as_ref().map_or(0, |file| file.state().iteration));
        let _lock = match sessions.lock(&found.path, self.called.left().saturating_sub(RESERVE_AFTER_LOCK)) {
            Ok(lock) => lock,
            Err(error) => {
                let why = format!(
                    "the loop's state file stayed locked, so the stop happens and the loop stays: {error}"
                );
                let iteration = found.file.as_ref().map_or(0, |file| file.state().iteration);
                let _ = sessions.log(&session, &doubt_line(iteration, why));
                return None;
            }
        };
        // The loop may have changed before the lock was acquired.
        let found = self.locate(sessions, &session)?;
        let book = sessions.book(&session);
        let state = match &found.file {
            Ok(file) => file.state(),
            Err(error) => {
                let why = format!("{} cannot be read: {error}", found.path.display());
                let _ = sessions.log(&session, &doubt_line(0, why));
                return None;
            }
        };
        let stop = self.gather(sessions, &session, state, &book, &found);
        let outcome = decide(state, &book, &stop);
        let kept = found.apply(&outcome.after);
        self.write_down(sessions, &session, &found, &outcome, &kept);
        // The agent must not get a turn that could not be counted.
        kept.is_ok().then_some(outcome.answer)
    }

    fn locate(&self, sessions: &SessionStore, session: &SessionId) -> Option<LocatedLoop> {
        let cwd = self.input.cwd.clone().or_else(|| std::env::current_dir().ok());
        let project = (self.var)("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
        let around: Vec<&Path> = [&cwd, &project].into_iter().filter_map(Option::as_deref).collect();
        sessions.find(session, &around)
    }

    /// Collects what the agent printed and did since its last stop.
    fn gather(
        &self,
        sessions: &SessionStore,
        session: &SessionId,
        state: &SessionLoop,
        book: &Book,
        found: &LocatedLoop,
    ) -> Stop {
        let (input, start) = (self.input, Instant::now());
        let last_message = input.last_message.as_deref();
        let key = StopKey::of(input.turn.as_deref(), input.stop_hook_active, last_message);
        if book.last_stop.as_ref().is_some_and(|last| last.was_answered_for(&key, Some(self.called.at))) {
            // The stop was answered already. Other hooks wait for the lock, so nothing else is read.
            let (session, called) = (Some(session.clone()), Some(self.called.at));
            return Stop { session, key, called, now: Utc::now(), ..Stop::default() };
        }
        let reported = (self.event == HookEvent::StopFailure).then(|| {
            Failure::Reported(
                input.error.clone().or_else(|| input.last_message.clone()).unwrap_or("API error".into()),
            )
        });
        let is_waited_for = reported.is_none()
            && state.active
            && (last_message.is_none() || needs_work(state, book, last_message));
        let tail = self.tail(state, book, is_waited_for);
        let marked = || tail.as_ref().filter(|tail| !tail.is_behind)?.error.clone().map(Failure::Marked);
        let said = input.last_message.clone().or_else(|| {
            let whole = tail.as_ref().filter(|tail| !tail.is_behind)?;
            Some(whole.texts.join("\n\n"))
        });
        let limit =
            if state.kind == SessionKind::DoIt { book.do_it.no_diff_limit } else { state.no_diff_limit };
        let tree = (limit > 0).then(|| {
            let left = STOP_READ_TIMEOUT.saturating_sub(start.elapsed()).min(TREE_TIMEOUT);
            tree_of(&found.project(), &sessions.scratch(session), left)
        });
        Stop {
            session: Some(session.clone()),
            now: Utc::now(),
            called: Some(self.called.at),
            is_sub_agent: false,
            background_tasks: input.background_tasks.unwrap_or(0),
            said,
            // A named transcript that does not exist contains no tool calls; without a name, the number is unknown.
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

    /// Reads the end of the transcript, and waits for the last answer where it is needed.
    fn tail(&self, state: &SessionLoop, book: &Book, is_waited_for: bool) -> Option<TranscriptTail> {
        let path = self.input.transcript.as_deref()?;
        let from = TailStart {
            mark: book.mark.as_ref(),
            began: state.started_at,
            last_message: self.input.last_message.as_deref(),
        };
        let until = Instant::now()
            + TRANSCRIPT_TIMEOUT.min(self.called.left().saturating_sub(RESERVE_AFTER_TRANSCRIPT));
        loop {
            let tail = tail::read(path, from).ok();
            let is_whole = tail.as_ref().is_some_and(|tail| !tail.is_behind);
            if is_whole || !is_waited_for || Instant::now() >= until {
                return tail;
            }
            sleep(TRANSCRIPT_POLL_INTERVAL);
        }
    }

    /// Returns how often in a row the host accepts a block. Only Claude Code has such a limit, in the versions that
    /// pass the last message to hooks.
    fn host_cap(&self) -> Option<u32> {
        let has = |name: &str| (self.var)(name).is_some_and(|value| !value.is_empty());
        let is_claude = ["CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PID", "CLAUDECODE"].iter().any(|name| has(name));
        if self.input.host != HookHost::Claude || !is_claude || self.input.last_message.is_none() {
            return None;
        }
        let said = (self.var)("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP")
            .and_then(|cap| cap.into_string().ok()?.trim().parse().ok());
        Some(said.unwrap_or(DEFAULT_HOST_CAP)).filter(|cap| *cap > 0)
    }

    /// Writes the book, the log and the note. The loop works without them, so errors are ignored.
    fn write_down(
        &self,
        sessions: &SessionStore,
        session: &SessionId,
        found: &LocatedLoop,
        outcome: &StopOutcome,
        kept: &io::Result<()>,
    ) {
        if let Err(error) = kept {
            let why = format!("{} could not be written, so the stop happens: {error}", found.path.display());
            let iteration = found.file.as_ref().map_or(0, |file| file.state().iteration);
            let _ = sessions.log(session, &doubt_line(iteration, why));
            return;
        }
        let book = Book {
            state_file: Some(found.path.clone()),
            project_dir: Some(found.project()),
            ..outcome.book.clone()
        };
        sessions.note(session, &book, outcome.log.as_ref());
        if let Some(note) = &outcome.note {
            let _ = add_note(&found.project(), note);
        }
    }
}

/// Whether the last message contains the promise, and the promise needs tool calls that were not seen yet.
fn needs_work(state: &SessionLoop, book: &Book, last_message: Option<&str>) -> bool {
    let is_printed = state
        .completion
        .as_ref()
        .zip(last_message)
        .is_some_and(|(promise, last_message)| promise.is_in(last_message));
    is_printed && state.min_tool_calls > book.tool_calls
}

/// The log line for a stop that was allowed because something failed or is unknown.
pub(crate) fn doubt_line(iteration: u32, why: String) -> LogLine {
    LogLine::unread(Utc::now(), iteration, why)
}

/// Adds a note to the project's progress file, if the project has a `.do-it` directory.
fn add_note(project: &Path, note: &str) -> io::Result<()> {
    let path = project.join(".do-it/progress.md");
    if !path.parent().is_some_and(Path::is_dir) {
        return Ok(());
    }
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("\n{}\n", note.trim_end()).as_bytes())
}
