//! `swarm attach`: open a worker's window in this terminal.
//!
//! Runs a tmux client on the terminal. When the user detaches, the window returns to its former size. When the window
//! closes instead, the daemon is polled: the next run of the worker is shown as soon as it starts, or the end of the
//! worker is printed. This is one of the few files that start a process; [`crate::tmux`] builds its arguments.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::Pid;
use swarm_state::advice::next_step;
use swarm_state::model::Status;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::cli::Attach;
use crate::client::connect::{QUICK_TIMEOUT, connect_existing};
use crate::client::context::ClientContext;
use crate::client::worker::{is_loop, iteration, situation};
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Out};
use crate::protocol::{AttachView, Call, Named, WorkerView};
use crate::runtime::CaughtSignals;
use crate::tmux::{AttachPlan, Socket, Tmux, TmuxOptions};

/// How often the daemon is polled for the run after a window that closed.
const NEXT_RUN_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How long the daemon may be away in the meantime. A restart takes less.
const DAEMON_RESTART_TIMEOUT: Duration = Duration::from_secs(5);

struct AttachedRun {
    view: AttachView,
    /// The note while swarm waits for the run after this one; `None` if none follows.
    waiting_note: Option<String>,
    /// The text of the status line.
    title: String,
}

impl AttachedRun {
    fn new(view: AttachView, worker: &WorkerView) -> Self {
        let name = &worker.name;
        let title = match is_loop(worker) {
            true => format!("{name}: iteration {}", iteration(worker)),
            false => name.clone(),
        };
        let of_loop = |n| format!("swarm: {name}: iteration {n} ended, waiting for the next");
        let of_plain = || format!("swarm: {name}: its run ended, waiting for the next");
        let waiting_note =
            worker.metadata().iteration.map(of_loop).or_else(|| worker.restart.is_some().then(of_plain));
        Self { view, waiting_note, title }
    }
}

/// The hint when [`FALLBACK_TERM`] has no terminfo entry either.
const NO_TERMINFO: &str = "install the terminfo database, for example: apt install ncurses-base ncurses-term";

/// The value of TERM for tmux when the user's own TERM has no terminfo entry.
const FALLBACK_TERM: &str = "xterm-256color";

enum AttachEnd {
    /// This terminal has no terminfo entry.
    UnknownTerm(Error),
    /// The user detached, or the tmux client was killed: the exit status.
    Left(u8),
    /// The window is gone.
    Closed,
}

/// The state of a worker's next run after its window closed.
enum NextRun {
    Run(AttachedRun),
    /// The next run will start, or the daemon has not noticed the end of the last one yet.
    Wait,
    /// There is no next run. `None` when the worker no longer exists.
    Nothing(Option<Box<WorkerView>>),
}

pub(super) async fn run(ctx: &ClientContext, args: &Attach) -> CommandResult {
    let name = args.name.as_str();
    let mut client = ctx.connect().await?;
    let worker: WorkerView = client.call(&Call::Status(named(name)), QUICK_TIMEOUT).await?;
    ctx.report_seen(name, worker.status.is_finished()).await;
    let view = match client.call(&Call::Attach(named(name)), QUICK_TIMEOUT).await {
        Ok(view) => Some(view),
        Err(error) if error.code == ErrorCode::Conflict && worker.status == Status::Starting => None,
        Err(error) => return Err(error.into()),
    };
    drop(client);
    let instead = format!("swarm peek {name}, or swarm logs {name} --follow");
    Out::require_terminal(&format!("attach {name}"), &instead)?;
    // They are caught so that the window's size is restored before this command ends.
    let mut signals =
        CaughtSignals::new(&[Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT])?;
    let mut run_view = match view {
        Some(view) => AttachedRun::new(view, &worker),
        None => {
            ctx.out.note(&format!("swarm: {name} is starting, waiting for its window"));
            match wait(ctx, name, None, &mut signals).await? {
                Ok(first) => first,
                Err(code) => return Ok(code),
            }
        }
    };
    let mut term = None;
    loop {
        let tmux = tmux(ctx, &run_view.view)?;
        let AttachedRun { view, title, .. } = &run_view;
        let plan = tmux.attach_argv(&view.window, view.size, args.read_only, title);
        match look(&tmux, &plan, term, name, &run_view, &mut signals).await? {
            AttachEnd::Left(code) => return Ok(code),
            AttachEnd::Closed => {}
            AttachEnd::UnknownTerm(error) if term.is_some() => return Err(error.into()),
            AttachEnd::UnknownTerm(_) => {
                let own = std::env::var("TERM").unwrap_or_default();
                let own = swarm_state::screen::printable(&own);
                ctx.out
                    .note(&format!("swarm: tmux has no terminfo entry for '{own}'; using {FALLBACK_TERM}"));
                term = Some(FALLBACK_TERM);
                continue;
            }
        }
        match wait(ctx, name, run_view.waiting_note, &mut signals).await? {
            Ok(next) => run_view = next,
            Err(code) => return Ok(code),
        }
        // The user gets a moment to notice that this is another run. Keys for the run that ended are dropped.
        sleep(NEXT_RUN_POLL_INTERVAL).await;
        let _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
    }
}

