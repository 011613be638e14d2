//! `swarm hook EVENT`: the entry point for agent hooks.
//!
//! A hook must never harm its agent: on any input or failure it exits 0, prints nothing when in doubt, and ends before
//! the agent's timeout. So the work runs in a thread, which is abandoned when it takes too long. A stop that is allowed
//! because of a failure is logged. Used by `main`.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chrono::{TimeDelta, Utc};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::json;
use swarm_state::answer::{hook_output, request};
use swarm_state::context::ContextUse;
use swarm_state::hook::{HookEvent, HookHost, HookInput, signal_of};
use swarm_state::session::{SessionId, StopAnswer};

use super::command::{SHELL_NAME, TIMEOUT_SECONDS};
use super::report::{WorkerPlace, report_to_daemon};
use super::task_list::{self, StoppingAgent};
use super::{context, guard, status_line};
use crate::paths::Paths;
use crate::protocol::{HeldAnswer, HookNews};
use crate::session::prompt;
use crate::session::stop::{HookCall, StopRequest, doubt_line};
use crate::session::store::SessionStore;
use crate::{marks, procs};

/// How long a hook may take since the agent called it. The rest of [`TIMEOUT_SECONDS`] is reserved for the exit.
const HOOK_TIMEOUT: Duration = Duration::from_millis(TIMEOUT_SECONDS * 1000 - 1500);

/// The maximum time for which a request of the agent is held open. The daemon and the agent end it earlier.
const MAX_HOLD: Duration = Duration::from_secs(7 * 24 * 3600);

/// The pause between two questions to the daemon.
const ASK_INTERVAL: Duration = Duration::from_millis(200);
/// How long the daemon may be away: it may be restarting.
const MAX_ABSENCE: Duration = Duration::from_secs(10);

/// How long the agent may take to write the input. Most agents have written it before the hook runs; on a busy machine
/// it can be late, and a missed stop would end the loop's work.
const INPUT_TIMEOUT: Duration = Duration::from_secs(4);

/// How long to wait for more input before the input is checked for completeness.
const MORE_INPUT_DELAY: Duration = Duration::from_millis(20);

/// The maximum size of the input.
const MAX_INPUT_BYTES: usize = 32 << 20;

