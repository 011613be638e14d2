//! `swarm doctor`: looks at everything that swarm stands on, and says what is wrong and how to cure it.
//!
//! `main` calls it, beside the client: it reads the disk, asks tmux and git, and talks to the daemon as a
//! client does. It works when the daemon cannot start, tmux hangs or there is no home directory, each look
//! bounded, and it changes nothing: no daemon or tmux server is started, no file made, moved or mended.
//! Deliberately absent: any cure.

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
use crate::store::{self, Survey};
use crate::tmux::{Options, Socket, Survey as Server, Tmux};

/// How long all looks together may take; each has a shorter limit of its own.
const LIMIT: Duration = Duration::from_secs(40);

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    /// As it should be.
    Ok,
    /// It works, and somebody should know.
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

/// What one look found: a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    /// Which look; a word that programs can rely on.
    check: &'static str,
    level: Level,
    /// One sentence.
    message: String,
    /// The cure; there is one with every warning and failure. A command in it stands at its end and works as it
    /// is typed from there.
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

    /// A failure as an error tells it; `hint` where it has none itself.
    fn of(check: &'static str, error: Error, hint: &str) -> Self {
        let cure = error.hint.unwrap_or_else(|| hint.to_owned());
        Self::fail(check, error.message, cure)
    }
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Report {
    /// Nothing failed.
    ok: bool,
    checks: Vec<Check>,
}

/// What several looks need.
struct Seen {
    paths: Paths,
    disk: Survey,
    /// Our own tmux server.
    server: Server,
}

/// Looks, prints, and gives the exit status: 0 when nothing failed, else 1.
///
/// # Errors
/// When it cannot print.
pub fn run(args: &Doctor, out: Out) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::system("cannot start", e))?;
    let checks = runtime.block_on(async { timeout(LIMIT, look()).await }).unwrap_or_else(|_| {
        let message = format!("not everything could be looked at within {} s", LIMIT.as_secs());
        vec![Check::fail("doctor", message, "look whether a disk or a network file system hangs")]
    });
    runtime.shutdown_timeout(Duration::ZERO);
    let report = Report { ok: checks.iter().all(|check| check.level != Level::Fail), checks };
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
    // The panes first: a worker's record is there before its pane is.
    let seen = Seen { disk: store::survey(&paths), paths, server };
    let live = match &seen.server {
        Server::Alive { rows, .. } => rows.iter().filter(|row| !row.dead).count(),
        Server::Gone | Server::Empty { .. } | Server::Silent(_) => 0,
    };
    checks.push(tools::server(&seen, &tmux));
    checks.push(tmux);
    checks.extend(service::sockets(&seen.paths));
    checks.extend(service::daemon(&seen.paths, live, &seen.disk).await);
    checks.extend(helper::check(&seen.paths));
    checks.extend(leftovers::files(&seen));
    checks.extend(leftovers::panes(&seen));
    checks.push(git);
    checks.extend(leftovers::branches(&seen).await);
    let pid = match &seen.server {
        Server::Alive { pid, .. } => Some(*pid),
        Server::Gone | Server::Empty { .. } | Server::Silent(_) => None,
    };
    checks.push(logout::check(pid));
    checks
}

fn own_server(paths: &Paths) -> Tmux {
    Tmux::new(Options {
        socket: Socket::Path(paths.tmux_socket()),
        config: paths.tmux_conf(),
        source: None,
        session: "swarm".into(),
    })
}
