//! Runs checks: the commands that prove that work is done.
//!
//! Each check is `sh -c COMMAND` in the worker's directory, in its own process group, without input, with the agent's
//! environment and a time limit. Its output goes into a file, so a check that prints without end costs the daemon no
//! memory; the beginning and the end of a long output are kept. The daemon and the library's loop both use it.
//! `swarm_state::gates` interprets a failed check.
//!
//! Checks are isolated from swarm and from each other. A shell runs between a check and this process, so `kill $PPID`
//! ends only the check. Everything that a check started is killed with it. A variable in the check's environment
//! marks all these processes, so that even those are found that made their own session and lost their parents, and
//! those of a daemon that died ([`sweep`]).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use swarm_state::contract::{MAX_OUTPUT_CHARS, last_characters};
use swarm_state::gates::{CheckResult, TIME_OVER};
use swarm_state::screen::{printable, strip};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::{Error, Result};
use crate::procs;
use crate::sandbox::hosts::CheckProxy;
use crate::sandbox::{HeldPlaceholders, SandboxedCommand, WorkerSandbox};

pub(crate) mod program;
#[cfg(test)]
mod tests;

/// How long the processes of a check have to exit after its time limit.
const CHECK_KILL_GRACE: Duration = Duration::from_secs(2);

/// How much a check may print. At this size it is killed.
pub const MAX_PRINTED_BYTES: u64 = 256 << 20;

/// How much of the output is kept: its beginning, its end, and a line between them that names what is missing.
pub const KEPT_OUTPUT_BYTES: u64 = 8 << 20;

/// How often the size of the output is checked.
const CHECK_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The variable that marks a check and everything it starts. Its value is the output file.
const CHECK_MARK: &str = "SWARM_CHECK";

/// Kills the processes of a dead daemon's checks that wrote into a folder below `folder`, and returns how many there
/// were. No other process may run checks there meanwhile. Blocks for a moment.
pub(crate) fn sweep(folder: &Path) -> usize {
    // Without the folder no check ever ran, and reading the environment of every process would be in vain.
    if !folder.exists() {
        return 0;
    }
    let ended = procs::end_marked(&mark(&folder.join("")));
    wait_ended(&ended);
    ended.len()
}

/// Waits until killed processes have ended, at most [`CHECK_KILL_GRACE`]. A process that is exiting still holds its
/// files and ports, and would count as left over. One that does not exit hangs in the kernel, which swarm cannot
/// change.
fn wait_ended(killed: &[procs::Proc]) {
    let until = std::time::Instant::now() + CHECK_KILL_GRACE;
    let is_there = |proc: &procs::Proc| {
        procs::start_time(proc.pid) == Some(proc.start_time) && procs::is_alive(proc.pid)
    };
    while killed.iter().any(is_there) && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The environment line of a check that writes into `file`.
pub(crate) fn mark(path: &Path) -> Vec<u8> {
    [CHECK_MARK.as_bytes(), b"=", path.as_os_str().as_encoded_bytes()].concat()
}

/// Which checks to run, and how.
#[derive(Clone)]
pub struct CheckPlan<'a> {
    /// The commands, in order.
    pub commands: &'a [String],
    /// The directory they run in.
    pub cwd: &'a Path,
    /// Their complete environment.
    pub env: &'a BTreeMap<String, String>,
    /// The time limit of each.
    pub limit: Duration,
    /// The end of the loop's time: a running check is killed and no more are started.
    pub until: Option<Instant>,
    /// How many run at the same time; at least 1.
    pub jobs: usize,
    /// The folder for their output.
    pub folder: &'a Path,
    /// The beginning of its files' names: with `check`, they are `check-1.txt`, `check-2.txt`, …
    pub stem: &'a str,
    /// How many bytes of each output are kept; see [`KEPT_OUTPUT_BYTES`].
    pub kept: u64,
    /// Called when a check starts and when it ends.
    pub on_step: OnCheckStep<'a>,
    /// The sandbox that they run in.
    pub sandbox: Option<CheckSandbox<'a>>,
}

/// The sandbox of checks.
#[derive(Clone, Copy)]
pub struct CheckSandbox<'a> {
    pub(crate) sandbox: &'a WorkerSandbox,
    /// The directory that the checks may write, if it is not the working tree that holds theirs.
    pub(crate) tree: Option<&'a Path>,
    /// The tree that a room was made from.
    pub(crate) origin: Option<&'a Path>,
}

/// The environment of checks, and the words in front of each command.
struct CheckEntry {
    argv: Vec<String>,
    env: BTreeMap<String, String>,
}

