//! `swarm doctor`: checks the whole installation and prints problems with their fixes.
//!
//! `main` calls it. It reads the disk, asks tmux and git, and talks to the daemon as a client does. Each check has a
//! time limit, so it works when the daemon cannot start, tmux hangs or there is no home directory. It changes
//! nothing: it starts no daemon or tmux server, and makes, moves and repairs no file.

mod helper;
mod leftovers;
mod logout;
mod lost;
mod place;
mod service;
mod tools;

use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use crate::cli::{Doctor, PageFormat};
use crate::error::Error;
use crate::out::{Color, Failure, Out};
use crate::paths::Paths;
use crate::store::{self, DiskSurvey};
use crate::tmux::{ServerSurvey, Socket, Tmux, TmuxOptions};

/// The time limit for all checks together; each has a shorter one of its own.
const DOCTOR_TIMEOUT: Duration = Duration::from_secs(40);

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    /// No problem.
    Ok,
    /// It works, but the user should act.
    Warn,
    /// It does not work.
    Fail,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    fn colour(self) -> Color {
        match self {
            Self::Ok => Color::Green,
            Self::Warn => Color::Yellow,
            Self::Fail => Color::Red,
        }
    }
}

/// The result of one check: a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    /// The name of the check; scripts may rely on it.
    check: &'static str,
    level: Level,
    /// The finding, one sentence.
    message: String,
    /// The fix; every warning and failure has one. If it contains a command, the command is at its end and can be
    /// pasted.
    hint: Option<String>,
}

impl Check {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: message.into(), hint: None }
    }

    fn warn(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { check, level: Level::Warn, message: message.into(), hint: Some(hint.into()) }
    }

    fn fail(check: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { check, level: Level::Fail, message: message.into(), hint: Some(hint.into()) }
    }

    /// A failure from an error. `hint` is used if the error has none.
    fn of(check: &'static str, error: Error, hint: &str) -> Self {
        let cure = error.hint.unwrap_or_else(|| hint.to_owned());
        Self::fail(check, error.message, cure)
    }
}

/// The output of `--format json`.
#[derive(Serialize)]
struct DoctorReport {
    /// Nothing failed.
    ok: bool,
    checks: Vec<Check>,
}

/// Data that several checks need.
struct Observed {
    paths: Paths,
    disk: DiskSurvey,
    /// Our own tmux server.
    server: ServerSurvey,
}

/// Runs the checks, prints the results, and returns the exit status: 0 if none failed, otherwise 1.
///
/// # Errors
/// When the output cannot be written.
pub fn run(args: &Doctor, out: Out) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::system("cannot start", e))?;
    let checks = runtime.block_on(async { timeout(DOCTOR_TIMEOUT, look()).await }).unwrap_or_else(|_| {
        let message = format!("the checks took longer than {} s", DOCTOR_TIMEOUT.as_secs());
        vec![Check::fail("doctor", message, "check whether a disk or a network file system hangs")]
    });
    runtime.shutdown_timeout(Duration::ZERO);
    let report = DoctorReport { ok: checks.iter().all(|check| check.level != Level::Fail), checks };
    match args.format {
        PageFormat::Json => out.json(&report)?,
        PageFormat::Text => print(&report.checks, out)?,
    }
    Ok(u8::from(!report.ok))
}

fn print(checks: &[Check], out: Out) -> Result<(), Failure> {
    for Check { check, level, message, hint } in checks {
        let word = out.paint(level.colour(), &format!("{:<4}", level.word())).into_owned();
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
    checks.push(place::settings(&paths));
    let own = own_server(&paths);
    let (tmux, git, server) = tokio::join!(tools::tmux(), tools::git(), own.survey());
    // Lists the panes first: a worker's record exists before its pane.
    let observed = Observed { disk: store::survey(&paths), paths, server };
    let live = match &observed.server {
        ServerSurvey::Alive { rows, .. } => rows.iter().filter(|row| !row.dead).count(),
        ServerSurvey::Gone | ServerSurvey::Empty { .. } | ServerSurvey::Silent(_) => 0,
    };
    checks.push(tools::server(&observed, &tmux));
    checks.push(tmux);
    checks.extend(service::sockets(&observed.paths));
    checks.extend(service::daemon(&observed.paths, live, &observed.disk).await);
    checks.extend(helper::check(&observed.paths));
    checks.extend(leftovers::files(&observed));
    checks.extend(leftovers::panes(&observed));
    checks.push(git);
    checks.extend(leftovers::branches(&observed).await);
    let pid = match &observed.server {
        ServerSurvey::Alive { pid, .. } => Some(*pid),
        ServerSurvey::Gone | ServerSurvey::Empty { .. } | ServerSurvey::Silent(_) => None,
    };
    checks.push(logout::check(pid));
    checks
}

fn own_server(paths: &Paths) -> Tmux {
    Tmux::new(TmuxOptions {
        socket: Socket::Path(paths.tmux_socket()),
        config: paths.tmux_conf(),
        source: None,
        session: "swarm".into(),
    })
}
