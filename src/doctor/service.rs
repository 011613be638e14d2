//! Checks the daemon and its sockets, and lists lost workers: their tmux server went away, or an earlier swarm left
//! them. The daemon knows them; without a daemon, the records are read.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use swarm_state::advice::{clean_later, start_again};
use swarm_state::engine::{Phase, Worker};
use swarm_state::format::Record;
use swarm_state::model::Status;
use swarm_state::notice::counted;

use super::check::Check;
use crate::client::connect::{self, DaemonProbe};
use crate::owner;
use crate::paths::Paths;
use crate::protocol::{Call, DaemonView, Empty, Listing, RELEASE};
use crate::shell::quote_path;
use crate::store::{DaemonLock, DiskSurvey};

/// How long to wait for the daemon's answer. A healthy daemon answers at once, even if tmux or git hangs.
const DOCTOR_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for a daemon that holds the lock but has no socket yet.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn sockets(paths: &Paths) -> Vec<Check> {
    let mut checks = vec![];
    for socket in [paths.socket(), paths.tmux_socket()] {
        let found = fs::symlink_metadata(&socket);
        if found.is_ok_and(|found| !found.file_type().is_socket()) {
            let message = format!("{} exists and is not a socket", socket.display());
            let hint = format!("check it, then move it away: mv {0} {0}.old", quote_path(&socket));
            checks.push(Check::fail("socket", message, hint));
        }
    }
    let dir = paths.socket().parent().map(Path::to_owned).unwrap_or_default();
    if dir == paths.root() {
        return checks;
    }
    match fs::symlink_metadata(&dir) {
        Ok(found)
            if !found.is_dir()
                || found.uid() != nix::unistd::geteuid().as_raw()
                || found.mode() & 0o077 != 0 =>
        {
            let message = format!("{} is not private to you and cannot hold a socket", dir.display());
            checks.push(Check::fail("socket", message, "remove it, or use a shorter SWARM_DIR"));
        }
        Ok(_) | Err(_) => {
            let why = match paths.is_shared() {
                true => "other hosts can use SWARM_DIR, so the socket lies elsewhere",
                false => "SWARM_DIR is too long for a socket",
            };
            let message = format!("{why}; it is {}", paths.socket().display());
            checks.push(Check::ok("socket", message));
        }
    }
    checks
}

/// Checks the daemon and lists workers that need attention; `live` is the number of live panes.
pub(super) async fn daemon(paths: &Paths, live: usize, disk: &DiskSurvey) -> Vec<Check> {
    let holder = DaemonLock::holder(paths);
    let nobody = match connect::probe(&paths.into()).await {
        Ok(DaemonProbe::Ready(client)) => return answers(paths, client, disk).await,
        Ok(DaemonProbe::WrongVersion(daemon)) => {
            return vec![Check::of("daemon", connect::wrong_version(&daemon), "swarm daemon restart")];
        }
        Ok(DaemonProbe::Nobody) => true,
        Err(_) => false,
    };
    let socket = paths.socket();
    if !nobody {
        let Err(error) = connect::probe(&paths.into()).await else { return vec![] };
        let hint = format!("check it: ls -l {}", quote_path(&socket));
        return vec![Check::of("daemon", error, &hint)];
    }
    if let Some(error) = owner::elsewhere(paths) {
        return vec![Check::of("daemon", error, "swarm daemon take-over")];
    }
    if let Some(pid) = holder
        && let Some(checks) = without_socket(paths, pid, disk).await
    {
        return checks;
    }
    let mut checks = vec![];
    if fs::symlink_metadata(&socket).is_ok_and(|found| found.file_type().is_socket()) {
        let message = format!("{} is a leftover of a killed daemon", socket.display());
        checks.push(Check::warn("socket", message, "to replace it: swarm daemon start"));
    }
    checks.push(match live {
        0 => Check::ok("daemon", "not running; the first command that needs it starts it"),
        _ => {
            let message = format!("not running: {} without a supervisor", counted(live, "live worker"));
            Check::warn("daemon", message, "swarm daemon start")
        }
    });
    checks.extend(recorded_lost(disk));
    checks
}

