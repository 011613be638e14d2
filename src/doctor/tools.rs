//! Checks tmux, its server, git, the sandbox, the resource caps, the Slurm to which this machine submits jobs, and the
//! copy of swarm that the daemon starts in panes and passes to agents as their hook.

use std::path::Path;
use std::time::Duration;

use swarm_state::caps::Cap;
use swarm_state::host::HostSpec;
use swarm_state::model::Pane;
use swarm_state::notice::counted;
use tokio::time::timeout;

use super::check::{Check, Level, Observed};
use crate::git;
use crate::hosts::slurm::check_tracking;
use crate::paths::Paths;
use crate::procs::{self, can_execute};
use crate::settings::Settings;
use crate::shell::quote_path;
use crate::store::DaemonLock;
use crate::tmux::{ServerSurvey, Tmux, TmuxOptions, Version, usable_version};
use crate::wrapper::available_caps;

pub(super) async fn tmux() -> Check {
    match usable_version().await {
        Err(error) => Check::of("tmux", error, "install tmux 3.2 or later, for example: apt install tmux"),
        Ok(said) => {
            let faults = Version::parse(&said).map(known_faults).unwrap_or_default();
            let known = if faults.is_empty() {
                String::new()
            } else {
                format!("; known faults with workarounds: {}", faults.join(", "))
            };
            Check::ok("tmux", format!("version {said}{known}"))
        }
    }
}

/// Known faults of a version. swarm works around them; other users of tmux may be affected.
fn known_faults(version: Version) -> Vec<&'static str> {
    let mut faults = vec![];
    if version < Version::new(3, 4) {
        faults.push("a paste into a dead pane ends the server");
    }
    if version < Version::new(3, 6) {
        faults.push("exit statuses get lost");
        faults.push("captures in control mode leak memory");
    }
    if version >= Version::new(3, 3) && version < Version::new(3, 7) {
        faults.push("a global 'window-size manual' ends the server");
    }
    faults
}

/// Checks our own tmux server, given the result for the installed tmux.
pub(super) fn server(observed: &Observed, tmux: &Check) -> Check {
    let socket = observed.paths.tmux_socket();
    match &observed.server {
        // This proves nothing about the server, so it must not be killed.
        ServerSurvey::Silent(_) if tmux.level == Level::Fail => {
            let message = "unknown without a working tmux; agents keep running";
            Check::fail("tmux-server", message, tmux.hint.clone().unwrap_or_default())
        }
        ServerSurvey::Alive { pid, rows } => {
            let live = rows.iter().filter(|row| !row.dead).count();
            Check::ok("tmux-server", format!("it runs (pid {pid}), {}", counted(live, "live pane")))
        }
        ServerSurvey::Empty { pid } => {
            let message =
                format!("the tmux server (pid {pid}) hangs after a request to exit; it has no panes");
            Check::warn(
                "tmux-server",
                message,
                format!("the next spawn replaces it; or kill it: kill -9 {pid}"),
            )
        }
        ServerSurvey::Silent(why) => {
            let message = format!("the server at {} does not respond: {why}", socket.display());
            Check::fail("tmux-server", message, silent_fix(observed))
        }
        ServerSurvey::Gone => match known(observed) {
            Some(pane) => {
                let message =
                    format!("it runs (pid {}), but its socket {} is gone", pane.server_pid, socket.display());
                Check::fail(
                    "tmux-server",
                    message,
                    format!("to make it again: kill -USR1 {}", pane.server_pid),
                )
            }
            None => match Tmux::new(TmuxOptions::own(&observed.paths)).started_server() {
                Some(pid) => {
                    let message = format!(
                        "it runs (pid {pid}), but its socket {} is gone and no record names it: was {} removed?",
                        socket.display(),
                        observed.paths.root().display()
                    );
                    Check::fail("tmux-server", message, "swarm ls finds its agents again, under their names")
                }
                None => Check::ok("tmux-server", "it does not run; the first spawn starts it"),
            },
        },
    }
}

fn silent_fix(observed: &Observed) -> String {
    match known(observed).map(|pane| pane.server_pid) {
        Some(pid) if procs::is_stopped(pid) => {
            format!("it was stopped, but its agents keep running; to continue it: kill -CONT {pid}")
        }
        Some(pid) => format!(
            "its agents keep running; if it never responds, this ends it with all of them, and their \
             loops can be resumed: kill -9 {pid}"
        ),
        None => {
            format!(
                "to see which process has it: grep -aF {} /proc/net/unix",
                quote_path(&observed.paths.tmux_socket())
            )
        }
    }
}

