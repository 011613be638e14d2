//! The program in a pane: `swarm __pane DIR`, the parent of the agent.
//!
//! tmux starts it; it starts the agent, records durably how that ended, and leaves nothing behind. It exists
//! because tmux (as Debian ships it) loses most exit statuses and the last output of a program that ends at
//! once. On Linux it is the reaper of everything below it, so an orphan of the agent stays in its tree. It
//! lives on when the terminal's signals (Ctrl-C and the like) reach the whole foreground group, and when its
//! pane is closed it ends the tree before itself. A wrapper that is killed leaves no record; that is for the
//! daemon to see. What is deliberately absent: tmux, the daemon's socket, and every decision.
//!
//! In DIR: `launch.json` (read and unlinked first: it holds secrets), `started` (the agent's pid),
//! `exit.json` (the record), `forced` (whom it had to kill after the agent's end).

mod files;
mod terminal;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

pub use files::{ExitRecord, LaunchSpec, has_begun, is_pane, pane_argv, read_exit, read_forced, started};

use crate::procs;

/// How long the wrapper outlives the agent at most, so that tmux reads the last output before it closes the
/// terminal, and what the agent started in the background can print its last.
const LINGER: Duration = Duration::from_millis(200);
/// How long leftovers and a closed pane's tree get after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How long a closed pane's tree gets after SIGHUP.
const HUP_GRACE: Duration = Duration::from_secs(3);
/// How often the tree is looked at while it ends.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the agent of `dir` to its end and gives the exit status: the agent's own, 128 + signal, or 127 when
/// it could not be started.
pub fn main(dir: &Path) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(dir, &format!("cannot start: {cause}")),
    };
    runtime.block_on(run(dir))
}

async fn run(dir: &Path) -> u8 {
    let spec = match LaunchSpec::take(dir) {
        Ok(spec) => spec,
        Err(cause) => return fail(dir, &format!("cannot read what to run: {cause}")),
    };
    files::reserve(dir);
    // Before the agent is there, so that none of its children and no early signal is missed.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(cause) => return fail(dir, &format!("cannot take signals: {cause}")),
    };
    let agent = match start(&spec) {
        Ok(agent) => agent,
        Err(text) => {
            let status = refuse(dir, &text);
            sleep(LINGER).await;
            return status;
        }
    };
    let Ok(pid) = i32::try_from(agent.id()) else { return refuse(dir, "impossible pid") };
    files::write_started(dir, pid);
    let mut tree = Tree { agent: pid, ended: None, alone: false };
    let hup = tree.wait(&mut signals).await;
    if hup {
        tree.close(&mut signals).await;
    }
    let record = ExitRecord {
        code: tree.ended.and_then(|status| status.code()),
        signal: tree.ended.and_then(|status| status.signal()),
        hup,
        ended: Some(chrono::Utc::now().timestamp_millis()),
        ..ExitRecord::default()
    };
    if let Err(cause) = files::write_exit(dir, &record) {
        say(&format!("cannot write {}: {cause}", dir.join("exit.json").display()));
    }
    if !hup {
        tree.linger().await;
        if spec.end_leftovers || signals.end_was_asked().await {
            tree.end(Signal::SIGTERM, GRACE).await;
            files::write_forced(dir, &tree.end(Signal::SIGKILL, GRACE).await);
        }
    }
    record.status()
}

/// The signals that the wrapper takes. A handler, not "ignore": the agent gets the default back when it is
/// started, and the wrapper lives on when the terminal sends one to the whole foreground group.
struct Signals {
    child: tokio::signal::unix::Signal,
    hup: tokio::signal::unix::Signal,
    term: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        use nix::libc;
        for number in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
            drop(signal(SignalKind::from_raw(number))?);
        }
        // Dropping the listener leaves the handler where it is.
        for kind in [SignalKind::interrupt(), SignalKind::quit(), SignalKind::pipe()] {
            drop(signal(kind)?);
        }
        Ok(Self {
            child: signal(SignalKind::child())?,
            hup: signal(SignalKind::hangup())?,
            term: signal(SignalKind::terminate())?,
        })
    }

    /// Whether a SIGTERM came to the wrapper itself: the daemon ends this run, and nothing of it may stay.
    async fn end_was_asked(&mut self) -> bool {
        tokio::time::timeout(Duration::ZERO, self.term.recv()).await.is_ok()
    }
}

/// Everything below the wrapper.
struct Tree {
    agent: i32,
    /// How the agent ended, once it has.
    ended: Option<ExitStatus>,
    /// Nothing is left below the wrapper, as far as the system can say: it is the parent of all orphans.
    alone: bool,
}

