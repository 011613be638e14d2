//! The first process in a sandbox: `swarm __inside [--proxy DIR] PROGRAM ARGUMENTS`.
//!
//! The program that builds the sandbox ignores the signals for the agent, or it would end the agent before the agent
//! has handled them. This process gives them their default actions again, and becomes the agent. With `--proxy`, it
//! first starts the [`bridge`] to the proxy in DIR, and names it in the environment. Used by `main`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use tokio::signal::unix::{SignalKind, signal};

use super::bridge;

/// The first argument of this process.
pub(crate) const INSIDE_ARGUMENT: &str = "__inside";

/// The option before the directory of the proxy's socket.
pub(super) const PROXY_OPTION: &str = "--proxy";

/// The exit status for a program that cannot be run.
const NOT_RUN_STATUS: u8 = 127;

/// Runs the program in place of this process. Returns only if that fails.
pub fn main(argv: &[OsString]) -> u8 {
    let (proxy, argv) = match argv {
        [option, dir, rest @ ..] if option == PROXY_OPTION => (Some(Path::new(dir)), rest),
        _ => (None, argv),
    };
    let Some((program, arguments)) = argv.split_first() else { return NOT_RUN_STATUS };
    let variables = match proxy.map(bridge::start).transpose() {
        Ok(variables) => variables.unwrap_or_default(),
        Err(error) => {
            crate::out::Out::from_env().note(&format!("cannot reach the proxy of the sandbox: {error}"));
            return NOT_RUN_STATUS;
        }
    };
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
            Command::new(program).args(arguments).envs(variables).exec()
        }),
        Err(error) => error,
    };
    crate::out::Out::from_env().note(&format!("cannot run {}: {error}", program.to_string_lossy()));
    NOT_RUN_STATUS
}
