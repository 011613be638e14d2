//! Starts, resumes and cancels a loop within a session.
//!
//! Used by the shell commands ([`super::verbs`]) and by slash commands that were typed into the agent
//! ([`super::prompt`]). A start fails when something is missing or another loop is active. A loop that was paused or
//! let stop resumes where it was. Deliberately absent: the requirements of a do-it project ([`super::project`]) and
//! printing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use swarm_state::promise::Promise;
use swarm_state::session::{
    After, Book, Ceiling, DO_IT_FILE, Decision, DoItOptions, LogLine, MIN_TOOL_CALLS, Owner, PromiseFound,
    RALPH_COMPLETE, SESSION_STATE_DIR, SessionFile, SessionId, SessionKind, SessionLoop, SessionStatus,
    StopOutcome, Words, cancel, resume,
};

use super::git::{exclude, tree_of};
use super::project::{self, StartRequest};
use super::store::{COMMAND_LOCK_TIMEOUT, LocatedLoop, SessionStore, write_state};
use crate::cli::SessionPlace;
use crate::error::{Error, Result, failed};
use crate::paths::OWN_DIRECTORY;
use crate::shell::quote_path;

/// The maximum size of a task, which is fed back whole at every turn.
pub const MAX_TASK_BYTES: usize = 1 << 20;

/// When two hooks are installed, both report the same start within this time.
const REPEAT_WINDOW: TimeDelta = TimeDelta::seconds(10);

/// How long git may take for the tree's fingerprint at the start, while the user's prompt waits.
const TREE_TIMEOUT_AT_START: Duration = Duration::from_secs(2);

