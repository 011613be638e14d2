//! `swarm demo`: run a whole loop with the built-in fake agent, and explain it.
//!
//! Runs the commands that a user would type, as processes, in a temporary directory with its own daemon and tmux
//! server. Everything is ended and removed at the end, also after an error or Ctrl-C. The output of the commands is
//! compared with the explanations: the demo exits 0 only if everything happened as explained. Used by `main`.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::error::{Error, Result};
use crate::out::{Color, CommandResult, Failure, Out};
use crate::paths::{Paths, own_program};
use crate::procs;
use crate::runtime::{CaughtSignals, block_on};
use crate::shell::quote_path;
use crate::tmux::{Tmux, TmuxOptions};

pub mod agent;

use agent::{MARKER, TASKS, TODO};

const DEMO_TIMEOUT: Duration = Duration::from_secs(55);

const PROMPT: &str = "\
study TODO.md and do the first open task
tick it off when it is done
print ALL TASKS DONE when no task is left
";

const SPAWN: &str = "spawn --name demo --ralph --prompt-file PROMPT.md --max-iterations 10";

/// The lines that the follower must print, in this order. Other lines may come between them.
const EXPECTED_LINES: [&str; 9] = [
    "spawned demo (tmux: swarm:demo) [ralph mode: iteration 1/10]",
    "[ralph] demo: starting iteration 1/10",
    "[ralph] demo: iteration 1 completed (exit: 0",
    "[ralph] demo: iteration 2 failed (exit: 1), retrying in 1s (attempt 1/5)",
    "[ralph] demo: starting iteration 3/10",
    "[ralph] demo: iteration 3 completed (exit: 0",
    "[ralph] demo: starting iteration 4/10",
    "[ralph] demo: done pattern matched, stopping loop",
    "[ralph] demo: loop complete after 4 iterations",
];

/// The line after which the status page is shown.
const STATUS_AFTER: &str = "[ralph] demo: starting iteration 3/10";

/// Runs the demo. The error is that of the first step that failed or had unexpected output.
pub fn run(out: Out) -> CommandResult {
    block_on(perform(out))?
}

async fn perform(out: Out) -> CommandResult {
    let mut signals = CaughtSignals::new(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])?;
    let workspace = Workspace::build(PROMPT, TODO, TASKS)?;
    let result = tokio::select! {
        result = timeout(DEMO_TIMEOUT, run_steps(out, &workspace)) => result.unwrap_or_else(|_| {
            Err(Error::invalid(format!("the demo took over {} s", DEMO_TIMEOUT.as_secs())).into())
        }),
        signal = signals.next() => Ok(128 + signal as u8),
    };
    // The cleanup must be completed, whatever keys are pressed.
    let removed = workspace.remove_all().await;
    let status = result?;
    removed?;
    if status == 0 {
        epilogue(out)?;
    }
    Ok(status)
}

async fn run_steps(out: Out, workspace: &Workspace) -> CommandResult {
    narrate(
        out,
        "This is a loop (a \"ralph loop\"): swarm starts an agent again and again, each time with a fresh",
    )?;
    narrate(out, "context and the same prompt file. The results of a run are in the files of the project.")?;
    heading(out, "The agent in this demo is a built-in fake. Its prompt, PROMPT.md:")?;
    out.lines(&indented(PROMPT))?;
    heading(out, "Its task list, TODO.md:")?;
    out.lines(&indented(TASKS))?;
    heading(out, "Start the loop and follow it. Your own agent would be after `--`:")?;
    command_line(out, &format!("swarm {SPAWN} --done-pattern '{MARKER}' -- AGENT"))?;
    follow(out, workspace).await?;
    heading(out, "Every task is done:")?;
    let todo = std::fs::read_to_string(workspace.project().join(TODO));
    let todo = todo.map_err(|e| Error::system("cannot read the demo's TODO.md", e))?;
    out.lines(&indented(&todo))?;
    heading(out, "The loop has a log, to be read the next morning:")?;
    command_line(out, "swarm ralph logs demo")?;
    let log = output(workspace, &["ralph", "logs", "demo"]).await?;
    out.lines(&indented(&log))?;
    if todo.contains("[ ]") {
        return Err(unexpected("a task is still open", &todo).into());
    }
    let failed = "[FAIL] iteration 2 exit=1 attempt=1/5 backoff=1s";
    if !log.contains(failed) || !log.contains("[DONE] loop complete after 4 iterations reason=done_pattern") {
        return Err(unexpected("unexpected log", &log).into());
    }
    Ok(0)
}

