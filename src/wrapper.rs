//! The parent of the agent in a pane: `swarm __pane DIR`.
//!
//! tmux starts it. It starts the agent, durably records how the agent ended, and leaves no process behind. It exists
//! because tmux (as Debian ships it) loses most exit statuses and the last output of a program that ends at once. On
//! Linux, the wrapper is the reaper of everything below it, so orphans stay in its tree. It survives signals from the
//! terminal (such as Ctrl-C) to the foreground group. When its pane is closed, it first ends its tree, then itself. A
//! killed wrapper leaves no record, which the daemon notices. The wrapper uses neither tmux nor the daemon's socket,
//! and decides nothing.
//!
//! Files in DIR: `launch.json` (taken first, and emptied because it holds secrets), `started` (the agent's pid),
//! `exit.json` (the exit record), `caps.json` (the mechanisms that enforce the caps), `forced` (processes that the
//! wrapper had to kill after the agent's end).

mod caps;
mod cgroup;
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

pub use files::{
    ExitRecord, LaunchSpec, caps_in_force, has_read_launch, is_pane, pane_argv, read_exit, read_forced,
    started, withdraw_launch,
};

pub(crate) use caps::available as available_caps;
pub(crate) use files::is_helper;

use caps::Confinement;

use crate::procs;
use crate::sandbox::HeldPlaceholders;
use crate::sandbox::hosts::start_pane_proxy;
use crate::sandbox::proxy::Proxy;

/// How long the wrapper outlives the agent at most. In this time, tmux reads the last output before it closes the
/// terminal, and background processes can print their last lines.
const OUTPUT_DELAY: Duration = Duration::from_millis(200);
/// How long leftover processes and a closed pane's tree have after SIGTERM.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);
/// How long a closed pane's tree has after SIGHUP.
const HUP_GRACE: Duration = Duration::from_secs(3);
/// How often to look at the tree while it ends.
const LEFTOVER_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the agent of `dir` to its end. Returns its exit status, 128 + signal, or 127 if it could not be started.
pub fn main(dir: &Path) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(dir, &format!("cannot start: {cause}")),
    };
    runtime.block_on(run(dir))
}

async fn run(dir: &Path) -> u8 {
    // Before the launch is taken, so that the daemon can read which caps are in force as soon as the run exists.
    let confinement = confine(dir);
    let spec = match LaunchSpec::take(dir) {
        Ok(spec) => spec,
        // The daemon that asked tmux for this window died, and the next one withdrew the launch. The folder may
        // belong to another wrapper now.
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            say("nothing to run: another daemon of swarm has taken over");
            return 127;
        }
        Err(cause) => return fail(dir, &format!("cannot read launch.json: {cause}")),
    };
    files::reserve(dir);
    // Before the agent starts, so that no child's end and no early signal is missed.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
    let mut signals = match WrapperSignals::new() {
        Ok(signals) => signals,
        Err(cause) => return fail(dir, &format!("cannot handle signals: {cause}")),
    };
    // Both live as long as the agent.
    let (_proxy, placeholders) = match hold_sandbox(&spec) {
        Ok(held) => held,
        Err(text) => return fail(dir, &text),
    };
    let agent = match confinement.start(|| start(&spec)) {
        Ok(agent) => agent,
        Err(text) => {
            let status = refuse(dir, &text);
            sleep(OUTPUT_DELAY).await;
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
    let oom_kills = confinement.oom_kills();
    let record = ExitRecord {
        code: tree.ended.and_then(|status| status.code()),
        signal: tree.ended.and_then(|status| status.signal()),
        hup,
        oom_kills,
        memory_cap: spec.caps.memory.filter(|_| oom_kills > 0).unwrap_or_default(),
        ended: Some(chrono::Utc::now().timestamp_millis()),
        ..ExitRecord::default()
    };
    if let Err(cause) = files::write_exit(dir, &record) {
        say(&format!("cannot write {}: {cause}", dir.join("exit.json").display()));
    }
    drop(placeholders);
    if !hup {
        tree.linger().await;
        if spec.end_leftovers || signals.end_was_asked().await {
            tree.end(Signal::SIGTERM, LEFTOVER_GRACE).await;
            files::write_forced(dir, &tree.end(Signal::SIGKILL, LEFTOVER_GRACE).await);
        }
    }
    record.status()
}

/// Starts and creates the parts of the agent's sandbox that this process keeps.
fn hold_sandbox(spec: &LaunchSpec) -> Result<(Option<Proxy>, HeldPlaceholders), String> {
    let proxy = spec.proxy.as_ref().map(start_pane_proxy).transpose();
    let proxy = proxy.map_err(|cause| format!("cannot start the proxy of the sandbox: {cause}"))?;
    let held = HeldPlaceholders::hold(spec.placeholders.clone()).map_err(|error| error.to_string())?;
    Ok((proxy, held))
}

/// Prepares the caps of the launch in `dir`, and records which mechanisms enforce them.
fn confine(dir: &Path) -> Confinement {
    let Some(caps) = LaunchSpec::caps(dir) else { return Confinement::default() };
    let confinement = Confinement::prepare(dir, &caps);
    if !caps.of_run().is_empty() {
        files::write_caps(dir, &confinement.in_force);
    }
    confinement
}

/// The signals that the wrapper handles. A handler instead of "ignore": the agent starts with the defaults, and the
/// wrapper survives a signal to the whole foreground group.
struct WrapperSignals {
    child: tokio::signal::unix::Signal,
    hup: tokio::signal::unix::Signal,
    term: tokio::signal::unix::Signal,
}

impl WrapperSignals {
    fn new() -> std::io::Result<Self> {
        use nix::libc;
        for number in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
            drop(signal(SignalKind::from_raw(number))?);
        }
        // Dropping the listener does not remove the handler.
        for kind in [SignalKind::interrupt(), SignalKind::quit(), SignalKind::pipe()] {
            drop(signal(kind)?);
        }
        Ok(Self {
            child: signal(SignalKind::child())?,
            hup: signal(SignalKind::hangup())?,
            term: signal(SignalKind::terminate())?,
        })
    }

    /// Whether the wrapper itself received SIGTERM: the daemon ends this run, and none of its processes may stay.
    async fn end_was_asked(&mut self) -> bool {
        tokio::time::timeout(Duration::ZERO, self.term.recv()).await.is_ok()
    }
}

