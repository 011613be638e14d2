//! `swarm session`: the loops within agent sessions.
//!
//! Needs no daemon: all of it is in the project and in SWARM_DIR (see [`crate::hooks::sessions`]).

use std::io::Read;
use std::path::PathBuf;

use serde::Serialize;
use swarm_state::screen::printable;
use swarm_state::session::{
    Book, Ceiling, Found, Kind, LogLine, SessionId, SessionLoop, Words, brief, do_it_words, loop_words,
    start_text,
};

use super::render::{Out, table};
use super::{Ended, Failure};
use crate::cli::{Format, PageFormat, SessionCommand, SessionLs, SessionPlace, SessionStart, SessionWhich};
use crate::error::{Error, Result};
use crate::hooks::sessions::{Located, Sessions};
use crate::hooks::starting::{self, Started, Wanted};
use crate::paths::{self, Paths};

/// The session around this command, as Claude Code tells its children.
const AROUND: &str = "CLAUDE_CODE_SESSION_ID";

/// The longest task, bytes.
const LONGEST: u64 = starting::LONGEST_TASK as u64;

/// Carries out a verb of `swarm session`.
///
/// # Errors
/// Whatever stopped it.
pub fn run(command: SessionCommand, out: Out) -> Ended {
    let sessions = Sessions::of(&Paths::from_env()?);
    match command {
        SessionCommand::Start(args) => start(&sessions, *args, out),
        SessionCommand::Status(args) => status(&sessions, &args, out),
        SessionCommand::Ls(args) => ls(&sessions, &args, out),
        SessionCommand::Cancel(args) => cancel(&sessions, &args, out),
        SessionCommand::Logs(args) => logs(&sessions, &args, out),
    }
}

fn around() -> Result<Option<SessionId>> {
    let Some(id) = std::env::var_os(AROUND).filter(|id| !id.is_empty()) else { return Ok(None) };
    let id = id.to_string_lossy();
    SessionId::new(&id).map(Some).map_err(|e| Error::invalid(format!("{AROUND}: {e}")))
}

fn here(cwd: Option<&PathBuf>) -> Result<PathBuf> {
    match cwd {
        Some(dir) => Ok(dir.clone()),
        None => std::env::current_dir().map_err(|e| Error::system("cannot use the current directory", e)),
    }
}

// ---- start ----

fn start(sessions: &Sessions, args: SessionStart, out: Out) -> Ended {
    let session = match &args.session_id {
        Some(session) => session.clone(),
        None => around()?.ok_or_else(no_session)?,
    };
    let kind = match (&args.do_it, args.ulw) {
        (Some(_), _) => Kind::DoIt,
        (None, true) => Kind::Ulw,
        (None, false) => Kind::Ralph,
    };
    let dir = here(args.cwd.as_ref())?;
    let words = words(kind, &args)?;
    let started = starting::start(sessions, &Wanted { kind, session, dir, words })?;
    for warning in &started.warnings {
        out.warn(warning);
    }
    match args.format {
        PageFormat::Json => out.json(&view(Some(&started.path), &started.state, None))?,
        PageFormat::Text => out.lines(&page(&started))?,
    }
    Ok(0)
}

fn no_session() -> Error {
    Error::invalid("whose loop is it? There is no agent session around this command")
        .hint("run it inside the agent (there: /ralph-loop TASK), or name the session: --session-id ID")
}

/// The task and the options; what a flag says wins over what stands within the task.
fn words(kind: Kind, args: &SessionStart) -> Result<Words> {
    let refuse = |e: swarm_state::session::WordsError| Error::invalid(e.to_string());
    let text = match args.task.as_slice() {
        [dash] if dash == "-" => read_task()?,
        words => words.join(" "),
    };
    let mut words = match (kind, &args.do_it) {
        (Kind::DoIt, Some(max)) => do_it_words(&format!("{max} {text}")).map_err(refuse)?,
        _ => loop_words(&text).map_err(refuse)?,
    };
    if let Some(turns) = args.max_iterations {
        words.max_iterations = Some(Ceiling::new(turns).map_err(|e| Error::invalid(e.to_string()))?);
    }
    words.completion_promise = args.completion_promise.clone().or(words.completion_promise);
    words.min_tool_calls = args.min_tool_calls.or(words.min_tool_calls);
    words.on_no_work = args.on_promise_no_work.map(|policy| policy.0).or(words.on_no_work);
    words.no_diff_limit = args.no_diff_limit.or(words.no_diff_limit);
    words.archive_on_branch_change |= args.archive_on_branch_change;
    words.create_branch |= args.create_branch;
    if let Some(file) = &args.contract {
        let path = paths::pin(file).map_err(|e| Error::system("cannot use the contract", e))?;
        words.contract = Some(path.to_string_lossy().into_owned());
    }
    Ok(words)
}

fn read_task() -> Result<String> {
    let mut bytes = vec![];
    std::io::stdin()
        .lock()
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::system("cannot read the task", e))?;
    if bytes.len() as u64 > LONGEST {
        return Err(starting::too_long());
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid("the task is no text"))
}

