//! Runs one git command with a clean environment, no terminal and a timeout, and returns its output as text.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use swarm_state::screen::printable;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::descriptors;
use crate::error::{Error, Result};

/// The timeout of commands that only read, or change a ref.
pub(super) const SHORT_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout of commands that check out or remove a whole tree.
pub(super) const LONG_TIMEOUT: Duration = Duration::from_secs(300);
/// In the environment of everything that swarm's git runs: marks a filter or hook as not started by a person.
pub(super) const GIT_MARK: (&str, &str) = ("SWARM_GIT", "1");
/// Settings of every git process, which those that it starts in nested repositories inherit: an agent can write the
/// settings of a repository in its tree, and some of them name a program. Filters have any name; see [`filters_of`].
const SAFE_SETTINGS: [(&str, &str); 18] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", ""),
    ("core.sshCommand", "ssh"),
    ("core.gitProxy", "none"),
    ("credential.helper", ""),
    ("core.alternateRefsCommand", "true"),
    // A fetch of missing objects from a path runs the program that the remote's settings name.
    ("protocol.file.allow", "never"),
    ("protocol.ext.allow", "never"),
    ("protocol.fd.allow", "never"),
    ("diff.submodule", "short"),
    // git would run in each submodule, with its filters.
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    ("log.showSignature", "false"),
    ("submodule.recurse", "false"),
    ("maintenance.auto", "false"),
];
/// How long git may clean up after SIGTERM: it removes its locks and an unfinished worktree.
const GIT_KILL_GRACE: Duration = Duration::from_secs(5);
/// How many lines before git's first `fatal:` belong to its error message. Other programs print them.
const LINES_BEFORE_FATAL: usize = 3;
/// The longest line of an error message, in characters.
const MAX_LINE_CHARS: usize = 300;
/// How long to wait for another process's lock (`config.lock`, `index.lock`).
const LOCK_RETRY_TIME: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct GitOutput {
    /// The exit status was 0.
    pub(super) ok: bool,
    /// The command did not end in time and was killed.
    pub(super) timed_out: bool,
    stdout: Vec<u8>,
    stderr: String,
}

impl GitOutput {
    /// Standard output without the last line end.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.stdout
    }

    pub(super) fn path(&self) -> PathBuf {
        let line = self.stdout.strip_suffix(b"\n").unwrap_or(&self.stdout);
        PathBuf::from(OsString::from_vec(line.to_vec()))
    }

    /// Standard output as texts that NUL separates, without empty ones.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let names = self.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names.map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// This output; if git failed, the error "WHAT: git's message".
    pub(super) fn checked(self, what: impl std::fmt::Display) -> Result<Self> {
        if self.ok { Ok(self) } else { Err(Error::system(what, self.complaint())) }
    }

    pub(super) fn complaint(&self) -> String {
        match complaint(&self.stderr) {
            Some(text) => text,
            None if self.timed_out => "git timed out".to_owned(),
            None => "git gave no reason".to_owned(),
        }
    }

    /// Whether git gave up, and did not only skip something.
    pub(super) fn is_fatal(&self) -> bool {
        !self.ok && (self.timed_out || self.stderr.lines().any(|line| line.starts_with("fatal:")))
    }

    /// Whether git failed because another process holds a lock of the repository.
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