fn named(name: &str) -> Named {
    Named { name: name.to_owned() }
}

fn tmux(ctx: &ClientContext, view: &AttachView) -> Result<Tmux> {
    let (socket, session) = (Socket::Path(view.socket.clone()), view.session.clone());
    Ok(Tmux::new(TmuxOptions { socket, session, ..TmuxOptions::own(&*ctx.place()?) }))
}

async fn look(
    tmux: &Tmux,
    plan: &AttachPlan,
    term: Option<&str>,
    name: &str,
    run_view: &AttachedRun,
    signals: &mut CaughtSignals,
) -> Result<AttachEnd> {
    // The run may have ended since the daemon's answer, and a new tmux server may have reused its ids.
    if !tmux.is_pane_of(&run_view.view.pane, name).await? {
        return Ok(AttachEnd::Closed);
    }
    let cannot = |e| Error::system("cannot run tmux", e).hint("apt-get install tmux");
    // stderr is captured for the error message; the screen is drawn on the terminal itself.
    let mut client = command(&plan.argv);
    client.envs(term.map(|term| ("TERM", term)));
    let client = client.stderr(Stdio::piped()).spawn().map_err(cannot)?;
    let pid = client.id().and_then(|pid| i32::try_from(pid).ok());
    let ended = client.wait_with_output();
    tokio::pin!(ended);
    let mut received = None;
    let output = loop {
        tokio::select! {
            output = &mut ended => break output,
            // Ctrl-C and Ctrl-\ are keys for the agent. Other signals end the tmux client first, so that the window
            // returns to its former size.
            which = signals.next() => if matches!(which, Signal::SIGHUP | Signal::SIGTERM) {
                received = Some(which);
                if let Some(pid) = pid {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
                }
            },
        }
    };
    for argv in &plan.after {
        // A window or session that no longer exists needs no cleanup.
        let _ = command(argv).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    }
    let Output { status, stderr, .. } = output.map_err(cannot)?;
    if let Some(code) = received.map(signal_status).or(status.signal().map(|n| exit_status(128 + n))) {
        return Ok(AttachEnd::Left(code));
    }
    // The tmux client ends in the same way when the user detaches and when the window closes.
    if !tmux.is_pane_of(&run_view.view.pane, name).await? {
        return Ok(AttachEnd::Closed);
    }
    let printed = String::from_utf8_lossy(&stderr);
    match refused(status, &printed, name) {
        None => Ok(AttachEnd::Left(0)),
        Some(error) if is_unknown_term(&printed) => Ok(AttachEnd::UnknownTerm(error)),
        Some(error) => Err(error),
    }
}

/// Whether tmux refused because the terminal has no terminfo entry.
fn is_unknown_term(printed: &str) -> bool {
    printed.contains("missing or unsuitable terminal")
}

/// The error of a tmux client that could not attach to an existing window.
fn refused(status: ExitStatus, printed: &str, name: &str) -> Option<Error> {
    if status.success() {
        return None;
    }
    let printed = printed.lines().next_back().unwrap_or("tmux failed without a message");
    let error = Error::system(format_args!("cannot attach to {name}"), printed);
    Some(if is_unknown_term(printed) { error.hint(NO_TERMINFO) } else { error })
}

/// Works inside another tmux too: swarm has its own server, so the sessions cannot nest in a circle.
fn command(argv: &[OsString]) -> Command {
    AttachPlan::command(argv).into()
}

