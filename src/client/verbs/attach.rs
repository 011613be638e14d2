//! `swarm attach`: a worker's window in this terminal.
//!
//! tmux gets the terminal; when the person has left, the window goes back to the size it had. When the window
//! closed under them instead, the daemon is asked what comes: of a loop that goes on they get the next run,
//! of a worker that is over they are told how it ended. This is one of the few places that start a process;
//! what tmux is told is worded in [`crate::tmux`].

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::Pid;
use swarm_state::advice::next_step;
use swarm_state::model::Status;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use crate::cli::Attach;
use crate::client::connect::{QUICK, connect_existing};
use crate::client::context::Context;
use crate::client::worker::is_loop;
use crate::client::worker::situation;
use crate::error::{Error, ErrorCode, Result};
use crate::out::CommandResult;
use crate::protocol::{AttachView, Call, Named, WorkerView};
use crate::tmux::{Attach as Plan, Options, Socket, Tmux};

/// Between two questions to the daemon about what comes after a window that closed.
const LOOK: Duration = Duration::from_millis(200);

/// For how long the daemon may be away meanwhile: a restart takes less.
const PATIENCE: Duration = Duration::from_secs(5);

/// One run to look at.
struct Seat {
    view: AttachView,
    /// Which iteration it is; absent for a plain worker.
    iteration: Option<u64>,
}

/// The hint when [`FALLBACK_TERM`] has no terminfo entry either.
const NO_TERMINFO: &str = "install the terminfo database, for example: apt install ncurses-base ncurses-term";

/// The value of TERM for tmux when the user's own TERM has no terminfo entry.
const FALLBACK_TERM: &str = "xterm-256color";

/// How a look at a window ended.
enum Looked {
    /// This terminal has no terminfo entry.
    UnknownTerm(Error),
    /// The person left, or tmux's client was ended: the exit status.
    Left(u8),
    /// The window is gone.
    Closed,
}

/// What comes after a window that closed.
enum Next {
    /// The next run is there.
    Run(Seat),
    /// It will come, or the daemon has not seen yet that the last one ended.
    Wait(Box<WorkerView>),
    /// There will be none; absent when nobody knows the worker any more.
    Nothing(Option<Box<WorkerView>>),
}

pub(super) async fn run(ctx: &Context, args: &Attach) -> CommandResult {
    let name = args.name.as_str();
    let mut client = ctx.connect().await?;
    let worker: WorkerView = client.call(&Call::Status(named(name)), QUICK).await?;
    let view = client.call(&Call::Attach(named(name)), QUICK).await?;
    drop(client);
    terminal(name, std::env::var("TERM").ok().as_deref())?;
    let mut signals = Signals::new()?;
    let mut seat = Seat { view, iteration: iteration(&worker) };
    let mut term = None;
    loop {
        let tmux = tmux(ctx, &seat.view)?;
        let plan = tmux.attach_argv(&seat.view.window, seat.view.size, args.read_only);
        match look(&tmux, &plan, term, name, &seat, &mut signals).await? {
            Looked::Left(code) => return Ok(code),
            Looked::Closed => {}
            Looked::UnknownTerm(error) if term.is_some() => return Err(error.into()),
            Looked::UnknownTerm(_) => {
                let own = std::env::var("TERM").unwrap_or_default();
                let own = swarm_state::screen::printable(&own);
                ctx.out
                    .note(&format!("swarm: tmux has no terminfo entry for '{own}'; using {FALLBACK_TERM}"));
                term = Some(FALLBACK_TERM);
                continue;
            }
        }
        match wait(ctx, name, seat.iteration, &mut signals).await? {
            Ok(next) => seat = next,
            Err(code) => return Ok(code),
        }
        // A moment to see that it is another run. What was typed to the one that ended is not for this one.
        sleep(LOOK).await;
        let _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
    }
}

fn named(name: &str) -> Named {
    Named { name: name.to_owned() }
}

fn iteration(worker: &WorkerView) -> Option<u64> {
    worker.metadata["ralph_iteration"].as_u64()
}

fn tmux(ctx: &Context, view: &AttachView) -> Result<Tmux> {
    Ok(Tmux::new(Options {
        socket: Socket::Path(view.socket.clone()),
        config: ctx.paths()?.tmux_conf(),
        source: None,
        session: view.session.clone(),
    }))
}

