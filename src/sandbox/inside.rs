//! The first process in a sandbox: `swarm __inside PROGRAM ARGUMENTS`.
//!
//! The program that builds the sandbox ignores the signals for the agent, or it would end the agent before the agent
//! has handled them. This process gives them their default actions again, and becomes the agent. Used by `main`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tokio::signal::unix::{SignalKind, signal};

/// The first argument of this process.
pub(crate) const INSIDE_ARGUMENT: &str = "__inside";

/// The exit status for a program that cannot be run.
const NOT_RUN_STATUS: u8 = 127;

/// Runs the program in place of this process. Returns only if that fails.
pub fn main(argv: &[OsString]) -> u8 {
    let Some((program, arguments)) = argv.split_first() else { return NOT_RUN_STATUS };
    let error = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        // A signal with a handler has its default action in the next program, an ignored one stays ignored.
        Ok(runtime) => runtime.block_on(async {
            let kinds = [
                SignalKind::hangup(),
                SignalKind::interrupt(),
                SignalKind::quit(),
                SignalKind::terminate(),
                SignalKind::from_raw(nix::libc::SIGTSTP),
            ];
            let _handlers: Vec<_> = kinds.into_iter().map(signal).collect();
            Command::new(program).args(arguments).exec()
        }),
        Err(error) => error,
    };
    crate::out::Out::from_env().note(&format!("cannot run {}: {error}", program.to_string_lossy()));
    NOT_RUN_STATUS
}