/// A loop that was started or resumed.
#[derive(Clone, Debug)]
pub struct StartedLoop {
    /// The state file.
    pub path: PathBuf,
    /// The loop as the state file describes it.
    pub state: SessionLoop,
    /// The loop existed and was resumed.
    pub resumed: bool,
    /// Another hook of swarm has started it for the same prompt.
    pub repeated: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Starts a loop, or resumes the existing one. Starts nothing, and fails, when something is missing or another loop is
/// active.
pub fn start(sessions: &SessionStore, request: &StartRequest) -> Result<StartedLoop> {
    let dir = request.dir.canonicalize().map_err(|e| failed("use", &request.dir, e))?;
    let root = if request.kind == SessionKind::DoIt { project::root_of(&dir) } else { dir.clone() };
    let path = root.join(SESSION_STATE_DIR).join(request.kind.file_name(&request.session));
    // Together, since a hook has to answer in time.
    let until = Instant::now() + COMMAND_LOCK_TIMEOUT;
    let lock = |path: &Path| {
        sessions.lock(path, until.saturating_duration_since(Instant::now())).map_err(not_locked)
    };
    // A session has one loop in all directories together, and a project has one do-it loop.
    let _session = lock(&sessions.dir(&request.session))?;
    let found = sessions.find(&request.session, &[&dir]).map_or_else(|| path.clone(), |found| found.path);
    let _file = lock(&found)?;
    let now = Utc::now().trunc_subsecs(3);
    if let Some(found) = LocatedLoop::read(found) {
        return resume_existing(sessions, request, &found, &path, now);
    }
    let (state, options, mut warnings) = match request.kind {
        SessionKind::DoIt => project::prepare(sessions, &root, request, now)?,
        SessionKind::Ralph | SessionKind::Ulw => (task_loop(request, now)?, DoItOptions::default(), vec![]),
    };
    warnings.extend(warning(&state));
    let file = SessionFile::new(state.clone());
    write_state(&path, &file).map_err(|e| failed("write", &path, e))?;
    // Before the fingerprint of the tree, which must not contain the state file.
    exclude(&root, &path);
    // From here on, stops without a change of the tree are counted.
    let tree = (request.words.no_diff_limit.unwrap_or(0) > 0)
        .then(|| tree_of(&root, &sessions.scratch(&request.session), TREE_TIMEOUT_AT_START))
        .flatten();
    let book = Book {
        tree,
        state_file: Some(path.clone()),
        project_dir: Some(root.clone()),
        do_it: options,
        ..Book::default().of(&state)
    };
    let noted = sessions
        .keep_book(&request.session, &book)
        .and_then(|()| sessions.log(&request.session, &LogLine::unread(now, state.iteration, "started")));
    if let Err(error) = noted {
        warnings.push(format!("the loop runs, but its log cannot be written: {error}"));
    }
    Ok(StartedLoop { path, state, resumed: false, repeated: false, warnings })
}

/// Handles a start at `path` where a loop exists: resumes it or returns the conflict.
fn resume_existing(
    sessions: &SessionStore,
    request: &StartRequest,
    found: &LocatedLoop,
    path: &Path,
    now: DateTime<Utc>,
) -> Result<StartedLoop> {
    let shown = found.path.display();
    let state = readable(found)?.clone();
    let book = sessions.book(&request.session);
    if found.path == path && is_repeated(&state, &book, request, now) {
        let path = found.path.clone();
        return Ok(StartedLoop { path, state, resumed: false, repeated: true, warnings: vec![] });
    }
    let is_own = state.session().is_none_or(|session| *session == request.session);
    let conflict = |whose: &str, hint: &str| {
        let end = match state.session() {
            Some(owner) => {
                format!("swarm session cancel --session-id {owner}, or /cancel-ralph in that session")
            }
            None => format!("rm {}", quote_path(&found.path)),
        };
        let message = format!("{whose} already ({}): {shown}", state.position());
        Err(Error::conflict(message).hint(format!("to end it: {end}{hint}")))
    };
    if !is_own && state.active {
        return conflict(&format!("session {} has a loop here", owner_of(&state)), "");
    }
    let is_other = !is_the_same_task(&state, request);
    if is_other || (state.active && !was_kept(sessions, &request.session, &state, &book)) {
        let what = if is_other && !state.active { "a paused loop" } else { "a live loop" };
        let resume = "; to resume a paused loop, start it again without a task";
        return conflict(&format!("this session has {what}"), resume);
    }
    let (state, mut warnings) = with_new_limit(state, &request.words);
    warnings.extend(warning(&state));
    let outcome = resume(&state, &skip_paused_text(book), &request.session, now);
    apply(sessions, &request.session, found, &outcome)?;
    let state = if let After::Write(resumed) = outcome.after { *resumed } else { state };
    Ok(StartedLoop { path: found.path.clone(), state, resumed: true, repeated: false, warnings })
}

/// Sets the new limit of a resumed loop. Its other options cannot change; a warning lists those that were given.
fn with_new_limit(state: SessionLoop, words: &Words) -> (SessionLoop, Vec<String>) {
    let max_iterations = words.max_iterations.map_or(state.max_iterations, Ceiling::turns);
    let said = [
        ("--completion-promise", words.completion_promise.is_some()),
        ("--min-tool-calls", words.min_tool_calls.is_some()),
        ("--on-promise-no-work", words.on_no_work.is_some()),
        ("--no-diff-limit", words.no_diff_limit.is_some()),
        ("--contract", words.contract.is_some()),
    ];
    let ignored: Vec<&str> = said.into_iter().filter(|(_, is_said)| *is_said).map(|(name, _)| name).collect();
    let warnings = (!ignored.is_empty()).then(|| {
        format!(
            "the loop resumes with its former options; {} ignored (cancel the loop and start it again to change them)",
            ignored.join(", ")
        )
    });
    (SessionLoop { max_iterations, ..state }, warnings.into_iter().collect())
}

fn warning(state: &SessionLoop) -> Option<String> {
    Ceiling::new(state.max_iterations).ok()?.warning().map(ToOwned::to_owned)
}

/// Skips the part of the transcript that was written while the loop was paused.
fn skip_paused_text(mut book: Book) -> Book {
    if let Some(mark) = &mut book.mark {
        mark.position = fs::metadata(&mark.transcript).map_or(mark.position, |found| found.len());
    }
    book
}

/// Whether another hook has just started the same loop for the same prompt.
fn is_repeated(state: &SessionLoop, book: &Book, request: &StartRequest, now: DateTime<Utc>) -> bool {
    let is_fresh = state.started_at.is_some_and(|at| now.signed_duration_since(at).abs() < REPEAT_WINDOW);
    let is_own = state.session() == Some(&request.session);
    let is_first = state.active && state.iteration == 1 && book.last_stop.is_none();
    let (max, promise) = (request.words.max_iterations, &request.words.completion_promise);
    let has_options = max.is_none_or(|max| max.turns() == state.max_iterations)
        && (promise.is_none() || *promise == state.completion);
    is_own && is_fresh && is_first && has_options && is_the_same_task(state, request)
}

/// Whether a start means the existing loop: it has no task or the same one. A do-it loop has no task.
fn is_the_same_task(state: &SessionLoop, request: &StartRequest) -> bool {
    let is_kind = (state.kind == SessionKind::DoIt) == (request.kind == SessionKind::DoIt);
    is_kind && (request.words.task.is_empty() || state.body == request.words.task.as_bytes())
}

/// Whether the loop's last stop was allowed although the loop had not ended.
fn was_kept(sessions: &SessionStore, session: &SessionId, state: &SessionLoop, book: &Book) -> bool {
    let last = sessions.log_lines(session).pop();
    let in_doubt = last.is_some_and(|line| {
        // The first line is that of the start.
        let is_first = state.started_at.is_none_or(|at| at == line.time);
        line.promise == PromiseFound::Unread && line.decision == Decision::Allow && !is_first
    });
    in_doubt || matches!(book.status, Some(SessionStatus::HostCap | SessionStatus::Paused))
}

/// The error for a task that is too long.
pub fn too_long() -> Error {
    Error::invalid(format!("the task is longer than {MAX_TASK_BYTES} bytes"))
        .hint("write the task into a file, and give its path as the task")
}

/// Builds the loop of a task.
fn task_loop(request: &StartRequest, now: DateTime<Utc>) -> Result<SessionLoop> {
    let words = &request.words;
    if words.task.trim().is_empty() {
        return Err(Error::invalid("no task given")
            .hint("swarm session start 'what is to be done', or /ralph-loop \"what is to be done\""));
    }
    if words.task.len() > MAX_TASK_BYTES {
        return Err(too_long());
    }
    let promise = match &words.completion_promise {
        Some(promise) => promise.clone(),
        None => Promise::new(RALPH_COMPLETE).map_err(|e| Error::invalid(e.to_string()))?,
    };
    let mut state = SessionLoop::ralph(
        request.kind,
        request.session.clone(),
        &words.task,
        words.max_iterations.unwrap_or_default(),
        promise,
    );
    state.started_at = Some(now);
    state.min_tool_calls = words.min_tool_calls.unwrap_or(MIN_TOOL_CALLS);
    state.on_no_work = words.on_no_work.unwrap_or_default();
    state.no_diff_limit = words.no_diff_limit.unwrap_or(0);
    Ok(state)
}

/// The error for a state file that could not be locked.
fn not_locked(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => Error::system("the loop is in use by another process", error),
        _ => Error::system("cannot lock the loop", error).hint(OWN_DIRECTORY),
    }
}