/// What a start prints: for the person, and for an agent that ran it.
fn page(started: &Started) -> Vec<String> {
    let state = &started.state;
    let what = if started.resumed { "goes on" } else { "is active" };
    let mut lines = match state.kind {
        Kind::DoIt => brief(state).lines().map(ToOwned::to_owned).collect(),
        Kind::Ralph | Kind::Ulw => {
            vec![format!(
                "the {} loop {what}: iteration {} of {}",
                state.kind.word(),
                state.iteration,
                turns(state)
            )]
        }
    };
    lines.push(format!("state file: {}", started.path.display()));
    lines.push(String::new());
    lines.extend(start_text(state).lines().map(ToOwned::to_owned));
    lines
}

fn turns(state: &SessionLoop) -> String {
    if state.max_iterations == 0 { "unlimited".to_owned() } else { state.max_iterations.to_string() }
}

// ---- status, ls ----

/// One loop, as `--format json` prints it. An absent value is null.
#[derive(Debug, Serialize)]
struct View {
    session: Option<String>,
    kind: String,
    active: bool,
    iteration: u32,
    max_iterations: u32,
    completion_promise: Option<String>,
    pause_promise: Option<String>,
    started_at: Option<String>,
    project: String,
    branch: String,
    state_file: Option<PathBuf>,
    status: Option<&'static str>,
    why: Option<String>,
    tool_calls: Option<u64>,
}

fn view(path: Option<&PathBuf>, state: &SessionLoop, book: Option<&Book>) -> View {
    let token =
        |promise: &Option<swarm_state::promise::Promise>| promise.as_ref().map(|p| p.token().to_owned());
    View {
        session: state.session().map(ToString::to_string),
        kind: state.kind.word().to_owned(),
        active: state.active,
        iteration: state.iteration,
        max_iterations: state.max_iterations,
        completion_promise: token(&state.completion),
        pause_promise: token(&state.pause),
        started_at: state.started_at.map(|at| at.to_rfc3339()),
        project: state.project.clone(),
        branch: state.branch.clone(),
        state_file: path.cloned(),
        status: book.and_then(|book| book.status).map(swarm_state::session::Status::word),
        why: book.and_then(|book| book.why.clone()),
        tool_calls: book.map(|book| book.tool_calls),
    }
}

/// The session that is named, else the one around this command.
fn named(place: &SessionPlace) -> Result<Option<SessionId>> {
    place.session_id.clone().map_or_else(around, |session| Ok(Some(session)))
}

/// The session that is named or around this command, else the one that last had a loop in this directory.
fn last(sessions: &Sessions, place: &SessionPlace) -> Result<Option<SessionId>> {
    Ok(match named(place)? {
        Some(session) => Some(session),
        None => sessions.last_around(&here(place.cwd.as_ref())?),
    })
}

fn which(sessions: &Sessions, place: &SessionPlace) -> Result<Option<Located>> {
    starting::chosen(sessions, named(place)?.as_ref(), &here(place.cwd.as_ref())?)
}

fn status(sessions: &Sessions, args: &SessionWhich, out: Out) -> Ended {
    let Some(found) = which(sessions, &args.place)? else {
        let last = last(sessions, &args.place)?.map(|session| row(sessions, &session));
        let last = last.filter(|row| row.status.is_some());
        match (args.format, last) {
            (PageFormat::Json, last) => out.json(&last)?,
            (PageFormat::Text, Some(row)) => {
                out.lines(&[
                    format!("no loop; the last one ended: {}", ended(row.status, row.why.as_deref())),
                    format!("session: {}", row.session),
                ])?;
            }
            (PageFormat::Text, None) => out.line("no loop here")?,
        }
        return Ok(1);
    };
    let state = readable(&found)?;
    let book = state.session().map(|session| sessions.book(session)).unwrap_or_default();
    match args.format {
        PageFormat::Json => out.json(&view(Some(&found.path), state, Some(&book)))?,
        PageFormat::Text => out.lines(&[
            format!(
                "{} loop, {}: iteration {} of {}",
                state.kind.word(),
                standing(state, &book),
                state.iteration,
                turns(state)
            ),
            format!("session: {}", printable(starting::owner_of(state))),
            format!("state file: {}", found.path.display()),
            format!("tool calls so far: {}", book.tool_calls),
        ])?,
    }
    Ok(u8::from(!state.active))
}

fn readable(found: &Located) -> Result<&SessionLoop, Failure> {
    match &found.file {
        Ok(file) => Ok(file.state()),
        Err(error) => Err(Error::invalid(format!("{} cannot be read: {error}", found.path.display()))
            .hint("mend that line; or remove the file, which cancels the loop")
            .into()),
    }
}

fn standing(state: &SessionLoop, book: &Book) -> String {
    let ended = || ended(book.status.map(swarm_state::session::Status::word), book.why.as_deref());
    match (state.active, book.status) {
        (true, None) => "active".to_owned(),
        (true, Some(_)) => format!("let stop ({})", ended()),
        (false, Some(_)) => format!("paused ({})", ended()),
        (false, None) => "paused".to_owned(),
    }
}

