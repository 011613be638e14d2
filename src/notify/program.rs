//! Runs a program for one notification: input, a time limit, its exit status, and the end of its output.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use swarm_state::screen::printable;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error::{Error, ErrorCode, Result};

/// How much of each output is read.
const MAX_PROGRAM_OUTPUT_BYTES: u64 = 4096;

/// How long to read on after the program has ended: something that it started in the background may hold the pipe.
const READ_TIMEOUT: Duration = Duration::from_millis(200);

/// The directory of the desktop's message bus, below which each user has one.
const RUNTIME_DIRS: &str = "/run/user";

pub(super) struct Program<'a> {
    /// The program and its arguments; not empty. It runs in the root directory, as the daemon does.
    pub(super) argv: &'a [String],
    pub(super) input: &'a str,
    /// The time after which it is killed with all that it started in its process group.
    pub(super) limit: Duration,
}

pub(super) struct ProgramEnd {
    pub(super) status: ExitStatus,
    /// The start of its standard output.
    pub(super) stdout: String,
    /// The start of its standard error, on one line.
    pub(super) stderr: String,
}

impl Program<'_> {
    /// Runs it to its end; [`ErrorCode::NotFound`] if the program is missing, [`ErrorCode::Timeout`] after the limit.
    pub(super) async fn run(self) -> Result<ProgramEnd> {
        let (name, arguments) = self.argv.split_first().ok_or_else(|| Error::invalid("no command given"))?;
        let mut command = Command::new(name);
        command.args(arguments).current_dir("/").process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        set_message_bus(&mut command);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::new(ErrorCode::NotFound, format!("no such program: {name}"))
            }
            _ => Error::system(format!("cannot run {name}"), error),
        })?;
        let leader = child.id().and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 1);
        if let Some(mut stdin) = child.stdin.take() {
            let input = self.input.to_owned();
            // A program that does not read its input ends the writing with an error.
            tokio::spawn(async move { drop(stdin.write_all(input.as_bytes()).await) });
        }
        let (stdout, stderr) = (child.stdout.take().map(start_of), child.stderr.take().map(start_of));
        let Ok(status) = timeout(self.limit, child.wait()).await else {
            if let Some(leader) = leader {
                let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
            }
            let message = format!("{name} did not end within {} s and was killed", self.limit.as_secs());
            return Err(Error::new(ErrorCode::Timeout, message));
        };
        let status = status.map_err(|error| Error::system(format!("cannot wait for {name}"), error))?;
        let (stdout, stderr) = (read(stdout).await, read(stderr).await);
        let stderr = printable(&stderr.split_whitespace().collect::<Vec<_>>().join(" "));
        Ok(ProgramEnd { status, stdout, stderr })
    }
}

/// Reads the start of an output, and drops the rest, so that the program is not held up.
fn start_of(mut pipe: impl AsyncRead + Unpin + Send + 'static) -> JoinHandle<Vec<u8>> {
    tokio::spawn(async move {
        let mut bytes = vec![];
        drop((&mut pipe).take(MAX_PROGRAM_OUTPUT_BYTES).read_to_end(&mut bytes).await);
        tokio::spawn(async move { drop(tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await) });
        bytes
    })
}

async fn read(task: Option<JoinHandle<Vec<u8>>>) -> String {
    let Some(task) = task else { return String::new() };
    let bytes = timeout(READ_TIMEOUT, task).await.ok().and_then(std::result::Result::ok).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Names the message bus of the user's desktop, which the environment of a daemon that a service started lacks.
fn set_message_bus(command: &mut Command) {
    const BUS_VARIABLE: &str = "DBUS_SESSION_BUS_ADDRESS";
    let bus = std::path::Path::new(RUNTIME_DIRS).join(nix::unistd::getuid().to_string()).join("bus");
    if std::env::var_os(BUS_VARIABLE).is_none() && bus.exists() {
        command.env(BUS_VARIABLE, format!("unix:path={}", bus.display()));
    }
}
