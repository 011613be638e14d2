//! `swarm doctor`: checks the whole installation and prints problems with their fixes.
//!
//! `main` calls it. It reads the disk, asks tmux and git, and talks to the daemon as a client does. Each check has a
//! time limit, so it works when the daemon cannot start, tmux hangs or there is no home directory. It changes
//! nothing: it starts no daemon or tmux server, and makes, moves and repairs no file.

mod check;
mod leftovers;
mod logout;
mod place;
mod service;
mod tools;

use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use check::{Check, Level, Observed};

use crate::cli::{PageFormat, PageFormatArg};
use crate::out::{Failure, Out};
use crate::paths::Paths;
use crate::runtime::block_on;
use crate::store;
use crate::tmux::ServerSurvey;
use crate::tmux::{Tmux, TmuxOptions};

/// The time limit for all checks together; each has a shorter one of its own.
const DOCTOR_TIMEOUT: Duration = Duration::from_secs(40);

#[derive(Serialize)]
struct DoctorReport {
    /// Nothing failed.
    ok: bool,
    checks: Vec<Check>,
}

/// Runs the checks, prints the results, and returns the exit status: 0 if none failed, otherwise 1.
pub fn run(args: &PageFormatArg, out: Out) -> Result<u8, Failure> {
    let checks = block_on(async { timeout(DOCTOR_TIMEOUT, look()).await })?.unwrap_or_else(|_| {
        let message = format!("the checks took longer than {} s", DOCTOR_TIMEOUT.as_secs());
        vec![Check::fail("doctor", message, "check whether a disk or a network file system hangs")]
    });
    let report = DoctorReport { ok: checks.iter().all(|check| check.level != Level::Fail), checks };
    match args.format {
        PageFormat::Json => out.json(&report)?,
        PageFormat::Text => print(&report.checks, out)?,
    }
    Ok(u8::from(!report.ok))
}

fn print(checks: &[Check], out: Out) -> Result<(), Failure> {
    for Check { check, level, message, hint } in checks {
        let (word, color) = level.shown();
        let word = out.paint(color, &format!("{word:<4}")).into_owned();
        out.line(&format!("{word}  {check}: {}", swarm_state::screen::printable(message)))?;
        if let Some(hint) = hint {
            out.line(&format!("      hint: {}", swarm_state::screen::printable(hint)))?;
        }
    }
    Ok(())
}

async fn look() -> Vec<Check> {
    let mut checks = vec![];
    let paths = match Paths::from_env() {
        Ok(paths) => paths,
        Err(error) => {
            checks.push(Check::of("directory", error, "set SWARM_DIR to a directory of your own"));
            let (tmux, git) = tokio::join!(tools::tmux(), tools::git());
            checks.extend([tmux, git, logout::check(None)]);
            return checks;
        }
    };
    checks.extend(place::directory(&paths));
    checks.push(place::room(&paths));
    checks.extend(place::settings(&paths));
    let own = Tmux::new(TmuxOptions::own(&paths));
    let (tmux, git, server) = tokio::join!(tools::tmux(), tools::git(), own.survey());
    // Lists the panes first: a worker's record exists before its pane.
    let observed = Observed { disk: store::survey(&paths), paths, server };
    let (pid, live) = match &observed.server {
        ServerSurvey::Alive { pid, rows } => (Some(*pid), rows.iter().filter(|row| !row.dead).count()),
        ServerSurvey::Gone | ServerSurvey::Empty { .. } | ServerSurvey::Silent(_) => (None, 0),
    };
    checks.push(tools::server(&observed, &tmux));
    checks.push(tmux);
    checks.extend(service::sockets(&observed.paths));
    checks.extend(service::daemon(&observed.paths, live, &observed.disk).await);
    checks.extend(tools::helper(&observed.paths));
    checks.extend(leftovers::files(&observed));
    checks.extend(leftovers::panes(&observed));
    checks.push(git);
    checks.push(tools::sandbox().await);
    checks.push(tools::docker_sandbox().await);
    checks.push(tools::caps());
    checks.extend(tools::slurm(&observed.paths).await);
    checks.extend(leftovers::branches(&observed).await);
    checks.push(logout::check(pid));
    checks
}
