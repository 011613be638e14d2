//! `swarm hook status-line`: reads the account's usage limits from the input of Claude Code's status line, and shows
//! the user's own status line.
//!
//! swarm passes this command to the agents that it starts, which hides the `statusLine` of the user's settings. So the
//! command runs the user's, with the same input, and prints its output. Claude Code calls it often: the daemon gets a
//! report only if the input has limits, and the user's command runs meanwhile. Used by [`super::run`]. Deliberately
//! absent: a status line of swarm's own.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use swarm_state::hook::HookInput;
use swarm_state::quota::claude_limits;

use super::command::SHELL_NAME;
use super::report::{WorkerPlace, report_to_daemon};
use crate::paths::Paths;
use crate::protocol::HookNews;
use crate::store::read_bounded;

/// How long the user's command may take. Claude Code itself waits about as long.
const USER_COMMAND_TIMEOUT: Duration = Duration::from_millis(4500);

/// How often to look whether Claude Code has gone away, or has ended this call.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The maximum size of a settings file.
pub(super) const MAX_CLAUDE_SETTINGS_BYTES: u64 = 4 << 20;

/// How much of the output is passed on.
const MAX_STATUS_LINE_BYTES: u64 = 64 << 10;

/// The variable with the command from the user's own `--settings`, whose value swarm replaces.
pub(super) const COMMAND_VARIABLE: &str = "SWARM_STATUS_LINE";

/// The variable that marks the user's command, which must not start itself again.
const RUNNING_VARIABLE: &str = "SWARM_STATUS_LINE_RUNS";

/// Reports the limits and returns the user's status line; `None` for an empty one.
pub(super) fn show(bytes: &[u8], var: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let started = if var(RUNNING_VARIABLE).is_some() {
        None
    } else {
        command(&value, var).and_then(|c| start(&c, bytes))
    };
    let figures = claude_limits(&value, chrono::Utc::now().timestamp());
    if !figures.is_empty()
        && let (Ok(paths), Some(place), Some(input)) =
            (Paths::from_env(), WorkerPlace::of(var), HookInput::parse(bytes))
    {
        report_to_daemon(&paths, &place, &input, Some(HookNews::Limits { figures }));
    }
    started.and_then(StatusCommand::output)
}

/// The user's command: of `--settings`, else of the project's settings, else of the user's own.
fn command(input: &Value, var: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    let passed = var(COMMAND_VARIABLE).filter(|command| !command.is_empty());
    let found = match passed {
        Some(command) => command.into_string().ok(),
        None => setting(&settings_files(input, var))?["command"].as_str().map(str::to_owned),
    };
    found.filter(|command| !command.trim().is_empty() && !is_ours(command))
}

/// The settings files of Claude Code, those that count first.
fn settings_files(input: &Value, var: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let dir = |name: &str| var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let named = ["/workspace/project_dir", "/cwd"].iter().find_map(|at| input.pointer(at)?.as_str());
    let project = dir("CLAUDE_PROJECT_DIR").or_else(|| named.map(PathBuf::from));
    let user = dir("CLAUDE_CONFIG_DIR").or_else(|| Some(dir("HOME")?.join(".claude")));
    files(project.as_deref(), user.as_deref())
}

/// The same for a project and a configuration directory.
pub(super) fn files(project: Option<&Path>, user: Option<&Path>) -> Vec<PathBuf> {
    let of_project =
        project.map(|dir| [".claude/settings.local.json", ".claude/settings.json"].map(|f| dir.join(f)));
    of_project.into_iter().flatten().chain(user.map(|dir| dir.join("settings.json"))).collect()
}

/// The `statusLine` of the first file that has one.
pub(super) fn setting(files: &[PathBuf]) -> Option<Value> {
    files.iter().find_map(|file| {
        let bytes = read_bounded(file, MAX_CLAUDE_SETTINGS_BYTES).ok()?;
        let settings: Value = serde_json::from_slice(&bytes).ok()?;
        settings.get("statusLine").filter(|line| line.is_object()).cloned()
    })
}

/// Whether a command is this one.
fn is_ours(command: &str) -> bool {
    command.contains(SHELL_NAME) || command.contains("hook status-line")
}

struct StatusCommand {
    child: Child,
    output: mpsc::Receiver<Vec<u8>>,
    started: Instant,
    /// The process that called the hook.
    host: Pid,
}

