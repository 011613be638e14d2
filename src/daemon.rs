//! The daemon: a supervisor that owns all state, a driver for each worker that does slow work, and a socket.
//!
//! ```text
//! server ───calls──▶ ┌────────────┐ ──effects──▶ driver (one a worker) ──▶ tmux, git, disk
//! watcher ──looks──▶ │ supervisor │ ◀──reports── driver, watches on processes
//! signals ─────────▶ └────────────┘ ──notices──▶ subscribers
//! ```
//!
//! Agents are children of the tmux server and not of the daemon: the daemon can be killed, upgraded and restarted
//! while they work. Not here: decisions about a worker ([`swarm_state::engine`]) and output to a terminal.

mod attached;
mod attached_state;
mod boot;
mod busy;
mod caller;
mod clock;
mod crash;
mod directory_watch;
mod effects;
mod elsewhere;
mod event_log;
pub(crate) mod helper;
mod inputs;
mod iterations_log;
mod legacy;
mod loop_snapshots;
mod messages;
mod notices;
mod notify_state;
mod notifying;
mod output;
mod pages;
mod panes;
mod parks;
mod pressure;
mod quotas;
mod removals;
mod reply;
mod retry;
mod run;
mod saving;
mod screens;
pub(crate) mod server;
mod slot;
mod socket;
mod supervisor;
mod sweeping;
mod verbs;
mod views;
mod watched_settings;
mod watcher;

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::error::{Error, ErrorCode, Result};
use crate::hosts;
use crate::owner;
use crate::paths::{Paths, private_dir};
use crate::settings::Settings;
use crate::store::{DaemonLock, LogWriter, Store};
use messages::{DaemonEnd, DaemonInput, EndedSupervisor, Inbox};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use run::exit::exit_of;
use supervisor::Supervisor;

/// How long tasks may take to end with the daemon. On a busy machine, ending the processes of checks takes a while; a
/// task that hangs must not keep the process, and with it the lock.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// How the daemon is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Print `ready` (or `error CODE MESSAGE`) once on standard output, and close it: the client waits for that.
    pub ready_on_stdout: bool,
    /// Resume no loop, regardless of the settings, and stop at the end of standard input: the daemon serves one client.
    pub until_eof: bool,
}

/// Runs the daemon until a signal or a request ends it. Fails when another daemon holds the directory, or the directory
/// or the socket cannot be used.
pub fn run(options: RunOptions) -> Result<()> {
    let outcome = start(options);
    if let (Err(error), true) = (&outcome, options.ready_on_stdout) {
        let hint = error.hint.as_ref().map(|hint| format!("\t{hint}")).unwrap_or_default();
        say(&format!("error {} {}{hint}", error.code.word(), error.message));
    }
    outcome
}

fn start(options: RunOptions) -> Result<()> {
    // In a session of its own, the daemon has no terminal whose closing could end it. The call fails only for the
    // leader of a process group: a daemon that was started by hand in a terminal.
    let _ = nix::unistd::setsid();
    let _ = std::env::set_current_dir("/");
    let paths = Paths::from_env()?;
    paths.prepare_sockets()?;
    let lock = acquire(&paths, options)?;
    log_to_stderr(&paths);
    let store = Arc::new(Store::open(paths)?);
    store.write_while(lock.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Error::system("cannot start the runtime", e))?;
    let outcome = runtime.block_on(serve(&store, lock, options));
    match &outcome {
        // Another daemon may own the directory now, so no task continues.
        Ok(ended) if ended.end == DaemonEnd::Replaced => runtime.shutdown_background(),
        Ok(ended) => {
            runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            ended.lock.release(ended.agents);
        }
        Err(_) => runtime.shutdown_timeout(SHUTDOWN_TIMEOUT),
    }
    outcome.map(drop)
}

