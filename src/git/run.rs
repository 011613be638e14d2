//! One git command: a clean environment, no terminal, a time-out, the output as text.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::error::{Error, ErrorCode, Result};
use crate::room;

/// For what only reads or changes a reference.
pub(super) const SHORT: Duration = Duration::from_secs(30);
/// For what checks out or removes a whole tree.
pub(super) const LONG: Duration = Duration::from_secs(300);
/// Stands in the environment of all that a git of swarm's runs: a filter or a hook of the repository's is no person.
pub(super) const MARK: (&str, &str) = ("SWARM_GIT", "1");
/// How long git may clean up after SIGTERM: it removes its locks and a half-made worktree.
const GRACE: Duration = Duration::from_secs(5);
/// How long another process's lock (`config.lock`, `index.lock`) is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(15);

/// What git said.
#[derive(Debug)]
pub(super) struct Said {
    /// The exit status was 0.
    pub(super) ok: bool,
    /// It did not end in time and was ended.
    pub(super) timed_out: bool,
    stdout: Vec<u8>,
    stderr: String,
}

impl Said {
    /// Standard output without the line end.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    /// Standard output as it is.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.stdout
    }

    /// Standard output as one path.
    pub(super) fn path(&self) -> PathBuf {
        let line = self.stdout.strip_suffix(b"\n").unwrap_or(&self.stdout);
        PathBuf::from(OsString::from_vec(line.to_vec()))
    }

    /// git's own complaint in one line: what is `fatal:` or an `error:`, else the last line.
    pub(super) fn complaint(&self) -> String {
        let is_complaint = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
        let lines: Vec<&str> = self.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let complaints: Vec<&str> = lines.iter().copied().filter(is_complaint).collect();
        match (complaints.as_slice(), lines.last()) {
            ([], Some(last)) => (*last).to_owned(),
            ([], None) if self.timed_out => "git did not end in time".to_owned(),
            ([], None) => "git gave no reason".to_owned(),
            (complaints, _) => complaints.join("; "),
        }
    }

    /// True when git gave up: it did not merely pass over something.
    pub(super) fn is_fatal(&self) -> bool {
        !self.ok && (self.timed_out || self.stderr.lines().any(|line| line.starts_with("fatal:")))
    }

    /// True when git failed because another process holds one of the repository's locks.
    fn is_locked(&self) -> bool {
        let lock = |line: &str| {
            (line.contains(".lock") && line.contains("File exists")) || line.contains("could not lock")
        };
        !self.ok && self.stderr.lines().any(lock)
    }

    pub(super) fn mentions(&self, text: &str) -> bool {
        self.stderr.contains(text)
    }
}

/// Runs `git ARGS` in `dir`. That git says no is no error here.
///
/// # Errors
/// When git cannot be run at all, or `dir` is no directory.
pub(super) async fn git<A: AsRef<OsStr>>(dir: &Path, limit: Duration, args: &[A]) -> Result<Said> {
    git_with(dir, limit, &[], args).await
}

/// As [`git`], with variables in its environment.
///
/// # Errors
/// As [`git`].
pub(super) async fn git_with<A: AsRef<OsStr>>(
    dir: &Path,
    limit: Duration,
    env: &[(&str, &OsStr)],
    args: &[A],
) -> Result<Said> {
    if !dir.is_dir() {
        return Err(Error::invalid(format!("'{}' is no directory", dir.display())));
    }
    let mut command = Command::new("git");
    // Both `-C` and the directory: neither a hook's environment nor a moved directory leads git astray.
    command.arg("-C").arg(dir).args(args).current_dir(dir);
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.as_bytes().starts_with(b"GIT_")) {
        command.env_remove(key);
    }
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    command.env(MARK.0, MARK.1);
    command.envs(env.iter().copied());
    #[cfg(test)]
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    // A group of its own, so that hooks end with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true).process_group(0);
    static ROOM: LazyLock<Semaphore> = LazyLock::new(room::for_processes);
    let _room = room::wait(&ROOM).await;
    let child = room::start(&mut command).await.map_err(|error| {
        let error = Error::system("cannot run git", error);
        if error.message.contains("No such file") { error.hint("install git") } else { error }
    })?;
    finish(child, limit).await.map_err(|error| Error::system("cannot run git", error))
}

async fn finish(child: Child, limit: Duration) -> std::io::Result<Said> {
    let group = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
    let mut output = std::pin::pin!(child.wait_with_output());
    // Dropped before `output`, and so before git is reaped: whoever waits for it no longer wants none of it.
    let mut left = Left(group);
    let said = |output: Output, timed_out: bool| Said {
        ok: output.status.success() && !timed_out,
        timed_out,
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    if let Ok(output) = timeout(limit, &mut output).await {
        left.0 = None;
        return Ok(said(output?, false));
    }
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        // The group is git's own, and git is not reaped before `output` is done.
        if let Some(group) = group {
            let _ = killpg(group, signal);
        }
        if let Ok(output) = timeout(GRACE, &mut output).await {
            left.0 = None;
            return Ok(said(output?, true));
        }
    }
    // Something outside the group still holds the pipes.
    Ok(Said { ok: false, timed_out: true, stdout: vec![], stderr: String::new() })
}

/// Whether an environment is that of something which a git of swarm's runs.
pub fn is_below_ours(env: &[Vec<u8>]) -> bool {
    env.iter().any(|line| line.as_slice() == format!("{}={}", MARK.0, MARK.1).as_bytes())
}

/// A git that nobody waits for any more is ended with all that it runs: filters, hooks.
struct Left(Option<Pid>);

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// As [`git`], again and again while another process holds a lock of the repository.
pub(super) async fn git_patient<A: AsRef<OsStr>>(dir: &Path, limit: Duration, args: &[A]) -> Result<Said> {
    let (mut waited, mut pause) = (Duration::ZERO, Duration::from_millis(50));
    loop {
        let said = git(dir, limit, args).await?;
        if !said.is_locked() || waited >= LOCK_PATIENCE {
            return Ok(said);
        }
        sleep(pause).await;
        waited += pause;
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// As [`git`] with [`SHORT`], where anything but success is an error: "WHAT: git's complaint".
pub(super) async fn ask<A: AsRef<OsStr>>(dir: &Path, what: &str, args: &[A]) -> Result<Said> {
    let said = git(dir, SHORT, args).await?;
    if said.ok {
        return Ok(said);
    }
    Err(Error::new(ErrorCode::System, format!("{what}: {}", said.complaint())))
}
