//! `swarm hook EVENT`: what an agent CLI calls.
//!
//! A hook must never harm its host: whatever comes on standard input, whatever is missing or broken, it ends with
//! status 0, prints nothing when in doubt, and ends before its host's timeout. So the work runs in a thread of its
//! own, which is abandoned when it takes too long. A stop that is allowed because of a doubt is logged. Used by `main` alone.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::json;
use swarm_state::hook::{HookEvent, HookHost, HookInput, heard};
use swarm_state::session::{SessionId, StopAnswer};

use super::command::{MARK, TIMEOUT_SECONDS};
use super::tell::{self, Place, Session};
use crate::paths::Paths;
use crate::procs;
use crate::protocol::HookNews;
use crate::session::prompt;
use crate::session::stop::{Asked, Called, unread};
use crate::session::store::Sessions;

/// How long the whole may take from when the host made the call; the rest of [`TIMEOUT_SECONDS`] is for its end.
const LIMIT: Duration = Duration::from_millis(TIMEOUT_SECONDS * 1000 - 1500);

/// How long the host may take to write its input. Most have written it before this runs; on a machine that is busy one can
/// be late, and a stop that is missed ends the loop's work.
const INPUT: Duration = Duration::from_secs(4);

/// How long more of it is waited for before it is looked at.
const MORE: Duration = Duration::from_millis(20);

/// An input that is longer is none, bytes.
const LONGEST: usize = 32 << 20;

/// How exactly the system tells when a process was started, twice: of the process and of the present.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// Does what an event asks for, and gives what is to be printed: nothing, or one line.
pub fn run(args: Vec<OsString>) -> Option<String> {
    let called = called_by_host(LIMIT);
    let (done, answer) = mpsc::channel();
    let known = Arc::new(Mutex::new(None));
    let (event, shared) = (event_of(&args), Arc::clone(&known));
    let worker = thread::Builder::new().spawn(move || {
        // A panic is a doubt like another.
        drop(done.send(answer_to(&args, called, &shared)));
    });
    let why = match worker.map(|_| answer.recv_timeout(called.left())) {
        Ok(Ok(answer)) => return answer,
        Ok(Err(mpsc::RecvTimeoutError::Timeout)) => "the hook took too long",
        Ok(Err(mpsc::RecvTimeoutError::Disconnected)) => "the hook failed",
        Err(_) => "the hook could not start a thread",
    };
    if matches!(event, Some(HookEvent::Stop | HookEvent::StopFailure)) {
        log_doubt(known.lock().ok().and_then(|known| known.clone()), why);
    }
    None
}

/// This process's call, which has `limit` from when its host made it. The shell that runs our command is older than this
/// process, and on a busy machine much older.
fn called_by_host(limit: Duration) -> Called {
    let parent = nix::unistd::getppid().as_raw();
    let is_shell = procs::arguments(parent).iter().any(|argument| argument == MARK.as_bytes());
    let pid = if is_shell { parent } else { nix::unistd::getpid().as_raw() };
    // An age that cannot be is one of another clock.
    let age = procs::age(pid).filter(|age| *age < limit).unwrap_or_default();
    let age = age.saturating_sub(CLOCK_TICK);
    let began = TimeDelta::from_std(age).unwrap_or_default();
    Called { at: Utc::now() - began, until: Instant::now() + limit.saturating_sub(age) }
}

/// The session and the iteration of a stop, as soon as its loop was found.
type Known = Mutex<Option<(SessionId, u32)>>;

/// Logs that a stop happened because of a doubt. Without a known loop the line goes to a log of its own.
fn log_doubt(known: Option<(SessionId, u32)>, why: &str) {
    let Ok(paths) = Paths::from_env() else { return };
    let (sessions, why) = (Sessions::of(&paths), format!("{why}, so the stop happens"));
    // A failure to write is ignored: hosts do not show what a hook prints on stderr.
    let _ = match known {
        Some((session, iteration)) => sessions.log(&session, &unread(iteration, why)),
        None => sessions.log_unknown(&unread(0, why)),
    };
}