/// A callback for the steps of checks.
pub type OnCheckStep<'a> = &'a (dyn Fn(Step<'_>) + Send + Sync);

/// A step in the run of a check.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// This command was started.
    Started(&'a str),
    /// The command ended with this result.
    Ended(&'a CheckResult),
    /// This crash point for tests was reached.
    Reached(&'static str),
}

impl CheckPlan<'_> {
    /// Runs all of them, even if one fails. The results have the order of the commands. An error (the folder cannot be
    /// written, no process can be started) proves nothing about the work.
    pub async fn run(&self) -> Result<Vec<CheckResult>> {
        let (entry, _placeholders, _proxy) = self.entry().await?;
        let mut waiting = self.commands.iter().enumerate();
        let mut running = JoinSet::new();
        let mut results = Vec::new();
        loop {
            while running.len() < self.jobs.max(1)
                && let Some((index, command)) = waiting.next()
            {
                if self.until.is_some_and(|until| Instant::now() >= until) {
                    let result = CheckResult::not_run(command);
                    (self.on_step)(Step::Ended(&result));
                    results.push((index, result));
                    continue;
                }
                let check = self.start(index, command, &entry)?;
                (self.on_step)(Step::Started(command));
                running.spawn(async move { (index, check.finish().await) });
            }
            match running.join_next().await {
                None => break,
                Some(Ok((index, result))) => {
                    let result = result?;
                    (self.on_step)(Step::Ended(&result));
                    results.push((index, result));
                }
                Some(Err(error)) => return Err(Error::system("a check's task failed", error)),
            }
        }
        if let Some(docker) = self.sandbox.and_then(|checks| checks.sandbox.docker.as_ref()) {
            // The checks may have written files that swarm reads.
            docker.wait_for_sync().await;
        }
        results.sort_by_key(|(index, _)| *index);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    /// The way into the sandbox, if there is one.
    async fn entry(&self) -> Result<(CheckEntry, HeldPlaceholders, Option<CheckProxy>)> {
        let mut env = self.env.clone();
        let Some(CheckSandbox { sandbox, tree, origin }) = self.sandbox.filter(|_| !self.commands.is_empty())
        else {
            return Ok((CheckEntry { argv: vec![], env }, HeldPlaceholders::default(), None));
        };
        let proxy = CheckProxy::start(sandbox, &self.folder.join(format!("{}-proxy", self.stem)))
            .map_err(|error| Error::system("cannot start the proxy of the sandbox", error))?;
        let proxy_dir = proxy.as_ref().map(|proxy| proxy.dir.clone());
        let (sandbox, cwd) = (sandbox.clone(), self.cwd.to_owned());
        let (tree, origin) = (tree.map(Path::to_owned), origin.map(Path::to_owned));
        let limit = self.limit + CHECK_KILL_GRACE;
        let opening = tokio::task::spawn_blocking(move || {
            let (tree, origin) = (tree.as_deref(), origin.as_deref());
            let command = SandboxedCommand {
                cwd: &cwd,
                tree,
                origin,
                profile: None,
                proxy: proxy_dir,
                settings: None,
                limit: Some(limit),
                env: &mut env,
            };
            let prefix = sandbox.prepare(command)?;
            Ok((CheckEntry { argv: prefix.argv, env }, prefix.placeholders, proxy))
        });
        opening.await.map_err(|e| Error::system("cannot prepare the sandbox of a check", e))?
    }

    fn start(&self, index: usize, command: &str, entry: &CheckEntry) -> Result<Running> {
        let path = self.folder.join(format!("{}-{}.txt", self.stem, index + 1));
        let trouble = |e| Error::system(format!("cannot run the check '{command}'"), e);
        let mut private = File::options();
        // Appends, so that late output during the shortening goes to the end.
        private.write(true).create(true).truncate(true).custom_flags(nix::libc::O_APPEND).mode(0o600);
        let file = private.open(&path).map_err(trouble)?;
        let mut shell = Command::new("sh");
        // The outer shell has a second command, so it cannot replace itself by the inner one.
        shell.args(["-c", "\"$@\"; exit $?", "sh"]).args(&entry.argv).args(["sh", "-c", command]);
        shell
            .current_dir(self.cwd)
            .env_clear()
            .envs(&entry.env)
            .env(CHECK_MARK, &path)
            .process_group(0)
            .kill_on_drop(true);
        shell.stdin(Stdio::null()).stdout(file.try_clone().map_err(trouble)?).stderr(file);
        let child = shell.spawn().map_err(trouble)?;
        let leader = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
        let group = Group { leader, mark: mark(&path), path: path.clone(), kept: self.kept };
        let (command, started) = (command.to_owned(), Instant::now());
        Ok(Running { command, path, child, group, started, limit: self.limit, until: self.until })
    }
}

/// A running check.
struct Running {
    command: String,
    path: PathBuf,
    child: Child,
    group: Group,
    started: Instant,
    limit: Duration,
    until: Option<Instant>,
}

/// Kills all processes of a check, however the wait for it ended, and shortens its output.
struct Group {
    leader: i32,
    mark: Vec<u8>,
    path: PathBuf,
    kept: u64,
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut killed = vec![];
        if self.leader > 1 {
            killed = procs::signal_tree(self.leader, Signal::SIGKILL);
            // Usually the group has no members left.
            let _ = killpg(Pid::from_raw(self.leader), Signal::SIGKILL);
        }
        killed.extend(procs::end_marked(&self.mark));
        wait_ended(&killed);
        // A file that cannot be shortened only stays long.
        let _ = shorten(&self.path, self.kept);
    }
}

/// Shortens a file that is longer than `kept` to its beginning and its end, in place, which also works on a full
/// disk.
fn shorten(path: &Path, kept: u64) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom, Write};
    let mut file = File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    if length <= kept {
        return Ok(());
    }
    let note = |left_out: u64| format!("\n[swarm: {left_out} bytes omitted]\n");
    let room = kept.saturating_sub(note(length).len() as u64);
    let (head, end) = (room / 2, room - room / 2);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(length - end))?;
    (&file).take(end).read_to_end(&mut tail)?;
    file.seek(SeekFrom::Start(head))?;
    file.write_all(note(length - head - end).as_bytes())?;
    file.write_all(&tail)?;
    let now = file.stream_position()?;
    file.set_len(now)
}

