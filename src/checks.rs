//! Runs checks: the commands that prove that work is done.
//!
//! Each is `sh -c COMMAND` in the worker's directory, in a process group of its own, without input, with the
//! agent's environment (the marks of its worker among it) and a time limit; everything it prints goes straight into a
//! file, so that a check which prints without end costs a disk some space for a while and the daemon nothing: of a long
//! output the beginning and the end are kept. The daemon judges iterations with it, the library's loop too.
//! Deliberately absent: what a failed check means (that is `swarm_state::gates`).
//!
//! A check is not trusted with the life of others: a shell stands between it and this process, so `kill
//! $PPID` ends the check alone, and whatever it started is ended with it. Each is marked by a variable in its
//! environment, which all that it starts inherits: so even what made a session of its own and lost its parents is
//! found, and what a daemon that died left running too ([`sweep`]).

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

#[cfg(test)]
mod tests;

/// How long the processes of a check that is out of time may take to end by themselves.
const GRACE: Duration = Duration::from_secs(2);

/// What a check may print, bytes; at more it is ended.
pub const MAX_PRINTED: u64 = 256 << 20;

/// What is kept of it, bytes: its beginning and its end, and a line that says what is missing between them.
pub const KEPT: u64 = 8 << 20;

/// How often the size of its output is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The variable that marks a check and all that it starts: the file that it prints into.
const MARK: &str = "SWARM_CHECK";

/// Ends what is left of checks that printed into some folder below `folder`: of those of a daemon that died.
/// Says how many processes that were. Nobody else may run checks there meanwhile. It blocks, for a moment.
pub(crate) fn sweep(folder: &Path) -> usize {
    let ended = procs::end_marked(&mark(&folder.join("")));
    let until = std::time::Instant::now() + GRACE;
    // What is dying still holds its files and ports. What does not die hangs in the kernel: nobody can help that.
    while ended
        .iter()
        .any(|proc| procs::start_time(proc.pid) == Some(proc.start_time) && procs::is_alive(proc.pid))
        && std::time::Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    ended.len()
}

/// What stands in the environment of a check that prints into a file.
pub(crate) fn mark(path: &Path) -> Vec<u8> {
    [MARK.as_bytes(), b"=", path.as_os_str().as_encoded_bytes()].concat()
}

/// How and where checks run.
#[derive(Clone)]
pub struct Plan<'a> {
    /// The commands, in order.
    pub commands: &'a [String],
    /// The directory they run in.
    pub cwd: &'a Path,
    /// Their whole environment.
    pub env: &'a BTreeMap<String, String>,
    /// How long each may take.
    pub limit: Duration,
    /// When the loop's own time is over: what runs then is ended, and nothing more is started.
    pub until: Option<Instant>,
    /// How many run side by side; at least 1.
    pub jobs: usize,
    /// The folder for what they print: `check-1.txt`, `check-2.txt`, …
    pub folder: &'a Path,
    /// How many bytes of what each prints are kept, as [`KEPT`] is meant.
    pub kept: u64,
    /// Hears of each as it starts and ends.
    pub told: Told<'a>,
}