fn event_of(args: &[OsString]) -> Option<HookEvent> {
    HookEvent::of(args.first()?.to_str()?)
}

fn answer_to(args: &[OsString], called: Called, known: &Known) -> Option<String> {
    let event = event_of(args)?;
    // Codex's `notify` has its input as an argument.
    let bytes = match args.get(1) {
        Some(text) => text.to_str()?.as_bytes().to_vec(),
        None => input().unwrap_or_default(),
    };
    let read = HookInput::parse(&bytes);
    let is_nameless = read.as_ref().is_none_or(|input| input.session.is_none());
    if event == HookEvent::Stop && is_nameless {
        log_doubt(None, "the input of a Stop hook was not JSON with a session_id");
    }
    let input = read?;
    let paths = Paths::from_env().ok();
    let var = |name: &str| std::env::var_os(name);
    let sessions = paths.as_ref().map(Sessions::of);
    let (mut held, mut said) = (false, None);
    match (event, &sessions) {
        (HookEvent::Stop | HookEvent::StopFailure, Some(sessions)) => {
            let found = |session: &SessionId, iteration| {
                if let Ok(mut known) = known.lock() {
                    *known = Some((session.clone(), iteration));
                }
            };
            let answer = Asked { event, input: &input, var: &var, called, found: &found }.answer(sessions);
            held = answer.as_ref().is_some_and(StopAnswer::is_held);
            said = answer.and_then(|answer| say(answer, input.host));
        }
        (HookEvent::UserPromptSubmit, Some(sessions)) => {
            said = prompt::answer(sessions, &input).map(|answer| answer.to_string());
        }
        _ => {}
    }
    if let (Some(paths), Some(place)) = (&paths, Place::of(var)) {
        tell_daemon(paths, &place, event, &input, held);
    }
    said
}

/// What the host is told.
fn say(answer: StopAnswer, host: HookHost) -> Option<String> {
    match (answer, host) {
        (StopAnswer::Block(reason), _) => Some(json!({ "decision": "block", "reason": reason }).to_string()),
        (StopAnswer::Allow(Some(message)), HookHost::Claude) => {
            Some(json!({ "systemMessage": message }).to_string())
        }
        (StopAnswer::Allow(_) | StopAnswer::Answered { .. }, _) => None,
    }
}

fn tell_daemon(paths: &Paths, place: &Place, event: HookEvent, input: &HookInput, held: bool) {
    let news = match event {
        HookEvent::SessionStart => {
            // A compaction keeps the session's id; that of another one is of an agent which this one started.
            let anew = input.cause.as_deref() == Some("clear");
            Some(HookNews::Session { anew })
        }
        _ => heard(event, input, held).map(HookNews::from),
    };
    let Some(news) = news else { return };
    let transcript = input.transcript.as_ref().and_then(|path| path.to_str()).map(ToOwned::to_owned);
    let session = Session { id: input.session.clone(), transcript };
    tell::tell(&paths.socket(), place, &session, news);
}

/// Whether what was read is a whole object. Nothing else is tried that does not end like one.
fn is_whole(bytes: &[u8]) -> bool {
    bytes.trim_ascii_end().ends_with(b"}") && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// What the host writes: all of it, or one object; nothing from a terminal.
fn input() -> Option<Vec<u8>> {
    let mut stdin = std::io::stdin().lock();
    if std::io::IsTerminal::is_terminal(&stdin) {
        return None;
    }
    let (start, mut bytes, mut part) = (Instant::now(), vec![], vec![0; 64 << 10]);
    loop {
        let left = INPUT.saturating_sub(start.elapsed());
        let wait = if bytes.is_empty() { left } else { left.min(MORE) };
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut fds, PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO)).unwrap_or(0);
        // A host that never closes it has said all that it says.
        if ready == 0 && (left.is_zero() || is_whole(&bytes)) {
            return Some(bytes);
        }
        if ready == 0 {
            continue;
        }
        match stdin.read(&mut part) {
            Ok(0) | Err(_) => return Some(bytes),
            Ok(n) => bytes.extend_from_slice(part.get(..n)?),
        }
        if bytes.len() > LONGEST {
            return None;
        }
    }
}