fn ended(status: Option<&str>, why: Option<&str>) -> String {
    let status = status.unwrap_or_default();
    match why {
        Some(why) => format!("{status}: {}", printable(why)),
        None => status.to_owned(),
    }
}

/// One row of `ls`.
#[derive(Debug, Serialize)]
struct Row {
    session: String,
    project: Option<PathBuf>,
    kind: Option<String>,
    active: bool,
    iteration: Option<u32>,
    max_iterations: Option<u32>,
    status: Option<&'static str>,
    why: Option<String>,
}

fn row(sessions: &Sessions, session: &SessionId) -> Row {
    let book = sessions.book(session);
    let found = sessions.find(session, &[]);
    let state = found.as_ref().and_then(|found| found.file.as_ref().ok()).map(|file| file.state());
    Row {
        session: session.to_string(),
        project: book.project_dir.clone(),
        kind: state.map(|state| state.kind).or(book.kind).map(|kind| kind.word().to_owned()),
        active: state.is_some_and(|state| state.active),
        iteration: state.map(|state| state.iteration).or(book.iteration),
        max_iterations: state.map(|state| state.max_iterations).or(book.max_iterations),
        status: book.status.map(swarm_state::session::Status::word),
        why: book.why,
    }
}

fn ls(sessions: &Sessions, args: &SessionLs, out: Out) -> Ended {
    let rows: Vec<Row> = sessions.known().iter().map(|session| row(sessions, session)).collect();
    match args.format {
        Format::Json => out.json(&rows)?,
        Format::Names => out.lines(&rows.iter().map(|row| row.session.clone()).collect::<Vec<_>>())?,
        Format::Table if rows.is_empty() => {
            out.note("no session loops (start one: swarm session start --help)")
        }
        Format::Table => {
            let cells: Vec<_> = rows.iter().map(cells).collect();
            let head = ["SESSION", "KIND", "ITER", "STATUS", "PROJECT"];
            out.lines(&table(&head, &cells, &[4, 0], out.width))?;
        }
    }
    Ok(0)
}

fn cells(row: &Row) -> Vec<String> {
    let at = match (row.iteration, row.max_iterations) {
        (Some(at), Some(0)) => format!("{at}/unlimited"),
        (Some(at), Some(max)) => format!("{at}/{max}"),
        _ => "-".to_owned(),
    };
    let standing = match (row.active, row.status) {
        (true, None) => "active",
        (_, Some(status)) => status,
        (false, None) => "gone",
    };
    let project = row.project.as_ref().map(|dir| dir.display().to_string()).unwrap_or_default();
    let kind = row.kind.clone().unwrap_or_else(|| "-".to_owned());
    vec![row.session.clone(), kind, at, standing.to_owned(), project]
}

// ---- cancel, logs ----

fn cancel(sessions: &Sessions, args: &SessionPlace, out: Out) -> Ended {
    let dir = here(args.cwd.as_ref())?;
    match starting::end(sessions, named(args)?.as_ref(), &dir)? {
        Some(found) => {
            out.line(&format!("cancelled: {} is removed", found.path.display()))?;
            Ok(0)
        }
        None => Err(Error::invalid("there is no loop to cancel").hint("swarm session ls").into()),
    }
}

fn logs(sessions: &Sessions, args: &SessionWhich, out: Out) -> Ended {
    let found = which(sessions, &args.place)?;
    let owner = found.as_ref().and_then(|found| found.file.as_ref().ok()?.state().session().cloned());
    let session = match named(&args.place)?.or(owner) {
        Some(session) => session,
        None => last(sessions, &args.place)?.ok_or_else(|| {
            Error::invalid("no session loop was run in this directory")
                .hint("swarm session ls; then: swarm session logs --session-id ID")
        })?,
    };
    let lines = sessions.log_lines(&session);
    match args.format {
        PageFormat::Json => out.json(&lines)?,
        PageFormat::Text if lines.is_empty() => out.line("nothing is logged of this session")?,
        PageFormat::Text => out.lines(&lines.iter().map(log_line).collect::<Vec<_>>())?,
    }
    Ok(0)
}

fn log_line(line: &LogLine) -> String {
    let decision = match (line.decision, line.status) {
        (swarm_state::session::Decision::Block, _) => "goes on",
        (swarm_state::session::Decision::Allow, Some(status)) => status.word(),
        (swarm_state::session::Decision::Allow, None) => "allowed",
    };
    let time = line.time.format("%Y-%m-%d %H:%M:%S");
    // No stop that was judged: a start, a cancel, a doubt.
    if line.promise == Found::Unread {
        let status = line.status.map(|status| format!("{}  ", status.word())).unwrap_or_default();
        return format!("{time}  iteration {}  {status}({})", line.iteration, printable(&line.why));
    }
    format!(
        "{time}  iteration {}  promise {}  {decision}  ({})",
        line.iteration,
        line.promise.word(),
        printable(&line.why)
    )
}