/// Runs the follower, prints and explains its lines, and compares them with [`EXPECTED_LINES`].
async fn follow(out: Out, workspace: &Workspace) -> Result<(), Failure> {
    let agent = own_program()?;
    let mut command = workspace.swarm()?;
    command
        .args(SPAWN.split(' '))
        .args(["--prompt-via", "stdin", "--done-pattern", MARKER, "--"])
        .arg(agent)
        .arg("__demo-agent");
    let mut child = spawn(command.stdout(Stdio::piped()))?;
    let Some(stdout) = child.stdout.take() else {
        return Err(Error::invalid("the follower has no output").into());
    };
    let mut lines = BufReader::new(stdout).lines();
    let mut expected_lines = EXPECTED_LINES.iter().peekable();
    let mut printed = String::new();
    let next = |e| Error::system("cannot read the output of the follower", e);
    while let Some(line) = lines.next_line().await.map_err(next)? {
        out.line(&format!("  {line}"))?;
        if expected_lines.next_if(|expected| line.starts_with(**expected)).is_some() {
            explain(&line).map_or(Ok(()), |words| narrate(out, words))?;
            if line == STATUS_AFTER {
                show_status(out, workspace).await?;
            }
        }
        printed.push_str(&line);
        printed.push('\n');
    }
    let status = child.wait().await.map_err(|e| Error::system("cannot wait for the follower", e))?;
    match (expected_lines.next(), status.code()) {
        (None, Some(0)) => Ok(()),
        (Some(missing), Some(0)) => Err(unexpected(&format!("missing line `{missing}`"), &printed).into()),
        (_, code) => {
            let code = code.map_or_else(|| "a signal".to_owned(), |c| format!("status {c}"));
            Err(unexpected(&format!("the follower ended with {code}"), &printed).into())
        }
    }
}

fn explain(line: &str) -> Option<&'static str> {
    if line.contains("iteration 2 failed") {
        Some(
            "The agent failed, as agents sometimes do. The loop retries after a second. After the next failure in a row it\nwould wait two seconds, then four; the fifth would end the loop.",
        )
    } else if line.contains("done pattern matched") {
        Some("The agent printed the text of the done pattern.")
    } else {
        None
    }
}

async fn show_status(out: Out, workspace: &Workspace) -> Result<(), Failure> {
    heading(out, "Meanwhile, from any other terminal (SWARM_DIR names the demo's own directory):")?;
    command_line(out, &workspace.in_another_terminal("swarm ralph status demo"))?;
    let page = output(workspace, &["ralph", "status", "demo"]).await?;
    out.lines(&indented(&page))?;
    if !page.contains("Status: running") || !page.contains("Total failures: 1") {
        return Err(unexpected("unexpected status page", &page).into());
    }
    narrate(out, "This would show the agent's terminal:")?;
    command_line(out, &workspace.in_another_terminal("swarm attach demo"))?;
    narrate(out, "The loop goes on:")
}

fn epilogue(out: Out) -> Result<(), Failure> {
    heading(out, "The demo is complete. Its files, daemon and tmux server were removed.")?;
    heading(out, "Next, with your own agent, in your project's directory:")?;
    command_line(
        out,
        "swarm ralph init          # writes PROMPT.md and TODO.md, and prints the next command",
    )?;
    command_line(out, "$EDITOR TODO.md           # replace the example tasks with your own")?;
    command_line(out, "swarm spawn --help        # Permissions: options with which an agent does not ask")?;
    command_line(out, "swarm attach NAME         # from another terminal: watch it work")
}

fn heading(out: Out, words: &str) -> Result<(), Failure> {
    out.line("")?;
    narrate(out, words)
}

fn narrate(out: Out, words: &str) -> Result<(), Failure> {
    words.lines().try_for_each(|line| out.line(&out.paint(Color::Bold, line)))
}

fn command_line(out: Out, typed: &str) -> Result<(), Failure> {
    out.line(&out.paint(Color::Dim, &format!("  $ {typed}")))
}

fn indented(text: &str) -> Vec<String> {
    text.lines().map(|line| format!("  {line}")).collect()
}

async fn output(workspace: &Workspace, args: &[&str]) -> Result<String> {
    let mut command = workspace.swarm()?;
    let child = spawn(command.args(args).stdout(Stdio::piped()))?;
    let output = child.wait_with_output().await.map_err(|e| Error::system("cannot wait for swarm", e))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(unexpected(&format!("`swarm {}` failed", args.join(" ")), &text))
    }
}

fn spawn(command: &mut Command) -> Result<tokio::process::Child> {
    command.kill_on_drop(true).spawn().map_err(|e| Error::system("cannot run swarm", e))
}

fn unexpected(what: &str, seen: &str) -> Error {
    Error::invalid(format!("unexpected result of the demo: {what}"))
        .hint(format!("output:\n{}", seen.trim_end()))
}