/// All processes below the wrapper.
struct Tree {
    agent: i32,
    /// How the agent ended; `None` while it runs.
    ended: Option<ExitStatus>,
    /// Whether nothing is left below the wrapper, which is the parent of all orphans.
    alone: bool,
}

impl Tree {
    /// Reaps all children that have ended.
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
    async fn wait(&mut self, signals: &mut WrapperSignals) -> bool {
        loop {
            self.reap();
            if self.ended.is_some() {
                // Agent and wrapper receive the hangup together, so the order in which they end means nothing.
                return terminal_is_gone();
            }
            tokio::select! {
                _ = signals.child.recv() => {}
                _ = signals.hup.recv() => return true,
            }
        }
    }

    /// The pane was closed: ends the tree, with SIGHUP and SIGTERM first.
    async fn close(&mut self, signals: &mut WrapperSignals) {
        // The same hangup may have ended the agent a moment ago.
        let _ = tokio::time::timeout(Duration::ZERO, signals.child.recv()).await;
        self.end(Signal::SIGHUP, HUP_GRACE).await;
        self.end(Signal::SIGTERM, LEFTOVER_GRACE).await;
        self.end(Signal::SIGKILL, LEFTOVER_GRACE).await;
    }

    /// Sends a signal to the whole tree, waits at most `grace` until it is empty, and returns the signaled processes.
    async fn end(&mut self, signal: Signal, grace: Duration) -> Vec<procs::Proc> {
        let me = Pid::this().as_raw();
        self.reap();
        if self.is_over() {
            return Vec::new();
        }
        let hit = procs::signal_tree(me, signal);
        if hit.is_empty() && self.ended.is_none() {
            // If process trees cannot be read, at least the agent receives the signal.
            let _ = kill(Pid::from_raw(self.agent), signal);
        }
        let until = Instant::now() + grace;
        while !self.is_over() && Instant::now() < until {
            sleep(LEFTOVER_POLL_INTERVAL).await;
            self.reap();
        }
        hit
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() && (self.alone || procs::tree(Pid::this().as_raw()).is_empty())
    }

    /// Waits until tmux confirms that it has read the last output, at most [`OUTPUT_DELAY`].
    async fn linger(&mut self) {
        let until = Instant::now() + OUTPUT_DELAY;
        self.reap();
        if !(self.alone && terminal::has_taken_all(OUTPUT_DELAY).await) {
            sleep_until(until).await;
            self.reap();
        }
    }
}

/// Whether the other side of the wrapper's terminal was closed.
fn terminal_is_gone() -> bool {
    nix::sys::termios::tcgetattr(std::io::stdin()) == Err(Errno::EIO)
}

/// Starts the agent, or returns in one sentence why it cannot be started.
fn start(spec: &LaunchSpec) -> Result<Child, String> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err("the command is empty".into());
    };
    if let Err(cause) = std::fs::read_dir(&spec.cwd) {
        // Distinguishes this from a missing program. A directory that can be entered but not read is fine.
        if cause.kind() != std::io::ErrorKind::PermissionDenied {
            return Err(format!("cannot enter {}: {cause}", spec.cwd.display()));
        }
    }
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(&spec.env).current_dir(&spec.cwd);
    // Some agents use PWD as their directory, and the caller's PWD is the caller's directory.
    command.env("PWD", &spec.cwd).env_remove("OLDPWD");
    if let Some(path) = &spec.stdin {
        let file = if spec.sandboxed { files::copy(path) } else { std::fs::File::open(path) };
        command.stdin(Stdio::from(file.map_err(|cause| format!("cannot read {}: {cause}", path.display()))?));
    }
    command.spawn().map_err(|cause| format!("cannot run {program}: {cause}"))
}

/// Records that the agent could not be started, and prints it on the terminal.
fn refuse(dir: &Path, text: &str) -> u8 {
    record_unstarted(dir, text, false)
}

/// Records that the wrapper itself failed, and prints it on the terminal.
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
    // An existing record belongs to a finished run: a person has restarted this pane by hand.
    if read_exit(dir).is_none()
        && let Err(cause) = files::write_exit(dir, &record)
    {
        say(&format!("cannot write {}: {cause}", dir.join("exit.json").display()));
    }
    127
}

/// Prints one line on the terminal. It does not matter if the terminal is gone.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "swarm: error: {text}");
}

#[cfg(test)]
mod tests;
