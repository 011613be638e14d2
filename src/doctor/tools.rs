//! Checks tmux, its server, git, the sandbox and the resource caps.

use swarm_state::caps::Cap;
use swarm_state::model::Pane;
use swarm_state::notice::counted;

use super::check::{Check, Level};
use super::observed::Observed;
use crate::shell::quote_path;
use crate::tmux::{ServerSurvey, Tmux, TmuxOptions, Version, usable_version};
use crate::wrapper::available_caps;
use crate::{git, procs};

/// Checks the installed tmux.
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
                format!("it was told to exit and cannot (pid {pid}): it holds no pane and does not respond");
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

/// The fix for a server that does not respond.
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

/// Builds a sandbox once.
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

/// Checks the installed git.
pub(super) async fn git() -> Check {
    let asked = tokio::time::timeout(std::time::Duration::from_secs(5), git::version()).await;
    match asked {
        Ok(Ok(version)) => Check::ok("git", format!("version {version}")),
        Ok(Err(error)) => {
            let message = format!("{}; only worktrees need it", error.message);
            Check::warn("git", message, error.hint.unwrap_or_else(|| "install git".to_owned()))
        }
        Err(_) => Check::fail("git", "git does not respond", "see what it waits for: git --version"),
    }
}