/// Cancels a loop and returns it; `None` when there is none. Fails if the state file cannot be removed, or there are
/// several loops and none was named.
pub fn cancel_loop(
    sessions: &SessionStore,
    session: Option<&SessionId>,
    dir: &Path,
) -> Result<Option<LocatedLoop>> {
    let Some(found) = find_loop(sessions, session, dir)? else { return Ok(None) };
    let _lock = sessions.lock(&found.path, COMMAND_LOCK_TIMEOUT).map_err(not_locked)?;
    // Before the lock was acquired, the loop may have changed or ended, and another session have started one.
    let is_meant = |found: &LocatedLoop| {
        let owner = found.file.as_ref().ok().and_then(|file| file.state().session());
        session.is_none() || owner.is_none() || owner == session
    };
    let Some(found) = LocatedLoop::read(found.path).filter(is_meant) else { return Ok(None) };
    let state = found.file.as_ref().ok().map(SessionFile::state);
    match state.and_then(|state| Some((state, state.session().or(session)?))) {
        Some((state, owner)) => {
            apply(sessions, owner, &found, &cancel(state, &sessions.book(owner), Utc::now()))?;
        }
        // A file that is unreadable or names no session keeps no session going, so it can be removed.
        None => fs::remove_file(&found.path).map_err(|e| failed("remove", &found.path, e))?,
    }
    Ok(Some(found))
}