/// Starts the user's command in a process group of its own.
fn start(command: &str, input: &[u8]) -> Option<StatusCommand> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).env(RUNNING_VARIABLE, "1").env_remove(COMMAND_VARIABLE).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = shell.spawn().ok()?;
    let (mut stdin, stdout, input) = (child.stdin.take()?, child.stdout.take()?, input.to_vec());
    // A command that does not read its input ends the writing with an error.
    thread::spawn(move || drop(stdin.write_all(&input)));
    let (done, output) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = vec![];
        drop(stdout.take(MAX_STATUS_LINE_BYTES).read_to_end(&mut bytes));
        drop(done.send(bytes));
    });
    Some(StatusCommand { child, output, started: Instant::now(), host: nix::unistd::getppid() })
}

impl StatusCommand {
    /// Waits for the output. A command that takes too long, or whose status line is no longer read, is killed with
    /// all that it started in its process group.
    fn output(mut self) -> Option<String> {
        let bytes = loop {
            match self.output.recv_timeout(POLL_INTERVAL) {
                Ok(bytes) => break Some(bytes),
                Err(mpsc::RecvTimeoutError::Disconnected) => break None,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            if self.started.elapsed() > USER_COMMAND_TIMEOUT || nix::unistd::getppid() != self.host {
                break None;
            }
        };
        let left = USER_COMMAND_TIMEOUT.saturating_sub(self.started.elapsed());
        let status = bytes.is_some().then(|| self.wait(left)).flatten();
        if status.is_none() {
            if let Some(leader) = i32::try_from(self.child.id()).ok().filter(|pid| *pid > 1) {
                let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
            }
            drop(self.child.wait());
        }
        // Claude Code shows nothing of a command that failed.
        let bytes = bytes.filter(|_| status == Some(true))?;
        let text = String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Whether the command succeeded; `None` if it has not ended in time.
    fn wait(&mut self, limit: Duration) -> Option<bool> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status.success()),
                Ok(None) if began.elapsed() < limit => thread::sleep(Duration::from_millis(2)),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use serde_json::json;

    use super::*;

    /// A home directory and a project, with settings files.
    fn found(files: &[(&str, Value)], given: Option<&str>) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for (file, line) in files {
            let file = dir.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, json!({"model": "x", "statusLine": line}).to_string()).unwrap();
        }
        let mut vars = BTreeMap::from([("HOME", dir.path().join("home").into_os_string())]);
        if let Some(given) = given {
            vars.insert(COMMAND_VARIABLE, given.into());
        }
        let input = json!({"workspace": {"project_dir": dir.path().join("project")}});
        command(&input, &|name| vars.get(name).cloned())
    }

    fn line(command: &str) -> Value {
        json!({"type": "command", "command": command})
    }

    #[test]
    fn the_command_of_the_nearest_settings_is_run() {
        let user = ("home/.claude/settings.json", line("user"));
        let project = ("project/.claude/settings.json", line("project"));
        let local = ("project/.claude/settings.local.json", line("local"));
        let none = ("project/.claude/settings.json", Value::Null);
        for (files, given, expected) in [
            (vec![], None, None),
            (vec![user.clone()], None, Some("user")),
            (vec![user.clone(), none], None, Some("user")),
            (vec![user.clone(), project.clone()], None, Some("project")),
            (vec![user.clone(), project.clone(), local.clone()], None, Some("local")),
            (vec![user, project, local], Some("given"), Some("given")),
            (vec![("home/.claude/settings.json", line(" "))], None, None),
            (vec![("home/.claude/settings.json", line("swarm hook status-line"))], None, None),
            (vec![("home/.claude/settings.json", json!({"type": "command"}))], None, None),
        ] {
            assert_eq!(found(&files, given).as_deref(), expected, "{files:?} {given:?}");
        }
    }

    #[test]
    fn the_command_gets_the_input_and_its_output_is_returned() {
        let output = |command: &str| start(command, b"{\"a\":1}").unwrap().output();
        assert_eq!(output("cat; echo; echo second").as_deref(), Some("{\"a\":1}\nsecond"));
        assert_eq!(output("true"), None);
        assert_eq!(output("echo shown; exit 3"), None);
        assert_eq!(output("exec 0<&-; echo x").as_deref(), Some("x"));
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut hanging =
            start(&format!("sleep 1000 & echo $! > {}; wait", file.path().display()), b"{}").unwrap();
        let pid = loop {
            if let Ok(pid) = fs::read_to_string(file.path()).unwrap().trim().parse::<i32>() {
                break pid;
            }
            thread::yield_now();
        };
        hanging.started = Instant::now().checked_sub(USER_COMMAND_TIMEOUT).unwrap();
        assert_eq!(hanging.output(), None);
        while crate::procs::is_alive(pid) {
            thread::yield_now();
        }
    }
}