/// The precision of a process's age: one clock tick for its start and one for the present.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// Carries out an event, and returns the line to print, if any.
pub fn run(args: Vec<OsString>) -> Option<String> {
    let event = event_of(&args);
    let holds = event == Some(HookEvent::PermissionRequest);
    let called = called_by_host(if holds { MAX_HOLD } else { HOOK_TIMEOUT });
    let (done, answer) = mpsc::channel();
    let known = Arc::new(Mutex::new(None));
    let shared = Arc::clone(&known);
    let worker = thread::Builder::new().spawn(move || {
        // A panic drops the sender, which counts as a failure below.
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

/// Returns this process's call, with `limit` counted from when the agent made it. The shell that runs the hook's
/// command is older than this process, on a busy machine much older.
fn called_by_host(limit: Duration) -> HookCall {
    let parent = nix::unistd::getppid().as_raw();
    let is_shell = procs::arguments(parent).iter().any(|argument| argument == SHELL_NAME.as_bytes());
    let pid = if is_shell { parent } else { nix::unistd::getpid().as_raw() };
    // An impossible age is from another clock.
    let age = procs::age(pid).filter(|age| *age < limit).unwrap_or_default();
    let age = age.saturating_sub(CLOCK_TICK);
    let began = TimeDelta::from_std(age).unwrap_or_default();
    HookCall { at: Utc::now() - began, until: Instant::now() + limit.saturating_sub(age) }
}

/// The session and the iteration of a stop, once its loop was found.
type KnownLoop = Mutex<Option<(SessionId, u32)>>;

/// Logs that a stop was allowed because of a failure. Without a known loop, the line goes to a log of its own.
fn log_doubt(known: Option<(SessionId, u32)>, why: &str) {
    let Ok(paths) = Paths::from_env() else { return };
    let (sessions, why) = (SessionStore::of(&paths), format!("{why}, so the stop happens"));
    // A failure to write is ignored: hosts do not show what a hook prints on stderr.
    let _ = match known {
        Some((session, iteration)) => sessions.log(&session, &doubt_line(iteration, why)),
        None => sessions.log_unknown(&doubt_line(0, why)),
    };
}

fn event_of(args: &[OsString]) -> Option<HookEvent> {
    HookEvent::of(args.first()?.to_str()?)
}

fn answer_to(args: &[OsString], called: HookCall, known: &KnownLoop) -> Option<String> {
    let event = event_of(args)?;
    let bytes = hook_input(args)?;
    if event == HookEvent::StatusLine {
        return status_line::show(&bytes, &|name| std::env::var_os(name));
    }
    let read = HookInput::parse(&bytes);
    let is_nameless = read.as_ref().is_none_or(|input| input.session.is_none());
    if event == HookEvent::Stop && is_nameless {
        log_doubt(None, "the input of a Stop hook was not JSON with a session_id");
    }
    let input = read?;
    let paths = Paths::from_env().ok();
    let var = |name: &str| std::env::var_os(name);
    if event == HookEvent::PermissionRequest {
        return hold(paths.as_ref()?, &WorkerPlace::of(var)?, &input);
    }
    let sessions = paths.as_ref().map(SessionStore::of);
    let (mut held, mut said) = (false, None);
    let context = (event == HookEvent::PostToolUse).then(|| context::measure(&input)).flatten();
    match (event, &sessions) {
        (HookEvent::Stop | HookEvent::StopFailure, Some(sessions)) => {
            let found = |session: &SessionId, iteration| {
                if let Ok(mut known) = known.lock() {
                    *known = Some((session.clone(), iteration));
                }
            };
            let answer =
                StopRequest { event, input: &input, var: &var, called, found: &found }.answer(sessions);
            held = answer.as_ref().is_some_and(StopAnswer::is_held);
            said = answer.and_then(|answer| say(answer, input.host));
            if event == HookEvent::Stop
                && !held
                && let Some(reason) = task_list_block(sessions, &input, &var)
            {
                held = true;
                said = say(StopAnswer::Block(reason), input.host);
            }
        }
        (HookEvent::UserPromptSubmit, Some(sessions)) => {
            said = prompt::answer(sessions, &input).map(|answer| answer.to_string());
        }
        (HookEvent::SessionStart, Some(_)) => context::rearm(paths.as_ref()?, &input),
        _ => {}
    }
    let denial =
        (event == HookEvent::PreToolUse).then(|| guard::check(paths.as_ref(), &input, &var)).flatten();
    let mut max_context = None;
    if let (Some(paths), Some(place)) = (&paths, WorkerPlace::of(var)) {
        let news = match &denial {
            Some(denial) => Some(HookNews::Denied { what: denial.what.clone() }),
            None => news_of(event, &input, held, context.map(ContextUse::percent)),
        };
        max_context = report_to_daemon(paths, &place, &input, news).and_then(|answer| answer.max_context);
    }
    if let (Some(paths), Some(context)) = (&paths, context) {
        said = context::alert(paths, &input, context, max_context);
    }
    said = said.or_else(|| denial.map(|denial| denial.answer));
    said
}

/// Holds a permission request or question of the agent open until a person answers it through swarm. The agent's own
/// dialog is on the screen at the same time, and the first answer counts. The daemon decides when to give up; without
/// one, only the dialog is left. Returns the output of the hook; `None` leaves the request to the agent's dialog.
fn hold(paths: &Paths, place: &WorkerPlace, input: &HookInput) -> Option<String> {
    let (tool, arguments) = (input.tool.as_deref()?, input.tool_input.as_ref()?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let request = request(format!("{now:x}-{}", std::process::id()), tool, arguments);
    let mut last_answer = Instant::now();
    while last_answer.elapsed() < MAX_ABSENCE {
        let news = HookNews::Holds { request: request.clone() };
        match report_to_daemon(paths, place, input, Some(news)) {
            None => {}
            Some(answer) => match answer.answer {
                Some(HeldAnswer::Wait) => last_answer = Instant::now(),
                Some(HeldAnswer::Answered(answer)) => {
                    let output = hook_output(tool, arguments, input.suggestions.as_ref(), &answer);
                    return Some(output.to_string());
                }
                // The daemon of another version does not know requests.
                Some(HeldAnswer::Over) | None => return None,
            },
        }
        thread::sleep(ASK_INTERVAL);
    }
    None
}

/// The input of the hook. Codex's `notify` has it as an argument.
fn hook_input(args: &[OsString]) -> Option<Vec<u8>> {
    Some(match args.get(1) {
        Some(text) => text.to_str()?.as_bytes().to_vec(),
        None => input().unwrap_or_default(),
    })
}

/// The reason to keep an agent going whose task list or repository is not in order; `None` if it may stop.
fn task_list_block(
    sessions: &SessionStore,
    input: &HookInput,
    var: &dyn Fn(&str) -> Option<OsString>,
) -> Option<String> {
    if input.event.as_deref() == HookEvent::SubagentStop.setting() {
        return None;
    }
    let cwd = input.cwd.clone().or_else(|| std::env::current_dir().ok());
    let project = var("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let around: Vec<PathBuf> = cwd.into_iter().chain(project).collect();
    let place = WorkerPlace::of(var);
    let swarm_dir = var(marks::ROOT).and_then(|dir| dir.into_string().ok());
    let worker = place.as_ref().map(|place| place.name.as_str());
    let agent = StoppingAgent { around: &around, worker, swarm_dir: swarm_dir.as_deref() };
    let found = task_list::check(&agent);
    if let (Some(warning), Some(session)) = (found.warning, input.session.as_deref())
        && let Ok(session) = SessionId::new(session)
    {
        // The stop does not depend on its log.
        let _ = sessions.log(&session, &doubt_line(0, warning));
    }
    found.block
}

/// Formats the answer for the agent CLI.
fn say(answer: StopAnswer, host: HookHost) -> Option<String> {
    match (answer, host) {
        (StopAnswer::Block(reason), _) => Some(json!({ "decision": "block", "reason": reason }).to_string()),
        (StopAnswer::Allow(Some(message)), HookHost::Claude) => {
            Some(json!({ "systemMessage": message }).to_string())
        }
        (StopAnswer::Allow(_) | StopAnswer::Answered { .. }, _) => None,
    }
}

/// The news for the daemon, if the event is any.
fn news_of(event: HookEvent, input: &HookInput, held: bool, context: Option<u8>) -> Option<HookNews> {
    match event {
        HookEvent::SessionStart => {
            // A compaction keeps the session's id. Another id belongs to an agent that this agent started.
            let cleared = input.cause.as_deref() == Some("clear");
            Some(HookNews::Session { cleared })
        }
        HookEvent::PostToolUse => Some(HookNews::ToolUsed { context }),
        _ => signal_of(event, input, held).map(HookNews::from),
    }
}

/// Whether the input is a complete object. It is parsed only when it ends like one.
fn is_whole(bytes: &[u8]) -> bool {
    bytes.trim_ascii_end().ends_with(b"}") && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Reads the input: up to its end, or one complete object. A terminal is not read.
fn input() -> Option<Vec<u8>> {
    let mut stdin = std::io::stdin().lock();
    if std::io::IsTerminal::is_terminal(&stdin) {
        return None;
    }
    let (start, mut bytes, mut part) = (Instant::now(), vec![], vec![0; 64 << 10]);
    loop {
        let left = INPUT_TIMEOUT.saturating_sub(start.elapsed());
        let wait = if bytes.is_empty() { left } else { left.min(MORE_INPUT_DELAY) };
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut fds, PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO)).unwrap_or(0);
        // Some agents never close the input: a complete object is enough.
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
        if bytes.len() > MAX_INPUT_BYTES {
            return None;
        }
    }
}