/// Whether a session's loop was canceled a moment ago.
pub fn was_just_cancelled(sessions: &SessionStore, session: &SessionId) -> bool {
    let last = sessions.log_lines(session).pop();
    last.is_some_and(|line| {
        line.status == Some(SessionStatus::Cancelled)
            && Utc::now().signed_duration_since(line.time).abs() < REPEAT_WINDOW
    })
}

/// Finds the loop of a session; without one, the only loop in the directory or its parents. Fails if there are
/// several loops and no session was named.
pub fn find_loop(
    sessions: &SessionStore,
    session: Option<&SessionId>,
    dir: &Path,
) -> Result<Option<LocatedLoop>> {
    let mut around = sessions.around(dir);
    if let Some(session) = session {
        // A project has one do-it loop. When its file is unreadable, it may belong to this session.
        let is_meant = |found: &LocatedLoop| found.file.is_err() && found.path.ends_with(DO_IT_FILE);
        return Ok(sessions.find(session, &[dir]).or_else(|| around.into_iter().find(is_meant)));
    }
    if around.len() < 2 {
        return Ok(around.pop());
    }
    let names: Vec<String> = around.iter().map(|found| format!("'{}'", found.path.display())).collect();
    let text = format!("there are several loops here: {}", names.join(", "));
    Err(Error::invalid(text).hint("choose one: --session-id ID"))
}

fn apply(
    sessions: &SessionStore,
    session: &SessionId,
    found: &LocatedLoop,
    outcome: &StopOutcome,
) -> Result<()> {
    let verb = if outcome.after == After::Remove { "remove" } else { "write" };
    found.apply(&outcome.after).map_err(|e| failed(verb, &found.path, e))?;
    sessions.note(session, &outcome.book, outcome.log.as_ref());
    Ok(())
}

/// Returns the loop of a state file. Fails if the file cannot be read.
pub fn readable(found: &LocatedLoop) -> Result<&SessionLoop> {
    let shown = found.path.display();
    found.file.as_ref().map(SessionFile::state).map_err(|error| {
        Error::conflict(format!("{shown} cannot be read: {error}")).hint(format!(
            "fix that line, or remove the file to cancel its loop: rm {}",
            quote_path(&found.path)
        ))
    })
}

/// Returns the owner of a loop as text.
pub fn owner_of(state: &SessionLoop) -> &str {
    match &state.owner {
        Owner::Session(session) => session.as_str(),
        Owner::Unclaimed if state.kind == SessionKind::DoIt => "(the first session that stops here)",
        Owner::Unclaimed => "(nobody: its file names no session)",
        Owner::Nobody => "(nobody)",
    }
}

/// The variable in which Claude Code passes its session id to its child processes.
const SESSION_VARIABLE: &str = "CLAUDE_CODE_SESSION_ID";

pub(super) fn current_session() -> Result<Option<SessionId>> {
    let Some(id) = std::env::var_os(SESSION_VARIABLE).filter(|id| !id.is_empty()) else { return Ok(None) };
    let id = id.to_string_lossy();
    SessionId::new(&id).map(Some).map_err(|e| Error::invalid(format!("{SESSION_VARIABLE}: {e}")))
}

pub(super) fn project_dir(cwd: Option<&PathBuf>) -> Result<PathBuf> {
    match cwd {
        Some(dir) => dir.canonicalize().map_err(|e| failed("use", dir, e)),
        None => std::env::current_dir().map_err(|e| Error::system("cannot use the current directory", e)),
    }
}

/// Returns the session of `--session-id`, else the one that this command runs in.
pub(super) fn named_session(place: &SessionPlace) -> Result<Option<SessionId>> {
    place.session_id.clone().map_or_else(current_session, |session| Ok(Some(session)))
}

/// As [`named_session`], else the session that last had a loop in this directory.
pub(super) fn last_session(sessions: &SessionStore, place: &SessionPlace) -> Result<Option<SessionId>> {
    Ok(match named_session(place)? {
        Some(session) => Some(session),
        None => sessions.last_around(&project_dir(place.cwd.as_ref())?),
    })
}

pub(super) fn find_named_loop(sessions: &SessionStore, place: &SessionPlace) -> Result<Option<LocatedLoop>> {
    find_loop(sessions, named_session(place)?.as_ref(), &project_dir(place.cwd.as_ref())?)
}