/// The last known pane in our server, if that server process still lives.
fn known(observed: &Observed) -> Option<&Pane> {
    let ours = observed.disk.records.iter().filter(|record| record.spec.tmux_socket.is_none());
    let is_server = |pid: i32| procs::is_alive(pid) && procs::name(pid).is_some_and(|n| n.contains("tmux"));
    ours.filter_map(|record| record.pane.as_ref()).find(|pane| is_server(pane.server_pid))
}

/// Shows how resource caps would be enforced.
pub(super) fn caps() -> Check {
    let found = available_caps();
    let text = [("memory", Cap::Memory), ("cpus", Cap::Cpus), ("pids", Cap::Pids)].map(|(word, cap)| {
        format!("{word} ({})", found.get(&cap).map_or("cannot be enforced", |by| by.text()))
    });
    Check::ok("caps", text.join(", "))
}

pub(super) async fn sandbox() -> Check {
    match tokio::task::spawn_blocking(crate::sandbox::detect_bwrap).await {
        Ok(Ok(program)) => Check::ok("sandbox", format!("bwrap works ({})", program.display())),
        Ok(Err(error)) => {
            Check::warn("sandbox", error.message, error.hint.unwrap_or_else(|| "man swarm-sandbox".into()))
        }
        Err(error) => Check::fail("sandbox", error.to_string(), "swarm doctor"),
    }
}

/// Asks Docker Sandbox for its sandboxes. A missing one is not a fault: few machines have it.
pub(super) async fn docker_sandbox() -> Check {
    match tokio::task::spawn_blocking(crate::sandbox::docker::detect).await {
        Ok(Ok(program)) => {
            Check::ok("docker-sandbox", format!("docker sandbox works ({})", program.display()))
        }
        Ok(Err(error)) => {
            Check::ok("docker-sandbox", format!("{}; only --sandbox docker needs it", error.message))
        }
        Err(error) => Check::fail("docker-sandbox", error.to_string(), "swarm doctor"),
    }
}

pub(super) async fn git() -> Check {
    let asked = timeout(Duration::from_secs(5), git::version()).await;
    match asked {
        Ok(Ok(version)) => Check::ok("git", format!("version {version}")),
        Ok(Err(error)) => {
            let message = format!("{}; only worktrees need it", error.message);
            Check::warn("git", message, error.hint.unwrap_or_else(|| "install git".to_owned()))
        }
        Err(_) => Check::fail("git", "git does not respond", "see what it waits for: git --version"),
    }
}

/// How long Slurm may take.
const SLURM_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks how Slurm tracks the processes of a job; `None` on a machine that submits no jobs.
pub(super) async fn slurm(paths: &Paths) -> Option<Check> {
    let settings = Settings::load(&paths.user_config(), None, None).unwrap_or_default();
    let submits_here = |host: &HostSpec| host.slurm.is_some() && host.ssh.is_none();
    // Another machine may submit through this one.
    if !settings.hosts.values().any(submits_here) && !paths.slurm_dir().exists() {
        return None;
    }
    let hint = "see which Slurm answers: sinfo";
    Some(match timeout(SLURM_TIMEOUT, check_tracking()).await {
        Ok(Ok(kind)) => Check::ok("slurm", format!("it answers, and tracks jobs with {kind}")),
        Ok(Err(error)) => Check::of("slurm", error, hint),
        Err(_) => Check::fail("slurm", "it does not answer", hint),
    })
}

/// A problem with the daemon's copy of swarm; `None` while no daemon runs.
pub(super) fn helper(paths: &Paths) -> Option<Check> {
    let pid = DaemonLock::holder(paths)?;
    let placed = paths.helper();
    let own = procs::program(i32::try_from(pid).ok()?)?;
    let text = own.to_string_lossy();
    // Linux marks the path of a program that was removed or replaced.
    let (installed, is_gone) = match text.strip_suffix(" (deleted)") {
        Some(path) => (Path::new(path), true),
        None => (own.as_path(), false),
    };
    let shown = installed.display();
    match (can_execute(&placed), can_execute(installed)) {
        (Ok(()), _) if is_gone => {
            let message = format!(
                "the daemon (pid {pid}) was started from {shown}, which was removed or replaced; it uses its \
                 own copy"
            );
            Some(Check::warn("helper", message, "to use the installed version: swarm daemon restart"))
        }
        (Ok(()), _) => None,
        (Err(why), Ok(())) => {
            let message = format!(
                "{} cannot be started ({why}); panes and hooks use {shown} until that is removed",
                placed.display()
            );
            let hint =
                format!("check it and its file system, then start a worker: ls -ld {}", quote_path(&placed));
            Some(Check::warn("helper", message, hint))
        }
        (Err(why), Err(other)) => {
            let message = format!(
                "no worker can be started: neither {} ({why}) nor {shown} ({other}) can be executed",
                placed.display()
            );
            Some(Check::fail("helper", message, "install swarm again, then: swarm daemon restart"))
        }
    }
}
