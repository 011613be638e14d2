//! The temporary directory of the demo, with its own SWARM_DIR, daemon and tmux server, and its removal.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::error::{Error, Result};
use crate::paths::{Paths, own_program};
use crate::procs;
use crate::shell::quote_path;
use crate::tmux::{Tmux, TmuxOptions};

const CLEANUP_STEP_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Creates a project with a prompt and a task list, and an empty SWARM_DIR next to it.
    pub(super) fn build(prompt: &str, todo: &str, tasks: &str) -> Result<Self> {
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

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn paths(&self) -> Paths {
        Paths::new(self.root.join("swarm"))
    }

    /// A command as it must be typed in another terminal.
    pub(super) fn in_another_terminal(&self, command: &str) -> String {
        format!("SWARM_DIR={} {command}", quote_path(self.paths().root()))
    }

    /// Returns a swarm command in this workspace. It has its own process group, so that Ctrl-C reaches only the demo.
    pub(super) fn swarm(&self) -> Result<Command> {
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
    pub(super) async fn remove_all(self) -> Result<()> {
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

/// Creates a new directory that other users cannot read.
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
