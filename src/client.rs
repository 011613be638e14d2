//! The client: one file a verb, over one connection to the daemon.
//!
//! `main` calls [`run`] with the parsed command. A verb (`verbs/`) checks what it can by itself, connects ([`connect`]
//! starts the daemon when it is absent), calls, and prints through [`crate::out`]. [`crate::stories`] uses [`connect`]
//! too, and [`crate::archive`] uses [`task_list_file`].
//!
//! The client reads the settings and the files that the user names, through [`crate::settings`] and [`crate::paths`].
//! Below SWARM_DIR, it writes the start of the daemon's log and the release that it has reported ([`connect`]), the
//! last answers of remote hosts (`fleet`), the directories of Slurm jobs (`jobs`) and the owner (`daemon take-over`).
//! For the user, it writes prompts, task lists (`ralph init`, `ralph tasks import|export`) and settings (`config
//! edit`). Deliberately absent: the daemon's other files, git, ending processes (except an old daemon's), and the
//! commands of [`crate::session`], [`crate::hooks`], [`crate::doctor`], [`crate::demo`] and [`crate::archive`].

use std::path::PathBuf;

use crate::cli::{Command, OnHost};
use crate::out::{CommandResult, Out};
use crate::runtime::block_on;

pub mod completion;
pub mod connect;
pub mod relay;

mod batch;
mod context;
mod daemon;
pub(crate) mod fleet;
mod follow;
mod host_spawn;
mod jobs;
mod json;
mod on_host;
mod pages;
mod report;
mod sandbox;
pub(crate) mod spawn_params;
mod subscription;
mod tail;
mod task_list;
pub(crate) mod task_list_file;
mod typed_path;
mod verbs;
pub(crate) mod worker;

#[cfg(test)]
pub(crate) mod testing;

/// Carries out `command` and returns its exit status. `main` prints an error and takes the exit status from its code.
pub fn run(command: Command, config: Option<PathBuf>, on: &OnHost, out: Out) -> CommandResult {
    let mut context = context::ClientContext { out, config, host: None };
    block_on(on_host::run(&mut context, command, on))?
}
