//! Starts ssh: for a connection to a daemon, for a command on the terminal, and for short commands.
//!
//! All of them share one connection for each host, which ssh itself opens and keeps. ssh removes the socket of one that
//! has ended; after [`drop_shared`], commands no longer use one that does not answer.

use std::fs::File;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use swarm_state::host::{is_lost_share, remote_line, ssh_fault, ssh_options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::{Place, RemoteHost};
use crate::error::{Error, Result};
use crate::files::create;
use crate::paths::own_program;

/// How long an ssh that has closed its output may take to exit.
const SSH_EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a command starts whose shared connection ends before its answer.
pub(crate) const MAX_SSH_ATTEMPTS: u32 = 3;

/// The delay before the next ssh. One that ends removes its socket a moment later.
pub(crate) const SSH_RETRY_DELAY: Duration = Duration::from_millis(200);

/// The most bytes of messages that are kept.
const MAX_STDERR_BYTES: usize = 16 * 1024;

/// An ssh that runs, with its messages so far.
#[derive(Debug)]
pub(crate) struct SshProcess {
    child: Child,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// The task that collects the messages. It ends when ssh has closed them.
    collected: JoinHandle<()>,
}

/// The program and the options of an ssh to the destination, without the command.
fn options(place: &Place, destination: &str, more: &[&str]) -> Result<std::process::Command> {
    place.prepare_ssh()?;
    let mut command = std::process::Command::new("ssh");
    command.args(ssh_options(&place.ssh_control().to_string_lossy()));
    command.args(more).arg("--").arg(destination);
    Ok(command)
}

/// The process that runs `command` on the host. Where this machine submits the jobs of a Slurm host, that is a process
/// of this program.
fn process(place: &Place, host: &RemoteHost, more: &[&str], command: &str) -> Result<std::process::Command> {
    if let Some(destination) = &host.spec.ssh {
        let mut ssh = options(place, destination, more)?;
        ssh.arg(remote_line(command));
        return Ok(ssh);
    }
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("swarm() {{ exec \"$0\" \"$@\"; }}; {command}")]).arg(own_program()?);
    shell.env("SWARM_DIR", place.root());
    Ok(shell)
}

/// Starts a command of swarm on the host, with its input and output for this process.
///
/// The process has a group of its own, so that Ctrl-C ends only this command. It ends when its input is closed.
pub(crate) fn start(
    place: &Place,
    host: &RemoteHost,
    command: &str,
) -> Result<(SshProcess, ChildStdin, ChildStdout)> {
    start_process(process(place, host, &["-T"], command)?)
}

pub(crate) fn start_process(command: std::process::Command) -> Result<(SshProcess, ChildStdin, ChildStdout)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut ssh = Command::from(command);
    ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = ssh.spawn().map_err(|e| not_started(&program, &e))?;
    let (Some(stdin), Some(stdout), Some(printed)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Error::system(format!("cannot run {program}"), "its pipes are missing"));
    };
    let stderr = Arc::new(Mutex::new(vec![]));
    let collected = tokio::spawn(collect(printed, stderr.clone()));
    Ok((SshProcess { child, stderr, collected }, stdin, stdout))
}

fn not_started(program: &str, error: &std::io::Error) -> Error {
    let error = Error::system(format!("cannot run {program}"), error);
    if program == "ssh" { error.hint("apt-get install openssh-client") } else { error }
}

/// Collects the messages of ssh until it ends.
async fn collect(mut printed: ChildStderr, into: Arc<Mutex<Vec<u8>>>) {
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = printed.read(&mut bytes).await {
        let mut text = into.lock().unwrap_or_else(PoisonError::into_inner);
        text.extend_from_slice(&bytes[..count]);
        let surplus = text.len().saturating_sub(MAX_STDERR_BYTES);
        text.drain(..surplus);
    }
}

/// Why a command on a host failed.
pub(crate) enum RemoteFault {
    /// It ended with this status.
    Exit(i32, Error),
    /// It was ended by a signal, or does not end.
    Stuck(Error),
    /// The shared connection ended under it. Another ssh makes a new one.
    LostShare(Error),
}

impl RemoteFault {
    /// The error for a person.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Exit(_, error) | Self::Stuck(error) | Self::LostShare(error) => error,
        }
    }
}