/// Locks the directory. In a job of a scheduler, waits until it is known whether the job of the former owner is gone.
fn acquire(paths: &Paths, options: RunOptions) -> Result<DaemonLock> {
    let refused = match DaemonLock::acquire(paths, false) {
        Ok(Some(lock)) => return Ok(lock),
        Ok(None) => None,
        // A client that waits does not wait for a minute.
        Err(error) if error.code != ErrorCode::OtherHost || options.ready_on_stdout => return Err(error),
        Err(error) => Some(error),
    };
    let Some(refused) = refused else {
        let holder = DaemonLock::holder(paths);
        if let Some(pid) = holder {
            socket::request_rebind(pid, &paths.socket());
        }
        let pid = holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        return Err(Error::conflict(format!("a daemon is already running{pid}")));
    };
    let job = owner::look(paths).0.and_then(|owner| owner.job);
    match job.filter(|job| hosts::is_job_gone(&job.id)) {
        Some(_) => DaemonLock::acquire(paths, true)?.ok_or(refused),
        None => Err(refused),
    }
}

/// Serves clients until the daemon ends. Its result has the lock, which has to be held until all tasks have ended.
async fn serve(store: &Arc<Store>, lock: DaemonLock, options: RunOptions) -> Result<EndedSupervisor> {
    let helper = helper::Helper::new(store.paths())?;
    let settings = Settings::load(&store.paths().user_config(), None, None).unwrap_or_default();
    let (inbox, inputs) = mpsc::unbounded_channel();
    let mut supervisor = Supervisor::new(store.clone(), inbox.clone(), helper, settings.tmux.source, lock);
    let resumes = settings.daemon.resume_after_shutdown.unwrap_or(false);
    supervisor.resumes_after_shutdown = resumes && !options.until_eof;
    if options.until_eof {
        watch_input(&inbox);
    }
    supervisor.boot().await;
    let socket = store.paths().socket();
    let listener = socket::bind(&socket)?;
    watch_signals(&inbox)?;
    supervisor.watch_removals();
    let serving = tokio::spawn(server::serve(listener, socket.clone(), inbox.clone(), false));
    let hook_socket = store.paths().hook_socket();
    private_dir(&store.paths().hook_socket_dir())?;
    let reports = server::serve(socket::bind(&hook_socket)?, hook_socket.clone(), inbox, true);
    let reporting = tokio::spawn(reports);
    tracing::info!(pid = std::process::id(), dir = %store.paths().root().display(), "serving");
    if options.ready_on_stdout {
        say("ready");
    }
    let ended = supervisor.run(inputs).await;
    serving.abort();
    reporting.abort();
    if ended.end != DaemonEnd::Replaced && ended.lock.is_current() {
        // While the lock is held, the socket is this daemon's own.
        drop(std::fs::remove_file(&socket));
        drop(std::fs::remove_file(&hook_socket));
    }
    // Tasks are still writing their last answers.
    tokio::time::sleep(Duration::from_millis(100)).await;
    tracing::info!(end = ?ended.end, "ended");
    Ok(ended)
}

/// SIGTERM and SIGINT end the daemon as `daemon stop` does. SIGHUP is ignored.
fn watch_signals(inbox: &Inbox) -> Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut stream = signal(kind).map_err(|e| Error::system("cannot watch signals", e))?;
        let inbox = inbox.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if kind != SignalKind::hangup() {
                    drop(inbox.send(DaemonInput::End(DaemonEnd::Stop)));
                }
            }
        });
    }
    Ok(())
}

/// Ends the daemon at the end of standard input.
fn watch_input(inbox: &Inbox) {
    let inbox = inbox.clone();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(inbox.send(DaemonInput::End(DaemonEnd::Stop)));
    });
}

/// Prints a line for the client that started the daemon, then closes the pipe.
fn say(line: &str) {
    let mut out = std::io::stdout();
    // The client may have ended; the daemon continues.
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdout(null.as_fd());
    }
}

fn log_to_stderr(paths: &Paths) {
    let writer = LogWriter::new(paths.daemon_log());
    let log =
        tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).with_target(false);
    drop(log.try_init());
}