impl Tree {
    /// Reaps whatever has ended.
    fn reap(&mut self) {
        loop {
            let status = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, (code & 0xff) << 8),
                Ok(WaitStatus::Signaled(pid, signal, core)) => (pid, signal as i32 | (i32::from(core) << 7)),
                Err(Errno::ECHILD) => {
                    self.alone = cfg!(target_os = "linux");
                    return;
                }
                Ok(WaitStatus::StillAlive) => return,
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(_) => return,
            };
            if status.0.as_raw() == self.agent {
                self.ended = Some(ExitStatus::from_raw(status.1));
            }
        }
    }

    /// Waits for the agent's end (false) or for the pane to be closed (true).
    async fn wait(&mut self, signals: &mut Signals) -> bool {
        loop {
            self.reap();
            if self.ended.is_some() {
                // Agent and wrapper are hung up on together; whose end is seen first says nothing.
                return terminal_is_gone();
            }
            tokio::select! {
                _ = signals.child.recv() => {}
                _ = signals.hup.recv() => return true,
            }
        }
    }

    /// The pane was closed: ends the tree, gently at first.
    async fn close(&mut self, signals: &mut Signals) {
        // The agent may have ended by the same hang-up a moment ago.
        let _ = tokio::time::timeout(Duration::ZERO, signals.child.recv()).await;
        self.end(Signal::SIGHUP, HUP_GRACE).await;
        self.end(Signal::SIGTERM, GRACE).await;
        self.end(Signal::SIGKILL, GRACE).await;
    }

    /// Sends a signal to the whole tree, waits until nobody is left, at most `grace`, and says who got it.
    async fn end(&mut self, signal: Signal, grace: Duration) -> Vec<procs::Proc> {
        let me = Pid::this().as_raw();
        self.reap();
        if self.is_over() {
            return Vec::new();
        }
        let hit = procs::signal_tree(me, signal);
        if hit.is_empty() && self.ended.is_none() {
            // Where trees cannot be read, the agent at least.
            let _ = kill(Pid::from_raw(self.agent), signal);
        }
        let until = Instant::now() + grace;
        while !self.is_over() && Instant::now() < until {
            sleep(LOOK).await;
            self.reap();
        }
        hit
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() && (self.alone || procs::tree(Pid::this().as_raw()).is_empty())
    }

    /// Waits until the last output is safe: tmux says that it has it, or [`LINGER`] has passed.
    async fn linger(&mut self) {
        let until = Instant::now() + LINGER;
        self.reap();
        if !(self.alone && terminal::has_taken_all(LINGER).await) {
            sleep_until(until).await;
            self.reap();
        }
    }
}

/// True when the other side of the wrapper's terminal was closed.
fn terminal_is_gone() -> bool {
    nix::sys::termios::tcgetattr(std::io::stdin()) == Err(Errno::EIO)
}

/// Starts the agent, or says in one sentence why it cannot be started.
fn start(spec: &LaunchSpec) -> Result<Child, String> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err("cannot run nothing: the command is empty".into());
    };
    if let Err(cause) = std::fs::read_dir(&spec.cwd) {
        // Told apart from a missing program; a directory that may be entered but not read is fine.
        if cause.kind() != std::io::ErrorKind::PermissionDenied {
            return Err(format!("cannot enter {}: {cause}", spec.cwd.display()));
        }
    }
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&spec.env).current_dir(&spec.cwd);
    // Some agents work where PWD says, and the caller's names the caller's directory.
    command.env("PWD", &spec.cwd).env_remove("OLDPWD");
    if let Some(path) = &spec.stdin {
        let file = std::fs::File::open(path);
        command.stdin(Stdio::from(file.map_err(|cause| format!("cannot read {}: {cause}", path.display()))?));
    }
    command.spawn().map_err(|cause| format!("cannot run {program}: {cause}"))
}

/// Records that the agent could not be started, and says so on the terminal.
fn refuse(dir: &Path, text: &str) -> u8 {
    record_unstarted(dir, text, false)
}

/// Records that the wrapper itself failed, and says so on the terminal.
fn fail(dir: &Path, text: &str) -> u8 {
    record_unstarted(dir, text, true)
}

fn record_unstarted(dir: &Path, text: &str, helper: bool) -> u8 {
    say(text);
    let record = ExitRecord {
        code: Some(127),
        ended: Some(chrono::Utc::now().timestamp_millis()),
        error: Some(text.to_owned()),
        helper,
        ..ExitRecord::default()
    };
    // A record that is there tells of a run that was: somebody started this pane again by hand.
    if read_exit(dir).is_none()
        && let Err(cause) = files::write_exit(dir, &record)
    {
        say(&format!("cannot write {}: {cause}", dir.join("exit.json").display()));
    }
    127
}

/// One line on the terminal; a terminal that is gone does not matter.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "swarm: error: {text}");
}

#[cfg(test)]
mod tests;