impl SshProcess {
    /// Why the process has closed its output; `None` when its command ended without an error.
    pub(crate) async fn fault(&mut self, host: &RemoteHost) -> Option<RemoteFault> {
        let code = match timeout(SSH_EXIT_TIMEOUT, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => return None,
            Ok(status) => status.ok().and_then(|status| status.code()),
            Err(_) => {
                self.end();
                return Some(RemoteFault::Stuck(host.silent("the connection is stuck")));
            }
        };
        let _ = timeout(SSH_EXIT_TIMEOUT, &mut self.collected).await;
        let text = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&text);
        let error = host.error(ssh_fault(code, &text));
        Some(match code {
            Some(code) if is_lost_share(code, &text) => RemoteFault::LostShare(error),
            Some(code) => RemoteFault::Exit(code, error),
            None => RemoteFault::Stuck(error),
        })
    }

    /// Ends an ssh that does not answer. Closing its input has no effect on it.
    pub(crate) fn end(&mut self) {
        let _ = self.child.start_kill();
    }
}

/// How long a client waits for its turn. It then connects at the same time as others.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits while another client connects again to the host. Its connection is then shared, which costs far less than one
/// for each client. The turn lasts until the result is dropped.
pub(crate) async fn turn_to_connect(place: &Place, host: &RemoteHost) -> Option<Flock<File>> {
    place.prepare_ssh().ok()?;
    let path = place.ssh_control().with_file_name(format!("{}.lock", host.name));
    let mut file = create(&path).ok()?;
    let deadline = Instant::now() + TURN_TIMEOUT;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(turn) => return Some(turn),
            Err((same, Errno::EWOULDBLOCK)) if Instant::now() < deadline => file = same,
            Err(_) => return None,
        }
        sleep(SSH_RETRY_DELAY / 4).await;
    }
}

/// Stops the use of a host's shared connection that may not answer, so that the next command makes a new one. Other
/// commands keep theirs: the host may only be slow. ssh itself ends a connection over a stalled link.
pub(crate) async fn drop_shared(place: &Place, host: &RemoteHost) {
    let Some(destination) = &host.spec.ssh else { return };
    let Ok(ssh) = options(place, destination, &["-O", "stop"]) else { return };
    let mut ssh = Command::from(ssh);
    ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let _ = timeout(SSH_EXIT_TIMEOUT, ssh.status()).await;
}

/// How long a short command may take, the connection included.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a short command on the host, again if the shared connection ends under it, and returns its output.
pub(crate) async fn output(place: &Place, host: &RemoteHost, command: &str) -> Result<Vec<u8>> {
    let mut attempts = 1;
    loop {
        match run_once(place, host, command, vec![], OUTPUT_TIMEOUT).await {
            Err(RemoteFault::LostShare(_)) if attempts < MAX_SSH_ATTEMPTS => attempts += 1,
            outcome => return outcome.map_err(RemoteFault::into_error),
        }
        sleep(SSH_RETRY_DELAY).await;
    }
}

/// As [`output`], with `input` for the command, which runs once. The whole takes at most `limit`.
pub(crate) async fn output_of(
    place: &Place,
    host: &RemoteHost,
    command: &str,
    input: Vec<u8>,
    limit: Duration,
) -> Result<Vec<u8>> {
    run_once(place, host, command, input, limit).await.map_err(RemoteFault::into_error)
}

async fn run_once(
    place: &Place,
    host: &RemoteHost,
    command: &str,
    input: Vec<u8>,
    limit: Duration,
) -> Result<Vec<u8>, RemoteFault> {
    let (mut process, mut stdin, mut printed) = start(place, host, command).map_err(RemoteFault::Stuck)?;
    // The command may end before it has read all.
    let feed = tokio::spawn(async move { stdin.write_all(&input).await });
    let mut stdout = vec![];
    let read = timeout(limit, printed.read_to_end(&mut stdout)).await;
    feed.abort();
    match read {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(RemoteFault::Stuck(host.silent(&error.to_string()))),
        Err(_) => {
            process.end();
            drop_shared(place, host).await;
            let error = host.silent(&format!("it did not answer within {} s", limit.as_secs()));
            return Err(RemoteFault::Stuck(error));
        }
    }
    match process.fault(host).await {
        Some(fault) => Err(fault),
        None => Ok(stdout),
    }
}

/// Runs a command of swarm on the host, on this terminal, and returns its exit status.
pub(crate) async fn run_on_terminal(
    place: &Place,
    host: &RemoteHost,
    command: &str,
    tty: bool,
) -> Result<Option<i32>> {
    let process = process(place, host, if tty { &["-t"] } else { &["-T"] }, command)?;
    let status = Command::from(process).status().await.map_err(|e| not_started("ssh", &e))?;
    Ok(status.code())
}

/// The error for an ssh on the terminal that failed by itself; the messages are already there.
pub(crate) async fn reason(place: &Place, host: &RemoteHost) -> Error {
    match output(place, host, "true").await {
        Err(error) => error,
        Ok(_) => host.silent("the connection was closed"),
    }
}