/// The error message in git's standard error, as one line: its `error:` and `fatal:` lines, and up to
/// [`LINES_BEFORE_FATAL`] other lines before the first `fatal:`, where a filter, a hook or ssh prints the cause. The
/// last line if there are none of these.
fn complaint(stderr: &str) -> Option<String> {
    // A carriage return ends a line of progress.
    let lines: Vec<String> = stderr
        .split(['\n', '\r'])
        .map(|line| printable(line).trim().chars().take(MAX_LINE_CHARS).collect())
        .filter(|line: &String| !line.is_empty() && !is_progress(line))
        .collect();
    let is_gits = |line: &str| line.starts_with("fatal:") || line.starts_with("error:");
    let fatal = lines.iter().position(|line| line.starts_with("fatal:")).unwrap_or(0);
    let others: Vec<usize> = (0..fatal).filter(|at| !is_gits(&lines[*at])).collect();
    let first = others.iter().rev().nth(LINES_BEFORE_FATAL - 1).copied().unwrap_or(0);
    let is_shown = |at: usize| is_gits(&lines[at]) || (first..fatal).contains(&at);
    let shown: Vec<&str> = (0..lines.len()).filter(|at| is_shown(*at)).map(|at| lines[at].as_str()).collect();
    let last = || lines.iter().rfind(|line| !line.starts_with("hint:")).cloned();
    if shown.is_empty() { last() } else { Some(shown.join("; ")) }
}

/// A line that git prints without an error.
fn is_progress(line: &str) -> bool {
    line.starts_with("Preparing worktree") || (line.contains("% (") && line.contains(':'))
}

/// Runs `git ARGS` in `dir`. Fails when git cannot be run or `dir` is not a directory, and not when git fails.
pub(super) async fn git<A: AsRef<OsStr>>(dir: &Path, limit: Duration, args: &[A]) -> Result<GitOutput> {
    git_with(dir, limit, &[], &[], args).await
}

/// As [`git`], with additional environment variables and settings.
pub(super) async fn git_with<A: AsRef<OsStr>>(
    dir: &Path,
    limit: Duration,
    env: &[(&str, &OsStr)],
    settings: &[(String, &str)],
    args: &[A],
) -> Result<GitOutput> {
    if !dir.is_dir() {
        return Err(Error::invalid(format!("'{}' is not a directory", dir.display())));
    }
    let mut command = Command::new("git");
    // Both `-C` and the current directory, so that neither a hook's environment nor a moved directory misleads git.
    command.arg("-C").arg(dir).args(args).current_dir(dir);
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.as_bytes().starts_with(b"GIT_")) {
        command.env_remove(key);
    }
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    // A replaced object would hide a change.
    command.env("GIT_NO_REPLACE_OBJECTS", "1");
    command.env(GIT_MARK.0, GIT_MARK.1);
    let safe = SAFE_SETTINGS.iter().map(|(key, value)| (*key, *value));
    let given = settings.iter().map(|(key, value)| (key.as_str(), *value));
    for (number, (key, value)) in safe.chain(given).enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    command.env("GIT_CONFIG_COUNT", (SAFE_SETTINGS.len() + settings.len()).to_string());
    command.envs(env.iter().copied());
    #[cfg(test)]
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    // A process group of its own, so that hooks end with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true).process_group(0);
    static ROOM: LazyLock<Semaphore> = LazyLock::new(descriptors::process_slots);
    let _room = descriptors::acquire(&ROOM).await;
    let child = descriptors::spawn(&mut command).await.map_err(|error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let error = Error::system("cannot run git", error);
        if is_missing { error.hint("install git") } else { error }
    })?;
    finish(child, limit).await.map_err(|error| Error::system("cannot run git", error))
}

async fn finish(child: Child, limit: Duration) -> std::io::Result<GitOutput> {
    let group = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
    let mut output = std::pin::pin!(child.wait_with_output());
    // Dropped before `output`, and so before git is reaped: if the caller stops waiting, the whole group is killed.
    let mut left = Left(group);
    let said = |output: Output, timed_out: bool| GitOutput {
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
        // The group id is git's pid, and git is not reaped before `output` is done.
        if let Some(group) = group {
            let _ = killpg(group, signal);
        }
        if let Ok(output) = timeout(GIT_KILL_GRACE, &mut output).await {
            left.0 = None;
            return Ok(said(output?, true));
        }
    }
    // A process outside the group still has the pipes open.
    Ok(GitOutput { ok: false, timed_out: true, stdout: vec![], stderr: String::new() })
}