/// Somebody who hears of checks.
pub type Told<'a> = &'a (dyn Fn(Step<'_>) + Send + Sync);

/// What there is to hear of a check.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// This command runs now.
    Started(&'a str),
    /// It came to this.
    Ended(&'a CheckResult),
}

impl Plan<'_> {
    /// Runs all of them, also after one failed. The results stand in the order of the commands.
    ///
    /// # Errors
    ///
    /// The folder cannot be written or no process can be started: that says nothing about the work.
    pub async fn run(&self) -> Result<Vec<CheckResult>> {
        let mut waiting = self.commands.iter().enumerate();
        let mut running = JoinSet::new();
        let mut results = Vec::new();
        loop {
            while running.len() < self.jobs.max(1)
                && let Some((index, command)) = waiting.next()
            {
                if self.until.is_some_and(|until| Instant::now() >= until) {
                    let result = CheckResult::not_run(command);
                    (self.told)(Step::Ended(&result));
                    results.push((index, result));
                    continue;
                }
                let check = self.start(index, command)?;
                (self.told)(Step::Started(command));
                running.spawn(async move { (index, check.finish().await) });
            }
            match running.join_next().await {
                None => break,
                Some(Ok((index, result))) => {
                    let result = result?;
                    (self.told)(Step::Ended(&result));
                    results.push((index, result));
                }
                Some(Err(error)) => return Err(Error::system("a check was not waited for", error)),
            }
        }
        results.sort_by_key(|(index, _)| *index);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    fn start(&self, index: usize, command: &str) -> Result<Running> {
        let path = self.folder.join(format!("check-{}.txt", index + 1));
        let trouble = |e| Error::system(format!("cannot run the check '{command}'"), e);
        let mut private = File::options();
        // What is written late, while the output is being shortened, goes to its end.
        private.write(true).create(true).truncate(true).custom_flags(nix::libc::O_APPEND).mode(0o600);
        let file = private.open(&path).map_err(trouble)?;
        let mut shell = Command::new("sh");
        // The outer shell has more to do after the inner one, so it cannot become it.
        shell.args(["-c", "sh -c \"$1\"; exit $?", "sh", command]);
        shell
            .current_dir(self.cwd)
            .env_clear()
            .envs(self.env)
            .env(MARK, &path)
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

/// A check that runs.
struct Running {
    command: String,
    path: PathBuf,
    child: Child,
    group: Group,
    started: Instant,
    limit: Duration,
    until: Option<Instant>,
}

/// Ends all processes of a check, however the wait for it ended, and shortens what they printed.
struct Group {
    leader: i32,
    mark: Vec<u8>,
    path: PathBuf,
    kept: u64,
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.leader > 1 {
            procs::signal_tree(self.leader, Signal::SIGKILL);
            // A group without members is what is hoped for.
            let _ = killpg(Pid::from_raw(self.leader), Signal::SIGKILL);
        }
        procs::end_marked(&self.mark);
        // A file that cannot be shortened is long, and nothing else.
        let _ = shorten(&self.path, self.kept);
    }
}

/// Leaves of a file that is longer than `kept` its beginning and its end, in place: on a full disk too.
fn shorten(path: &Path, kept: u64) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom, Write};
    let mut file = File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    if length <= kept {
        return Ok(());
    }
    let note = |left_out: u64| format!("\n[swarm: {left_out} bytes are left out here]\n");
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

/// How the wait for a check ended.
enum End {
    Exited,
    OutOfTime,
    LoopOver,
    TooMuch,
}

impl Running {
    async fn finish(mut self) -> Result<CheckResult> {
        let end = self.wait().await;
        if !matches!(end, End::Exited) {
            self.terminate().await;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        // While the shell is not reaped, its number can be nobody else's.
        drop(self.group);
        let status = self.child.wait().await.map_err(|e| Error::system("cannot wait for a check", e))?;
        let printed = tail(&self.path);
        let (passed, note) = match end {
            End::Exited if status.success() => (true, None),
            End::Exited => (false, ended_by(status)),
            End::OutOfTime => (false, Some(format!("Timeout after {}s", self.limit.as_secs()))),
            End::LoopOver => (false, Some(format!("ended: {TIME_OVER}"))),
            End::TooMuch => (false, Some(format!("ended: it printed more than {} MiB", MAX_PRINTED >> 20))),
        };
        let output = match note {
            Some(note) if printed.is_empty() => note,
            Some(note) => format!("{printed}\n{note}"),
            None => printed,
        };
        let output = last_characters(&output, MAX_OUTPUT_CHARS).to_owned();
        Ok(CheckResult { name: self.command, passed, output, seconds, cut: matches!(end, End::LoopOver) })
    }

    async fn wait(&mut self) -> End {
        let own = self.started + self.limit;
        let (until, end) = match self.until {
            Some(until) if until < own => (until, End::LoopOver),
            _ => (own, End::OutOfTime),
        };
        loop {
            let look = (Instant::now() + LOOK).min(until);
            tokio::select! {
                () = over(&mut self.child, self.group.leader) => return End::Exited,
                () = sleep_until(look) => {
                    if Instant::now() >= until {
                        return end;
                    }
                    if self.path.metadata().is_ok_and(|file| file.len() > MAX_PRINTED) {
                        return End::TooMuch;
                    }
                }
            }
        }
    }

    /// Asks everything to end; what does not is killed when the group is dropped. The outer shell is not
    /// asked: as long as it lives, what hangs below it can be found.
    async fn terminate(&mut self) {
        procs::signal_tree(self.group.leader, Signal::SIGTERM);
        drop(timeout(GRACE, over(&mut self.child, self.group.leader)).await);
    }
}

/// Waits until the shell has ended, on Linux without reaping it.
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

/// The end of what was printed; enough bytes for the characters that are kept.
fn tail(path: &Path) -> String {
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