/// Refuses what tmux cannot draw on.
fn terminal(name: &str, term: Option<&str>) -> Result<()> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let hint = format!("to look without one: swarm peek {name}, or swarm logs {name} --follow");
        return Err(Error::invalid("attach needs a terminal").hint(hint));
    }
    let why = match term {
        None | Some("") => "TERM is not set",
        Some("dumb") => "TERM is dumb",
        Some(_) => return Ok(()),
    };
    Err(Error::invalid(format!("attach needs a terminal that can draw: {why}")).hint(try_term(name)))
}

fn try_term(name: &str) -> String {
    format!("TERM=xterm-256color swarm attach {name}")
}

// ---- looking ----

/// Gives tmux the terminal until its client ends.
async fn look(
    tmux: &Tmux,
    plan: &Plan,
    term: Option<&str>,
    name: &str,
    seat: &Seat,
    signals: &mut Signals,
) -> Result<Looked> {
    // Since the daemon named it, the run may have ended, or a new server have given its ids away.
    if !tmux.is_pane_of(&seat.view.pane, name).await? {
        return Ok(Looked::Closed);
    }
    let cannot = |e| Error::system("cannot run tmux", e).hint("apt-get install tmux");
    // Its stderr is ours to word; the screen is on the terminal itself.
    let mut client = command(&plan.argv);
    client.envs(term.map(|term| ("TERM", term)));
    let client = client.stderr(Stdio::piped()).spawn().map_err(cannot)?;
    let pid = client.id().and_then(|pid| i32::try_from(pid).ok());
    let ended = client.wait_with_output();
    tokio::pin!(ended);
    let mut told = None;
    let output = loop {
        tokio::select! {
            output = &mut ended => break output,
            // Ctrl-C and the like are keys for the agent; what else would end us must leave the window as
            // it was, so it ends tmux's client first.
            which = signals.next() => if matches!(which, Signal::SIGHUP | Signal::SIGTERM) {
                told = Some(which);
                if let Some(pid) = pid {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
                }
            },
        }
    };
    for argv in &plan.after {
        // A window or a session that is gone by now needs nothing.
        let _ = command(argv).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    }
    let Output { status, stderr, .. } = output.map_err(cannot)?;
    if let Some(code) = told.map(signal_status).or(status.signal().map(|n| exit_status(128 + n))) {
        return Ok(Looked::Left(code));
    }
    // tmux's client ends alike whether the person left or the window did.
    if !tmux.is_pane_of(&seat.view.pane, name).await? {
        return Ok(Looked::Closed);
    }
    let said = String::from_utf8_lossy(&stderr);
    match refused(status, &said, name) {
        None => Ok(Looked::Left(0)),
        Some(error) if is_unknown_term(&said) => Ok(Looked::UnknownTerm(error)),
        Some(error) => Err(error),
    }
}

/// Whether tmux refused because the terminal has no terminfo entry.
fn is_unknown_term(said: &str) -> bool {
    said.contains("missing or unsuitable terminal")
}

/// The error of a client that could not attach to a window that is there.
fn refused(status: ExitStatus, said: &str, name: &str) -> Option<Error> {
    if status.success() {
        return None;
    }
    let said = said.lines().next_back().unwrap_or("tmux failed without a word");
    let error = Error::system(format_args!("cannot attach to {name}"), said);
    Some(if is_unknown_term(said) { error.hint(NO_TERMINFO) } else { error })
}

/// From inside another tmux too: ours is another server, so nothing can loop.
fn command(argv: &[OsString]) -> Command {
    Plan::command(argv).into()
}

// ---- waiting for the next run ----

/// Waits for the run after one whose window closed; the exit status when there is none.
async fn wait(
    ctx: &Context,
    name: &str,
    ended: Option<u64>,
    signals: &mut Signals,
) -> Result<std::result::Result<Seat, u8>> {
    let of_loop = ended.map(|n| format!("swarm: {name}: iteration {n} ended, waiting for the next"));
    let of_plain = format!("swarm: {name}: its run ended, waiting for the next");
    let mut said = false;
    let mut say = |worker: Option<&WorkerView>| {
        let plain = worker.is_some_and(|w| w.restart.is_some()).then_some(&of_plain);
        if let Some(ended) = of_loop.as_ref().or(plain).filter(|_| !std::mem::replace(&mut said, true)) {
            ctx.out.note(ended);
        }
    };
    let (mut heard, mut looks) = (Instant::now(), 0);
    loop {
        let next = tokio::select! {
            next = ask(ctx, name) => next,
            which = signals.next() => return Ok(Err(signal_status(which))),
        };
        match next {
            Ok(Next::Run(seat)) => {
                say(None);
                return Ok(Ok(seat));
            }
            Ok(Next::Nothing(worker)) => {
                over(ctx, name, worker.as_deref());
                return Ok(Err(0));
            }
            Ok(Next::Wait(worker)) => {
                heard = Instant::now();
                looks += 1;
                // At once it may only not have seen yet that this was the last.
                if (is_loop(&worker) || worker.restart.is_some()) && looks > 1 {
                    say(Some(&worker));
                }
            }
            // It may be restarting. It is not started from here: who stopped it meant to.
            Err(error) if error.code == ErrorCode::Version || heard.elapsed() > PATIENCE => {
                return Err(error);
            }
            Err(_) => {}
        }
        tokio::select! {
            () = sleep(LOOK) => {}
            which = signals.next() => return Ok(Err(signal_status(which))),
        }
    }
}