/// Whether an environment belongs to a process that swarm's git started.
pub(crate) fn is_below_ours(env: &[Vec<u8>]) -> bool {
    let mark = format!("{}={}", GIT_MARK.0, GIT_MARK.1);
    env.iter().any(|line| line == mark.as_bytes())
}

/// Kills git and everything it runs (filters, hooks) if its caller no longer waits.
struct Left(Option<Pid>);

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// As [`git`], but retries while another process holds a lock of the repository.
pub(super) async fn git_patient<A: AsRef<OsStr>>(
    dir: &Path,
    limit: Duration,
    args: &[A],
) -> Result<GitOutput> {
    git_patient_set(dir, limit, &[], args).await
}

/// As [`git_patient`], with additional settings.
pub(super) async fn git_patient_set<A: AsRef<OsStr>>(
    dir: &Path,
    limit: Duration,
    settings: &[(String, &str)],
    args: &[A],
) -> Result<GitOutput> {
    let (mut waited, mut pause) = (Duration::ZERO, Duration::from_millis(50));
    loop {
        let said = git_with(dir, limit, &[], settings, args).await?;
        if !said.is_locked() || waited >= LOCK_RETRY_TIME {
            return Ok(said);
        }
        sleep(pause).await;
        waited += pause;
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// Settings that turn every filter of a repository into a copy.
pub(super) async fn filters_of(repo: &Path) -> Result<Vec<(String, &'static str)>> {
    let args =
        ["config", "--name-only", "-z", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"];
    let said = git(repo, SHORT_TIMEOUT, &args).await?;
    Ok(said.names().map(|key| if key.ends_with(".required") { (key, "false") } else { (key, "") }).collect())
}

/// As [`git`] with [`SHORT_TIMEOUT`], but a failure of git is an error: "WHAT: git's message".
pub(super) async fn ask<A: AsRef<OsStr>>(dir: &Path, what: &str, args: &[A]) -> Result<GitOutput> {
    git(dir, SHORT_TIMEOUT, args).await?.checked(what)
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn error_text_of_git_has_the_lines_before_the_first_fatal() {
        let cases = [
            // git-lfs is missing; git's own last line is about the pipe to it.
            (
                "Preparing worktree (checking out 'x')\ngit-lfs filter-process: 1: git-lfs: not found\n\
                 fatal: the remote end hung up unexpectedly\n",
                "git-lfs filter-process: 1: git-lfs: not found; fatal: the remote end hung up unexpectedly",
            ),
            // The same, when the filter ended sooner.
            (
                "git-lfs filter-process: 1: git-lfs: not found\nerror: packet write with format failed\n\
                 error: Could not write client identification\nerror: initialization for subprocess failed\n\
                 fatal: a.bin: smudge filter lfs failed\n",
                "git-lfs filter-process: 1: git-lfs: not found; error: packet write with format failed; \
                 error: Could not write client identification; error: initialization for subprocess failed; \
                 fatal: a.bin: smudge filter lfs failed",
            ),
            // At most three lines of others, and no progress.
            (
                "zero\none\ntwo\nUpdating files:  59% (1794/3000)\rUpdating files:  60% (1800/3000)\rthree\nerror: four\n\
                 fatal: five\nsix\nerror: seven\n",
                "one; two; three; error: four; fatal: five; error: seven",
            ),
            ("error: one\nhint: two\nerror: three\n", "error: one; error: three"),
            ("hook: refused\n\n", "hook: refused"),
            ("\u{1b}[31mred\u{1b}[0m\nfatal: no\n", "red; fatal: no"),
        ];
        for (stderr, wanted) in cases {
            assert_eq!(complaint(stderr).as_deref(), Some(wanted));
        }
        assert_eq!(complaint("\n"), None);
        let long = format!("{}\nfatal: no", "x".repeat(5000));
        assert!(complaint(&long).is_some_and(|text| text.len() < 400));
    }
}
