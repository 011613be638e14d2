//! Starting, resuming and cancelling a loop within a session.
//!
//! The same for a shell (`swarm session`) and for what was typed into the agent (`/ralph-loop` and its kin, seen by the
//! prompt hook). Nothing is started where something is missing or another loop lives; a loop that was kept goes on
//! where it was. Deliberately absent: what a do-it project needs ([`super::project`]) and who prints.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use swarm_state::promise::Promise;
use swarm_state::session::{
    After, Book, Ceiling, DO_IT_FILE, Decision, DoItOptions, LogLine, MIN_TOOL_CALLS, Owner, PromiseFound,
    RALPH_COMPLETE, STATE_DIR, SessionFile, SessionId, SessionKind, SessionLoop, SessionStatus, StopOutcome,
    Words, cancel, resume,
};

use super::git::{overlook, tree_of};
use super::project;
use super::request::StartRequest;
use super::store::{COMMAND_LOCK_WAIT, Located, Sessions, write_state};
use crate::error::{Error, ErrorCode, Result};

/// The longest task, bytes: it is fed back whole, turn after turn.
pub const LONGEST_TASK: usize = 1 << 20;

/// The same start told twice (two hooks are installed) comes within this time.
const SAME_START: TimeDelta = TimeDelta::seconds(10);

/// How long the state of the tree may take to find out at the start; a prompt waits for it.
const AT_START: Duration = Duration::from_secs(2);