const CLEANUP_STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// The temporary directory of the demo, with its own SWARM_DIR, daemon and tmux server.
struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Creates a project with a prompt and a task list, and an empty SWARM_DIR next to it.
    fn build(prompt: &str, todo: &str, tasks: &str) -> Result<Self> {
        let workspace = Self { root: fresh_directory()? };
        let made = || -> std::io::Result<()> {
            DirBuilder::new().mode(0o700).create(workspace.project())?;
            std::fs::write(workspace.project().join("PROMPT.md"), prompt)?;
            std::fs::write(workspace.project().join(todo), tasks)
        };
        if let Err(e) = made() {
            let error = Error::system(format!("cannot build the demo in {}", workspace.root.display()), e);
            let _ = std::fs::remove_dir_all(&workspace.root);
            return Err(error);
        }
        Ok(workspace)
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn paths(&self) -> Paths {
        Paths::new(self.root.join("swarm"))
    }

    /// A command as it must be typed in another terminal.
    fn in_another_terminal(&self, command: &str) -> String {
        format!("SWARM_DIR={} {command}", quote_path(self.paths().root()))
    }

    /// Returns a swarm command in this workspace. It has its own process group, so that Ctrl-C reaches only the demo.
    fn swarm(&self) -> Result<Command> {
        let mut command = Command::new(own_program()?);
        command
            .current_dir(self.project())
            .env("SWARM_DIR", self.root.join("swarm"))
            .env("XDG_CONFIG_HOME", self.root.join("config"))
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .process_group(0);
        Ok(command)
    }

    /// Ends the daemon and the tmux server, and removes the directory. All steps are tried; the first error is
    /// returned.
    async fn remove_all(self) -> Result<()> {
        let paths = self.paths();
        let quiet = |mut command: Command| async move {
            command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
            timeout(CLEANUP_STEP_TIMEOUT, command.status()).await
        };
        for args in [&["kill", "--all"][..], &["daemon", "stop"]] {
            // Without a daemon there is no worker, and `kill` must not start one.
            if paths.socket().exists() {
                let mut command = self.swarm()?;
                command.args(args);
                let _ = quiet(command).await;
            }
        }
        let daemon = end_daemon(&paths).await;
        let server = Tmux::new(TmuxOptions::own(&paths));
        let server = if paths.tmux_socket().exists() { server.kill_server().await } else { Ok(()) };
        for socket in [paths.socket(), paths.tmux_socket()] {
            let _ = std::fs::remove_file(socket);
        }
        let removed = remove(&self.root).await;
        daemon.and(server).and(removed)
    }
}

fn fresh_directory() -> Result<PathBuf> {
    let parent = short_temporary_directory();
    let failed = |e| Error::system(format!("cannot make a directory in {}", parent.display()), e);
    for attempt in 0..100_u32 {
        let root = parent.join(format!("swarm-demo-{}-{attempt}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&root) {
            Ok(()) => return Ok(root),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(e)),
        }
    }
    Err(failed(std::io::ErrorKind::AlreadyExists.into()))
}

/// Returns the parent directory. Its path must be short, because a socket's path is limited.
fn short_temporary_directory() -> PathBuf {
    let usual = std::env::temp_dir();
    if usual.as_os_str().len() <= 60 { usual } else { Path::new("/tmp").to_path_buf() }
}

/// Kills a daemon that did not stop, by the process id in its lock file.
async fn end_daemon(paths: &Paths) -> Result<()> {
    let Ok(text) = std::fs::read_to_string(paths.lock()) else { return Ok(()) };
    let first = text.lines().next().unwrap_or_default();
    let Some(pid) = first.trim().parse().ok().filter(|pid| *pid > 1).map(Pid::from_raw) else {
        return Ok(());
    };
    for signal in [None, Some(Signal::SIGTERM), Some(Signal::SIGKILL)] {
        if signal.is_some() && !is_ours(pid) {
            return Ok(());
        }
        for _ in 0..30 {
            if !procs::is_alive(pid.as_raw()) {
                return Ok(());
            }
            sleep(Duration::from_millis(50)).await;
        }
        let _ = signal.map(|signal| kill(pid, signal));
    }
    Ok(())
}

/// Whether the process is a swarm daemon, since process ids are reused.
fn is_ours(pid: Pid) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).map_or(cfg!(not(target_os = "linux")), |line| {
        line.split(|b| *b == 0).any(|word| word == b"--ready-on-stdout")
    })
}

/// Removes the directory, with retries since files may still be written in the meantime.
async fn remove(root: &Path) -> Result<()> {
    let mut last = Ok(());
    for _ in 0..20 {
        last = match std::fs::remove_dir_all(root) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => other,
        };
        sleep(Duration::from_millis(50)).await;
    }
    last.map_err(|e| Error::system(format!("cannot remove {}", root.display()), e))
}