/// How a check ended.
enum CheckEnd {
    Exited,
    OutOfTime,
    LoopOver,
    TooMuch,
}

impl Running {
    async fn finish(mut self) -> Result<CheckResult> {
        let end = self.wait().await;
        if !matches!(end, CheckEnd::Exited) {
            self.terminate().await;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        // Until the shell is reaped, no other process can get its pid. The others may need a moment to exit.
        let group = self.group;
        drop(tokio::task::spawn_blocking(move || drop(group)).await);
        let status = self.child.wait().await.map_err(|e| Error::system("cannot wait for a check", e))?;
        let printed = tail(&self.path);
        let (passed, note) = match end {
            CheckEnd::Exited if status.success() => (true, None),
            CheckEnd::Exited => (false, ended_by(status)),
            CheckEnd::OutOfTime => (false, Some(format!("Timeout after {}s", self.limit.as_secs()))),
            CheckEnd::LoopOver => (false, Some(format!("ended: {TIME_OVER}"))),
            CheckEnd::TooMuch => {
                (false, Some(format!("ended: it printed more than {} MiB", MAX_PRINTED_BYTES >> 20)))
            }
        };
        let output = match note {
            Some(note) if printed.is_empty() => note,
            Some(note) => format!("{printed}\n{note}"),
            None => printed,
        };
        let output = last_characters(&output, MAX_OUTPUT_CHARS).to_owned();
        Ok(CheckResult {
            name: self.command,
            passed,
            output,
            seconds,
            cut: matches!(end, CheckEnd::LoopOver),
            tests: None,
        })
    }

    async fn wait(&mut self) -> CheckEnd {
        let own = self.started + self.limit;
        let (until, end) = match self.until {
            Some(until) if until < own => (until, CheckEnd::LoopOver),
            _ => (own, CheckEnd::OutOfTime),
        };
        loop {
            let look = (Instant::now() + CHECK_POLL_INTERVAL).min(until);
            tokio::select! {
                () = over(&mut self.child, self.group.leader) => return CheckEnd::Exited,
                () = sleep_until(look) => {
                    if Instant::now() >= until {
                        return end;
                    }
                    if self.path.metadata().is_ok_and(|file| file.len() > MAX_PRINTED_BYTES) {
                        return CheckEnd::TooMuch;
                    }
                }
            }
        }
    }

    /// Sends SIGTERM to everything. What remains is killed when the group is dropped. The outer shell does not get
    /// the signal: as long as it lives, the processes below it can be found.
    async fn terminate(&mut self) {
        procs::signal_tree(self.group.leader, Signal::SIGTERM);
        drop(timeout(CHECK_KILL_GRACE, over(&mut self.child, self.group.leader)).await);
    }
}

/// Waits until the shell has ended; on Linux, without reaping it.
async fn over(child: &mut Child, pid: i32) {
    if cfg!(target_os = "linux") {
        procs::wait_gone(pid).await;
    } else {
        drop(child.wait().await);
    }
}

fn ended_by(status: ExitStatus) -> Option<String> {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => Some(format!("ended by signal {signal}")),
        (None, Some(code)) => Some(format!("exit status {code}")),
        (None, None) => None,
    }
}

/// The end of the output: enough bytes for the characters that are kept.
pub(crate) fn tail(path: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(4 * MAX_OUTPUT_CHARS as u64)))?;
        file.read_to_end(&mut bytes)
    });
    if read.is_err() {
        return "(its output could not be read)".into();
    }
    let text = strip(&String::from_utf8_lossy(&bytes));
    let lines: Vec<String> = text.lines().map(printable).collect();
    lines.join("\n").trim_end().to_owned()
}
