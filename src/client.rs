//! The client: one file a verb, over one connection to the daemon.
//!
//! `main` calls [`run`] with what was typed. A verb checks what it can by itself, connects ([`connect`]
//! starts the daemon when it is absent), calls, and prints through [`render`], the only printer.
//! Deliberately absent: anything that the daemon owns (its store, git); the client knows the wire and the
//! words. It ends no process and writes no file of the daemon's.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::cli::{Command, DaemonCommand};
use crate::error::{Error, ErrorCode};
use crate::paths::Paths;
use crate::protocol::Call;

pub mod connect;
pub mod render;
mod report;

mod asking;
mod attach;
mod clean;
mod completions;
mod daemon;
mod demo;
mod events;
mod follow;
mod hearing;
mod hooks;
mod kill;
mod logs;
mod looping;
mod ls;
mod peek;
mod ralph;
mod respawn;
mod send;
pub mod session;
mod several;
mod spawn;
mod status;
mod stream;
mod tail;
mod wait;

#[cfg(test)]
mod testing;

use connect::Client;
use render::Out;

/// Why a verb ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It failed, and this is what to say.
    Error(Error),
    /// Whoever read stdout went away; nothing is to be said.
    Closed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// What a verb ends with: its exit status.
type Ended = Result<u8, Failure>;

/// What every verb needs.
struct Ctx {
    out: Out,
    /// `-c FILE`.
    config: Option<PathBuf>,
}

impl Ctx {
    /// Where things are. Asked for late, since some verbs need no home directory.
    fn paths(&self) -> Result<Paths, Error> {
        Paths::from_env()
    }

    /// A connection; the daemon is started when it is absent.
    async fn connect(&self) -> Result<Client, Error> {
        connect::connect(&self.paths()?).await
    }

    /// One call on a connection of its own.
    async fn ask<T: DeserializeOwned>(&self, call: &Call, limit: Duration) -> Result<T, Error> {
        asking::ask(&self.paths()?, call, limit).await
    }
}

/// Carries out `command` and gives its exit status.
///
/// # Errors
/// Whatever stopped it; `main` prints it and takes the exit status from its code.
pub fn run(command: Command, config: Option<PathBuf>, out: Out) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::system("cannot start", e))?;
    let result = runtime.block_on(dispatch(command, config, out));
    // A read of stdin cannot be cancelled; the process must not wait for it.
    runtime.shutdown_timeout(Duration::ZERO);
    result
}

async fn dispatch(command: Command, config: Option<PathBuf>, out: Out) -> Ended {
    let ctx = Ctx { out, config };
    match command {
        Command::Spawn(args) => spawn::run(&ctx, *args).await,
        Command::Loop(args) => looping::run(&ctx, *args).await,
        Command::Why(args) => report::why(&ctx, &args).await,
        Command::Report(args) => report::run(&ctx, &args).await,
        Command::Ls(args) => ls::run(&ctx, &args).await,
        Command::Status(args) => status::run(&ctx, &args).await,
        Command::Peek(args) => peek::run(&ctx, &args).await,
        Command::Logs(args) => logs::run(&ctx, &args).await,
        Command::Send(args) => send::run(&ctx, args).await,
        Command::Interrupt(args) => send::interrupt(&ctx, &args).await,
        Command::Eof(args) => send::eof(&ctx, &args).await,
        Command::Wait(args) => wait::run(&ctx, &args).await,
        Command::Events(args) => events::run(&ctx, &args).await,
        Command::Clean(args) => clean::run(&ctx, &args).await,
        Command::Attach(args) => attach::run(&ctx, &args).await,
        Command::Kill(args) => kill::run(&ctx, &args).await,
        Command::Respawn(args) => respawn::run(&ctx, &args).await,
        Command::Ralph(args) => ralph::run(&ctx, args.command).await,
        Command::Daemon(args) => match args.command {
            DaemonCommand::Start => daemon::start(&ctx).await,
            DaemonCommand::Stop => daemon::stop(&ctx).await,
            DaemonCommand::Restart => daemon::restart(&ctx).await,
            DaemonCommand::Status(args) => daemon::status(&ctx, &args).await,
            DaemonCommand::Run(_) => Err(Error::new(ErrorCode::Internal, "`daemon run` is main's").into()),
        },
        Command::Doctor(_) => Err(Error::new(ErrorCode::Internal, "`doctor` is main's").into()),
        Command::Session(_) | Command::Hook(_) => {
            Err(Error::new(ErrorCode::Internal, "the verbs of sessions are main's").into())
        }
        Command::Hooks(args) => hooks::run(&ctx, args.command),
        Command::Plugin(args) => hooks::plugin(&ctx, args.command),
        Command::Demo => demo::run(&ctx).await,
        Command::Completions(args) => completions::run(&args, out),
    }
}