async fn answers(paths: &Paths, mut client: connect::Client, disk: &DiskSurvey) -> Vec<Check> {
    let pid = client.daemon.pid;
    let view: DaemonView = match client.call(&Call::DaemonStatus(Empty {}), DOCTOR_ANSWER_TIMEOUT).await {
        Ok(view) => view,
        Err(error) => {
            let hint = connect::kill_hint(&paths.daemon_log(), pid);
            let message = format!("the daemon (pid {pid}) hangs: {}", error.message);
            return vec![Check::fail("daemon", message, hint)];
        }
    };
    let own = RELEASE;
    let check = if view.version == own {
        let all = counted(view.workers, "worker");
        Check::ok("daemon", format!("it runs (pid {pid}), {} of {all} live", view.live))
    } else {
        let message = format!("it runs swarm {} (pid {pid}); this is swarm {own}", view.version);
        Check::warn("daemon", message, "this pauses nothing: swarm daemon restart")
    };
    let mut checks = vec![check];
    checks.extend(view.notify_errors.iter().map(|(channel, error)| {
        let message = format!("{channel}: the last notification was not sent: {error}");
        Check::warn("notify", message, "to try each channel: swarm notify test")
    }));
    if let Ok(listing) = client.call::<Listing>(&Call::Ls(Empty {}), DOCTOR_ANSWER_TIMEOUT).await {
        checks.extend(other_problems(&listing, disk));
        checks.extend(listed_lost(&listing));
    }
    checks
}

/// Problems from the daemon's list that no other check reports.
fn other_problems(listing: &Listing, disk: &DiskSurvey) -> Vec<Check> {
    let named = |problem: &String| {
        disk.problems.contains(problem)
            || disk.found.iter().any(|found| problem.contains(&*found.path.to_string_lossy()))
    };
    let new = listing.problems.iter().filter(|problem| !named(problem));
    new.map(|problem| Check::warn("daemon", problem.clone(), "to check again: swarm daemon restart"))
        .collect()
}

/// Checks a daemon that holds the lock and does not listen at the socket. `None` if it ends meanwhile.
async fn without_socket(paths: &Paths, pid: u32, disk: &DiskSurvey) -> Option<Vec<Check>> {
    let until = tokio::time::Instant::now() + STARTUP_TIMEOUT;
    while tokio::time::Instant::now() < until {
        match (connect::probe(&paths.into()).await, DaemonLock::holder(paths)) {
            (Ok(DaemonProbe::Ready(client)), _) => return Some(answers(paths, client, disk).await),
            (_, None) => return None,
            (_, Some(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    let message = format!("a daemon runs (pid {pid}), but does not listen at {}", paths.socket().display());
    let hint = format!("agents keep running, and the next command starts another daemon: kill {pid}");
    Some(vec![Check::fail("daemon", message, hint)])
}

/// The kind of a lost worker, which decides the fix.
enum LostKind {
    Loop,
    Plain,
    Earlier,
}

fn listed_lost(listing: &Listing) -> Vec<Check> {
    let lost = listing.workers.iter().filter(|worker| worker.status == Status::Lost);
    lost.map(|worker| {
        let metadata = worker.metadata();
        let kind = match (metadata.earlier_swarm, metadata.is_loop) {
            (true, _) => LostKind::Earlier,
            (false, true) => LostKind::Loop,
            (false, false) => LostKind::Plain,
        };
        lost_worker(&worker.name, kind)
    })
    .collect()
}

fn recorded_lost(disk: &DiskSurvey) -> Vec<Check> {
    let lost = |record: &Record| Some(lost_worker(record.name.as_str(), lost_kind(record)?));
    disk.records.iter().filter_map(lost).collect()
}

fn lost_kind(record: &Record) -> Option<LostKind> {
    if let Some(theirs) = &record.legacy {
        return (theirs.status == "running").then_some(LostKind::Earlier);
    }
    let engine: Worker = serde_json::from_value(record.engine.clone()).ok()?;
    let kind = if engine.ralph().is_some() { LostKind::Loop } else { LostKind::Plain };
    (*engine.phase() == Phase::Lost).then_some(kind)
}

fn lost_worker(name: &str, kind: LostKind) -> Check {
    let (what, hint) = match kind {
        LostKind::Loop => ("continues its loop", format!("swarm kill {name} ends it")),
        LostKind::Plain => ("starts it again", format!("swarm clean {name} deletes it")),
        LostKind::Earlier => {
            let message =
                format!("worker '{name}' belongs to an earlier swarm, and this one does not supervise it");
            return Check::warn("lost", message, clean_later(name));
        }
    };
    let start = start_again(name, matches!(kind, LostKind::Loop));
    let message = format!("worker '{name}' is lost: its tmux server went away");
    Check::warn("lost", message, format!("{start} {what}; {hint}"))
}