/// Asks the daemon once.
async fn ask(ctx: &Context, name: &str) -> Result<Next> {
    let Some(mut client) = connect_existing(&ctx.paths()?).await? else {
        let gone = Error::new(ErrorCode::NoDaemon, "the daemon is not running");
        return Err(gone.hint("to start it: swarm daemon start"));
    };
    let worker: WorkerView = match client.call(&Call::Status(named(name)), QUICK).await {
        Ok(worker) => worker,
        Err(error) if error.code == ErrorCode::NotFound => return Ok(Next::Nothing(None)),
        Err(error) => return Err(error),
    };
    if !worker.status.is_live() {
        return Ok(Next::Nothing(Some(Box::new(worker))));
    }
    if worker.tmux.pane.is_none() {
        return Ok(Next::Wait(Box::new(worker)));
    }
    let view: AttachView = match client.call(&Call::Attach(named(name)), QUICK).await {
        Ok(view) => view,
        Err(error) if matches!(error.code, ErrorCode::Conflict | ErrorCode::NotFound) => {
            return Ok(Next::Wait(Box::new(worker)));
        }
        Err(error) => return Err(error),
    };
    // The daemon may still name the pane that has just gone.
    if tmux(ctx, &view)?.is_pane_of(&view.pane, name).await? {
        return Ok(Next::Run(Seat { view, iteration: iteration(&worker) }));
    }
    Ok(Next::Wait(Box::new(worker)))
}

/// Says how a worker ended.
fn over(ctx: &Context, name: &str, worker: Option<&WorkerView>) {
    let (line, hint) = last_words(name, worker);
    ctx.out.note(&line);
    if let Some(hint) = hint {
        ctx.out.hint(&hint);
    }
}

fn last_words(name: &str, worker: Option<&WorkerView>) -> (String, Option<String>) {
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

// ---- signals ----

/// What would end us. With these caught, a closed terminal ends tmux's client and not us: the size is still
/// restored.
struct Signals {
    hangup: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let catch = |kind| signal(kind).map_err(|e| Error::system("cannot catch signals", e));
        Ok(Self {
            hangup: catch(SignalKind::hangup())?,
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
            quit: catch(SignalKind::quit())?,
        })
    }

    /// The next one.
    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.hangup.recv() => Signal::SIGHUP,
            _ = self.terminate.recv() => Signal::SIGTERM,
            _ = self.interrupt.recv() => Signal::SIGINT,
            _ = self.quit.recv() => Signal::SIGQUIT,
        }
    }
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
    fn how_it_ended_is_said_with_the_next_step() {
        let mut worker = view("a", "stopped", json!({}));
        worker.reason = Some("exit\x1b 0".into());
        let (line, hint) = last_words("a", Some(&worker));
        assert!(line.starts_with("swarm: a has ended (exit") && !line.contains('\x1b'), "{line}");
        assert_eq!(hint, None);
        let paused = view("a", "stopped", json!({"ralph": true, "status": "paused"}));
        let resume = Some("swarm ralph resume a".to_owned());
        assert_eq!(last_words("a", Some(&paused)), ("swarm: a is paused".to_owned(), resume));
        assert_eq!(last_words("a", None), ("swarm: a has ended".to_owned(), None));
    }

    #[test]
    fn a_refusal_by_tmux_is_worded() {
        assert_eq!(refused(ExitStatus::from_raw(0), "", "a"), None);
        let said = "open terminal failed: missing or unsuitable terminal: foo\n";
        let error = refused(ExitStatus::from_raw(256), said, "a").unwrap();
        assert_eq!(error.message, format!("cannot attach to a: {}", said.trim_end()));
        assert_eq!(error.hint.as_deref(), Some(NO_TERMINFO));
        assert!(is_unknown_term(said) && !is_unknown_term("open terminal failed: not a terminal"));
    }
}
