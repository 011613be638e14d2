//! Starts the daemon, and reports why it did not start. This is one of the few files that start a process.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::process::ChildStdin;
use tokio::time::timeout;

use super::lines::LineReader;
use crate::error::{Error, ErrorCode, Result};
use crate::paths::{OWN_DIRECTORY, Paths, own_program};

/// How long a daemon may take to start. It syncs files, for which a busy disk can take many seconds.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct NotStarted {
    pub(super) error: Error,
    /// Another daemon runs in the directory.
    pub(super) is_running_already: bool,
}

impl From<Error> for NotStarted {
    fn from(error: Error) -> Self {
        Self { error, is_running_already: false }
    }
}

/// The option of a daemon that resumes no loop by itself and ends with its input.
pub(super) const UNTIL_EOF: &str = "--until-eof";

/// Starts the daemon of a job as a child, without a wait. It may wait for the end of a former job.
pub(crate) fn run_in_job(paths: &Paths) -> Result<tokio::process::Child> {
    let (mut command, _, _) = command(paths, &[])?;
    command.stdout(Stdio::null());
    command.spawn().map_err(|e| no_daemon("swarm", &e))
}

fn no_daemon(what: &str, e: &std::io::Error) -> Error {
    Error::new(ErrorCode::NoDaemon, format!("cannot start the daemon: {what}: {e}"))
}

/// `swarm daemon run`, with its log and the length of the log so far.
fn command(paths: &Paths, options: &[&str]) -> Result<(tokio::process::Command, PathBuf, u64)> {
    let no_place = |what: &Path, e| no_daemon(&what.display().to_string(), &e).hint(OWN_DIRECTORY);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(paths.root())
        .map_err(|e| no_place(paths.root(), e))?;
    let log = paths.daemon_log();
    let stderr =
        OpenOptions::new().append(true).create(true).mode(0o600).open(&log).map_err(|e| no_place(&log, e))?;
    let from = stderr.metadata().map(|m| m.len()).unwrap_or(0);
    let program = own_program().map(|own| if own.exists() { own } else { paths.helper() })?;
    let mut command = tokio::process::Command::new(&program);
    command.args(["daemon", "run"]).args(options).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_scrubbed(name)) {
        command.env_remove(name);
    }
    // The daemon runs in `/`, where a relative SWARM_DIR would name another directory.
    command.env("SWARM_DIR", paths.root());
    Ok((command, log, from))
}

/// Starts `swarm daemon run` with further options, and waits until it is ready. Returns its input with [`UNTIL_EOF`].
pub(super) async fn start(paths: &Paths, options: &[&str]) -> Result<Option<ChildStdin>, NotStarted> {
    let (mut command, log, from) = command(paths, &[&["--ready-on-stdout"], options].concat())?;
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    if options.contains(&UNTIL_EOF) {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().map_err(|e| no_daemon(&program, &e))?;
    let Some(stdout) = child.stdout.take() else {
        return Err(Error::new(ErrorCode::Internal, "the daemon's pipe is missing").into());
    };
    let mut lines = LineReader::new(BufReader::new(stdout));
    let printed = match timeout(START_TIMEOUT, lines.next()).await {
        Ok(line) => line.ok().flatten().map(|l| String::from_utf8_lossy(&l).trim().to_owned()),
        Err(_) => Some(format!("error it was not ready within {} s", START_TIMEOUT.as_secs())),
    };
    match printed.as_deref() {
        Some("ready") => Ok(child.stdin.take()),
        printed => Err(not_ready(printed, &log, from)),
    }
}

/// Whether a variable is removed from the daemon's environment: those that point git and tmux at one repository or
/// server, and those that mark a process of a worker or check, since an agent may be the one that starts the daemon.
fn is_scrubbed(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"GIT_")
        || name.starts_with(b"TMUX")
        || [&b"SWARM_WORKER"[..], b"SWARM_RUN", b"SWARM_CHECK", b"SWARM_GIT", b"SWARM_SPAWNED_BY"]
            .contains(&name)
}

/// The error for a daemon that did not start: the `error CODE MESSAGE` that it printed, else the end of its log.
fn not_ready(printed: Option<&str>, log: &Path, from: u64) -> NotStarted {
    let tail = new_in_log(log, from);
    let message = printed.map(|line| line.strip_prefix("error ").unwrap_or(line));
    let coded = message.and_then(|message| message.split_once(' '));
    let coded = coded.and_then(|(word, rest)| Some((ErrorCode::of_word(word)?, rest)));
    if let Some((code @ ErrorCode::OtherHost, rest)) = coded {
        let (message, hint) = rest.split_once('\t').unwrap_or((rest, ""));
        let mut error = Error::new(code, message);
        error.hint = (!hint.is_empty()).then(|| hint.to_owned());
        return error.into();
    }
    let reason = match coded.map(|(_, rest)| rest).or(message) {
        Some(reason) => reason.to_owned(),
        None => tail.last().cloned().unwrap_or_else(|| "it ended without a message".to_owned()),
    };
    let mut message = format!("the daemon did not start: {reason}");
    for line in tail.iter().filter(|line| !line.contains(&reason)) {
        message.push_str("\n  ");
        message.push_str(line);
    }
    let error = Error::new(ErrorCode::NoDaemon, message).hint(format!("its log is {}", log.display()));
    NotStarted { error, is_running_already: coded.is_some_and(|(code, _)| code == ErrorCode::Conflict) }
}

/// Returns the last lines that were added to the log since it was `from` bytes long.
fn new_in_log(log: &Path, from: u64) -> Vec<String> {
    const MAX_TAIL_BYTES: u64 = 16 * 1024;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let from = from.max(file.metadata()?.len().saturating_sub(MAX_TAIL_BYTES));
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let lines: Vec<String> =
        text.lines().map(swarm_state::screen::printable).filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(10)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_failed_shows_the_reason_and_the_new_log_lines() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("daemon.log");
        std::fs::write(&log, "old\nnew \x1b[1mline\n").unwrap();
        let error = not_ready(Some("error system tmux is missing"), &log, 4).error;
        assert!(
            error.message.starts_with("the daemon did not start: tmux is missing\n  new "),
            "{}",
            error.message
        );
        assert!(!error.message.contains("old") && !error.message.contains('\x1b'), "{}", error.message);
        assert_eq!(error.code.exit_status(), 3);
        let error = not_ready(None, &log, 4).error;
        assert!(error.message.contains("did not start: new "), "{}", error.message);
        let taken = not_ready(Some("error conflict a daemon is already running (pid 7)"), &log, 99);
        assert!(
            taken.is_running_already
                && taken.error.message.ends_with(": a daemon is already running (pid 7)")
        );
        assert!(!not_ready(Some("error it was not ready within 30 s"), &log, 99).is_running_already);
    }

    #[test]
    fn git_tmux_and_swarm_variables_are_removed_for_the_daemon() {
        for (name, scrubbed) in [
            ("GIT_DIR", true),
            ("TMUX", true),
            ("TMUX_TMPDIR", true),
            ("SWARM_WORKER", true),
            ("SWARM_RUN", true),
            ("SWARM_CHECK", true),
            ("SWARM_GIT", true),
            ("SWARM_SPAWNED_BY", true),
            ("PATH", false),
        ] {
            assert_eq!(is_scrubbed(OsStr::new(name)), scrubbed, "{name}");
        }
    }
}