/// What came of it.
#[derive(Clone, Debug)]
pub struct Started {
    /// The state file.
    pub path: PathBuf,
    /// What it says now.
    pub state: SessionLoop,
    /// It had been kept, and goes on.
    pub resumed: bool,
    /// Another hook of ours started it for the same prompt.
    pub repeated: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Starts a loop, or lets the one that was kept go on.
///
/// # Errors
/// What is missing or in the way, with what to do; nothing was started then.
pub fn start(sessions: &Sessions, wanted: &StartRequest) -> Result<Started> {
    let dir = wanted
        .dir
        .canonicalize()
        .map_err(|e| Error::system(format!("cannot use '{}'", wanted.dir.display()), e))?;
    let root = if wanted.kind == SessionKind::DoIt { project::root_of(&dir) } else { dir.clone() };
    let path = root.join(STATE_DIR).join(wanted.kind.file_name(&wanted.session));
    let _lock = sessions
        .lock(&path, COMMAND_LOCK_WAIT)
        .map_err(|e| Error::system("the loop's state file is in use", e))?;
    let now = Utc::now().trunc_subsecs(3);
    if let Some(found) = standing(sessions, wanted, &dir, &path) {
        return go_on(sessions, wanted, &found, now);
    }
    let (state, options, warnings) = match wanted.kind {
        SessionKind::DoIt => project::prepare(sessions, &root, wanted, now)?,
        SessionKind::Ralph | SessionKind::Ulw => (task_loop(wanted, now)?, DoItOptions::default(), vec![]),
    };
    let mut warnings = warnings;
    warnings.extend(warning(&state));
    let file = SessionFile::new(state.clone());
    write_state(&path, &file).map_err(|e| Error::system(format!("cannot write {}", path.display()), e))?;
    // Before the tree is looked at, which the state file is no part of.
    overlook(&root, &path);
    // Stops are counted from here on in which the tree stays as it is now.
    let tree = (wanted.words.no_diff_limit.unwrap_or(0) > 0)
        .then(|| tree_of(&root, &sessions.scratch(&wanted.session), AT_START))
        .flatten();
    let book = Book {
        tree,
        state_file: Some(path.clone()),
        project_dir: Some(root.clone()),
        do_it: options,
        ..Book::default()
    };
    let noted = sessions
        .keep_book(&wanted.session, &book)
        .and_then(|()| sessions.log(&wanted.session, &line(&state, now, "started")));
    if let Err(error) = noted {
        warnings.push(format!("the loop runs, but nothing of it can be logged: {error}"));
    }
    Ok(Started { path, state, resumed: false, repeated: false, warnings })
}

/// The loop that is in the way of a new one, or goes on in its place.
fn standing(sessions: &Sessions, wanted: &StartRequest, dir: &Path, path: &Path) -> Option<Located> {
    let own = sessions.find(&wanted.session, &[dir]);
    own.or_else(|| sessions.around(dir).into_iter().find(|found| found.path == path))
}

/// What becomes of a start where a loop stands.
fn go_on(sessions: &Sessions, wanted: &StartRequest, found: &Located, now: DateTime<Utc>) -> Result<Started> {
    let shown = found.path.display();
    let state = match &found.file {
        Ok(file) => file.state().clone(),
        Err(error) => {
            return Err(Error::new(ErrorCode::Conflict, format!("{shown} cannot be read: {error}"))
                .hint(format!("mend it, or remove it to cancel its loop: rm '{shown}'")));
        }
    };
    let book = sessions.book(&wanted.session);
    if is_told_twice(&state, &book, wanted, now) {
        let path = found.path.clone();
        return Ok(Started { path, state, resumed: false, repeated: true, warnings: vec![] });
    }
    let is_own = state.session().is_none_or(|session| *session == wanted.session);
    let where_it_is = format!("iteration {} of {}", state.iteration, limit(&state));
    if !is_own && state.active {
        let owner = state.session().map(ToString::to_string).unwrap_or_default();
        return Err(Error::new(
            ErrorCode::Conflict,
            format!("session {owner} has a loop here already ({where_it_is}): {shown}"),
        )
        .hint(format!("to end it: swarm session cancel --session-id {owner}")));
    }
    let is_other = !is_the_same_task(&state, wanted);
    if is_other || (state.active && !was_kept(sessions, wanted, &book)) {
        let what = if is_other && !state.active { "a paused loop" } else { "a live loop" };
        return Err(Error::new(ErrorCode::Conflict, format!("this session has {what} already ({where_it_is}): {shown}"))
            .hint("to end it: /cancel-ralph, or swarm session cancel; to let a paused one go on, start it again without a task"));
    }
    let (state, mut warnings) = with_new_words(state, &wanted.words);
    warnings.extend(warning(&state));
    let outcome = resume(&state, &past_the_pause(book), &wanted.session, now);
    let after = carry_out(sessions, &wanted.session, found, &outcome)?;
    let state = after.unwrap_or(state);
    Ok(Started { path: found.path.clone(), state, resumed: true, repeated: false, warnings })
}

/// A loop that goes on takes a new limit. Its other terms stay, and who wants them changed is told.
fn with_new_words(state: SessionLoop, words: &Words) -> (SessionLoop, Vec<String>) {
    let max_iterations = words.max_iterations.map_or(state.max_iterations, Ceiling::turns);
    let said = [
        ("--completion-promise", words.completion_promise.is_some()),
        ("--min-tool-calls", words.min_tool_calls.is_some()),
        ("--on-promise-no-work", words.on_no_work.is_some()),
        ("--no-diff-limit", words.no_diff_limit.is_some()),
        ("--contract", words.contract.is_some()),
    ];
    let unheard: Vec<&str> = said.into_iter().filter(|(_, is_said)| *is_said).map(|(name, _)| name).collect();
    let warnings = (!unheard.is_empty()).then(|| {
        format!(
            "the loop goes on as it was, without {}: cancel it and start anew to change that",
            unheard.join(", ")
        )
    });
    (SessionLoop { max_iterations, ..state }, warnings.into_iter().collect())
}

fn warning(state: &SessionLoop) -> Option<String> {
    Ceiling::new(state.max_iterations).ok()?.warning().map(ToOwned::to_owned)
}

/// What was said while the loop was paused is none of its turns.
fn past_the_pause(mut book: Book) -> Book {
    if let Some(mark) = &mut book.mark {
        mark.position = fs::metadata(&mark.transcript).map_or(mark.position, |found| found.len());
    }
    book
}

fn limit(state: &SessionLoop) -> String {
    if state.max_iterations == 0 { "unlimited".to_owned() } else { state.max_iterations.to_string() }
}

/// Two hooks tell of one prompt: the second finds what the first has made.
fn is_told_twice(state: &SessionLoop, book: &Book, wanted: &StartRequest, now: DateTime<Utc>) -> bool {
    let is_fresh = state.started_at.is_some_and(|at| now.signed_duration_since(at).abs() < SAME_START);
    let is_own = state.session() == Some(&wanted.session);
    let is_first = state.active && state.iteration == 1 && book.last_stop.is_none();
    is_own && is_fresh && is_first && is_the_same_task(state, wanted)
}

/// A start without a task means the loop that is there; a do-it loop has no other.
fn is_the_same_task(state: &SessionLoop, wanted: &StartRequest) -> bool {
    let is_kind = (state.kind == SessionKind::DoIt) == (wanted.kind == SessionKind::DoIt);
    is_kind && (wanted.words.task.is_empty() || state.body == wanted.words.task.as_bytes())
}

/// Whether its last stop was let through though it was not over.
fn was_kept(sessions: &Sessions, wanted: &StartRequest, book: &Book) -> bool {
    let last = sessions.log_lines(&wanted.session).pop();
    let in_doubt = last.is_some_and(|line| {
        line.promise == PromiseFound::Unread && line.decision == Decision::Allow && line.why != STARTED
    });
    in_doubt || matches!(book.status, Some(SessionStatus::HostCap | SessionStatus::Paused))
}

const STARTED: &str = "started";

fn line(state: &SessionLoop, now: DateTime<Utc>, why: &str) -> LogLine {
    LogLine {
        time: now,
        iteration: state.iteration,
        promise: PromiseFound::Unread,
        decision: Decision::Allow,
        status: None,
        why: why.to_owned(),
    }
}

/// The error for a task that is too long.
pub fn too_long() -> Error {
    Error::invalid(format!("the task is longer than {LONGEST_TASK} bytes"))
        .hint("write it into a file, and give the path of that as the task")
}

/// The loop of a task.
fn task_loop(wanted: &StartRequest, now: DateTime<Utc>) -> Result<SessionLoop> {
    let words = &wanted.words;
    if words.task.trim().is_empty() {
        return Err(Error::invalid("there is no task")
            .hint("swarm session start 'what is to be done', or /ralph-loop \"what is to be done\""));
    }
    if words.task.len() > LONGEST_TASK {
        return Err(too_long());
    }
    let promise = match &words.completion_promise {
        Some(promise) => promise.clone(),
        None => Promise::new(RALPH_COMPLETE).map_err(|e| Error::invalid(e.to_string()))?,
    };
    let mut state = SessionLoop::ralph(
        wanted.kind,
        wanted.session.clone(),
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

/// Cancels a loop; gives what it was. `None` when there is none.
///
/// # Errors
/// A state file that cannot be removed; several loops of which none was named.
pub fn end(sessions: &Sessions, session: Option<&SessionId>, dir: &Path) -> Result<Option<Located>> {
    let Some(found) = chosen(sessions, session, dir)? else { return Ok(None) };
    let _lock = sessions
        .lock(&found.path, COMMAND_LOCK_WAIT)
        .map_err(|e| Error::system("the loop's state file is in use", e))?;
    let state = match &found.file {
        Ok(file) => file.state(),
        // A file that nobody can read holds nobody; who cancels wants it gone.
        Err(_) => return remove(&found.path).map(|()| Some(found)),
    };
    let owner = state.session().or(session).cloned();
    let book = owner.as_ref().map(|owner| sessions.book(owner)).unwrap_or_default();
    let outcome = cancel(state, &book, Utc::now());
    match owner {
        Some(owner) => drop(carry_out(sessions, &owner, &found, &outcome)?),
        None => remove(&found.path)?,
    }
    Ok(Some(found))
}

/// Whether a session's loop was cancelled a moment ago.
pub fn was_just_cancelled(sessions: &Sessions, session: &SessionId) -> bool {
    let last = sessions.log_lines(session).pop();
    last.is_some_and(|line| {
        line.status == Some(SessionStatus::Cancelled)
            && Utc::now().signed_duration_since(line.time).abs() < SAME_START
    })
}

/// The loop that is meant: of the session that is named, else the only one around the directory.
///
/// # Errors
/// Several, of which none was named.
pub fn chosen(sessions: &Sessions, session: Option<&SessionId>, dir: &Path) -> Result<Option<Located>> {
    let mut around = sessions.around(dir);
    if let Some(session) = session {
        // A project has one do-it loop: where nobody can read whose it is, it may be this session's.
        let is_meant = |found: &Located| found.file.is_err() && found.path.ends_with(DO_IT_FILE);
        return Ok(sessions.find(session, &[dir]).or_else(|| around.into_iter().find(is_meant)));
    }
    match around.len() {
        0 | 1 => Ok(around.pop()),
        _ => {
            let names: Vec<String> =
                around.iter().map(|found| format!("'{}'", found.path.display())).collect();
            let text = format!("there are several loops here: {}", names.join(", "));
            Err(Error::invalid(text).hint("say which: --session-id ID"))
        }
    }
}

/// Writes down what follows; gives what the state file says then.
fn carry_out(
    sessions: &Sessions,
    session: &SessionId,
    found: &Located,
    outcome: &StopOutcome,
) -> Result<Option<SessionLoop>> {
    let after = match (&outcome.after, &found.file) {
        (After::Write(state), Ok(file)) => {
            let mut file = file.clone();
            file.set((**state).clone());
            write_state(&found.path, &file)
                .map_err(|e| Error::system(format!("cannot write {}", found.path.display()), e))?;
            Some((**state).clone())
        }
        (After::Remove, _) => {
            remove(&found.path)?;
            None
        }
        (After::Unchanged | After::Write(_), _) => None,
    };
    // The loop goes by its state file; without these only less is known of it.
    let _ = sessions.keep_book(session, &outcome.book);
    if let Some(line) = &outcome.log {
        let _ = sessions.log(session, line);
    }
    Ok(after)
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|e| Error::system(format!("cannot remove {}", path.display()), e))
}

/// Whose loop a state file is, in words.
pub fn owner_of(state: &SessionLoop) -> &str {
    match &state.owner {
        Owner::Session(session) => session.as_str(),
        Owner::Unclaimed if state.kind == SessionKind::DoIt => "(the first session that stops here)",
        Owner::Unclaimed => "(nobody: its file names no session)",
        Owner::Nobody => "(nobody)",
    }
}