/// Waits for the first run, or for the one after a run whose window closed. Prints `note` once, unless that run was the
/// last. Returns the exit status if the worker has no further run.
async fn wait(
    ctx: &ClientContext,
    name: &str,
    mut note: Option<String>,
    signals: &mut CaughtSignals,
) -> Result<std::result::Result<AttachedRun, u8>> {
    let mut say = || note.take().iter().for_each(|note| ctx.out.note(note));
    let (mut last_answer, mut answers) = (Instant::now(), 0);
    loop {
        let next = tokio::select! {
            next = ask(ctx, name) => next,
            which = signals.next() => return Ok(Err(signal_status(which))),
        };
        match next {
            Ok(NextRun::Run(run_view)) => {
                say();
                return Ok(Ok(run_view));
            }
            Ok(NextRun::Nothing(worker)) => {
                let (line, hint) = end_message(name, worker.as_deref());
                ctx.out.note(&line);
                hint.iter().for_each(|hint| ctx.out.hint(hint));
                ctx.report_seen(name, worker.is_some_and(|worker| worker.status.is_finished())).await;
                return Ok(Err(0));
            }
            Ok(NextRun::Wait) => {
                last_answer = Instant::now();
                answers += 1;
                // In its first answer, the daemon may not have noticed yet that this run was the last.
                if answers > 1 {
                    say();
                }
            }
            // The daemon may be restarting. It is not started here, because it was stopped on purpose.
            Err(error)
                if error.code == ErrorCode::Version || last_answer.elapsed() > DAEMON_RESTART_TIMEOUT =>
            {
                return Err(error);
            }
            Err(_) => {}
        }
        tokio::select! {
            () = sleep(NEXT_RUN_POLL_INTERVAL) => {}
            which = signals.next() => return Ok(Err(signal_status(which))),
        }
    }
}

async fn ask(ctx: &ClientContext, name: &str) -> Result<NextRun> {
    let Some(mut client) = connect_existing(&ctx.place()?).await? else {
        let gone = Error::new(ErrorCode::NoDaemon, "the daemon is not running");
        return Err(gone.hint("to start it: swarm daemon start"));
    };
    let worker: WorkerView = match client.call(&Call::Status(named(name)), QUICK_TIMEOUT).await {
        Ok(worker) => worker,
        Err(error) if error.code == ErrorCode::NotFound => return Ok(NextRun::Nothing(None)),
        Err(error) => return Err(error),
    };
    if !worker.status.is_live() {
        return Ok(NextRun::Nothing(Some(Box::new(worker))));
    }
    if worker.tmux.pane.is_none() {
        return Ok(NextRun::Wait);
    }
    let view: AttachView = match client.call(&Call::Attach(named(name)), QUICK_TIMEOUT).await {
        Ok(view) => view,
        Err(error) if matches!(error.code, ErrorCode::Conflict | ErrorCode::NotFound) => {
            return Ok(NextRun::Wait);
        }
        Err(error) => return Err(error),
    };
    // The daemon may still report the pane that has just closed.
    if tmux(ctx, &view)?.is_pane_of(&view.pane, name).await? {
        return Ok(NextRun::Run(AttachedRun::new(view, &worker)));
    }
    Ok(NextRun::Wait)
}

fn end_message(name: &str, worker: Option<&WorkerView>) -> (String, Option<String>) {
    let Some(worker) = worker else { return (format!("swarm: {name} has ended"), None) };
    let why = worker.reason.as_deref().map(|r| format!(" ({})", swarm_state::screen::printable(r)));
    let why = why.unwrap_or_default();
    let situation = situation(worker);
    let line = match worker.status {
        Status::Lost => format!("swarm: {name} is lost{why}"),
        _ if situation.is_paused => format!("swarm: {name} is paused"),
        _ => format!("swarm: {name} has ended{why}"),
    };
    (line, next_step(&situation))
}

fn signal_status(which: Signal) -> u8 {
    exit_status(128 + which as i32)
}

fn exit_status(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::testing::view;

    #[test]
    fn end_message_has_the_reason_and_the_next_step() {
        let mut worker = view("a", "done", json!({}));
        worker.reason = Some("exit\x1b 0".into());
        let (line, hint) = end_message("a", Some(&worker));
        assert!(line.starts_with("swarm: a has ended (exit") && !line.contains('\x1b'), "{line}");
        assert_eq!(hint, None);
        let paused = view("a", "paused", json!({"ralph": true, "status": "paused"}));
        let resume = Some("swarm ralph resume a".to_owned());
        assert_eq!(end_message("a", Some(&paused)), ("swarm: a is paused".to_owned(), resume));
        assert_eq!(end_message("a", None), ("swarm: a has ended".to_owned(), None));
    }

    #[test]
    fn error_of_tmux_is_translated() {
        assert_eq!(refused(ExitStatus::from_raw(0), "", "a"), None);
        let printed = "open terminal failed: missing or unsuitable terminal: foo\n";
        let error = refused(ExitStatus::from_raw(256), printed, "a").unwrap();
        assert_eq!(error.message, format!("cannot attach to a: {}", printed.trim_end()));
        assert_eq!(error.hint.as_deref(), Some(NO_TERMINFO));
        assert!(is_unknown_term(printed) && !is_unknown_term("open terminal failed: not a terminal"));
    }
}
