//! Sandboxes: chooses the program that builds one, and wraps a command so that it runs inside.
//!
//! [`choose`] decides at a spawn, [`WorkerSandbox`] wraps each run of the agent and each check of a worker. What a
//! sandbox may see and write is decided by [`swarm_state::sandbox`]; [`facts`] collects what exists, [`bwrap`] knows
//! bubblewrap. [`mod@proxy`] gives a sandbox without a network the allowed hosts, through the [`bridge`] inside. Docker
//! Sandbox is not built yet.
//! Used by the client, the daemon, `doctor` and the loops. Deliberately absent: any way to run without a sandbox that
//! was requested.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use swarm_state::sandbox::{
    Mounts, SANDBOX_VARIABLE, SandboxKind, SandboxWish, UnfitTree, change_environment,
};
use walkdir::WalkDir;

use crate::error::{Error, ErrorCode, Result};
use crate::paths::Paths;

pub mod bridge;
mod bwrap;
mod facts;
pub(crate) mod hosts;
pub mod inside;
mod placeholders;
pub(crate) mod proxy;
mod seccomp;
mod worker;

pub(crate) use bwrap::detect as detect_bwrap;
use facts::Collected;
pub(crate) use placeholders::HeldPlaceholders;
use worker::sandbox_dir;
pub(crate) use worker::{SandboxPrefix, SandboxedCommand, WorkerSandbox, named_files};

/// The choice for a worker.
#[derive(Debug, Default)]
pub(crate) struct SandboxChoice {
    /// The kind and its program; `None` for no sandbox.
    pub(crate) program: Option<(SandboxKind, PathBuf)>,
    /// A line for the user, if swarm itself chose to have none.
    pub(crate) warning: Option<String>,
}

/// Chooses the program for a sandbox.
///
/// # Errors
/// [`ErrorCode::Sandbox`] if the requested one cannot be built, with the fix as a hint.
pub(crate) fn choose(wish: SandboxWish) -> Result<SandboxChoice> {
    let bwrap = |program| SandboxChoice { program: Some((SandboxKind::Bwrap, program)), warning: None };
    match wish {
        SandboxWish::None => Ok(SandboxChoice::default()),
        SandboxWish::Bwrap => bwrap::detect().map(bwrap),
        SandboxWish::Docker => {
            let message = "no Docker sandbox can be built: this release of swarm has none";
            Err(Error::new(ErrorCode::Sandbox, message).hint("use --sandbox bwrap, or --sandbox auto"))
        }
        SandboxWish::Auto => Ok(bwrap::detect().map_or_else(
            |error| SandboxChoice {
                program: None,
                warning: Some(format!(
                    "no sandbox: the agent and the checks can read and change all of your files, keys and processes ({})",
                    error.message
                )),
            },
            bwrap,
        )),
    }
}

/// Whether this process is in a sandbox of the swarm with these files.
pub(crate) fn is_inside(paths: &Paths) -> bool {
    std::env::var_os(SANDBOX_VARIABLE).is_some_and(|root| Paths::new(root.into()).root() == paths.root())
}

impl WorkerSandbox {
    /// Prepares a sandbox, changes the environment, and returns the way in. Blocks for a moment.
    ///
    /// # Errors
    /// [`ErrorCode::Sandbox`] if the tree cannot be protected, and the system's errors.
    pub(crate) fn prepare(&self, command: SandboxedCommand<'_>) -> Result<SandboxPrefix> {
        let Collected { facts, placeholders, copies } = facts::collect(self, &command)?;
        let (temporary, lasting) = placeholders.into_iter().partition::<Vec<_>, _>(|one| one.is_temporary);
        for one in &lasting {
            placeholders::create_lasting(&one.path, one.text)?;
        }
        let held = HeldPlaceholders::hold(temporary.into_iter().map(|one| one.path).collect())?;
        let exists = |path: &Path| path.symlink_metadata().is_ok_and(|found| !found.is_symlink());
        let mounts = Mounts::of(&facts, &exists).map_err(|error: UnfitTree| {
            Error::new(ErrorCode::Sandbox, error.to_string())
                .hint("start the worker in a project's directory, or use --worktree")
        })?;
        change_environment(command.env, self.paths.root());
        let argv = bwrap::argv(self, &mounts, &command, &copies)?;
        Ok(SandboxPrefix { argv, placeholders: held })
    }
}

/// Deletes a worker's caches. Package managers make directories that cannot be written.
pub(crate) fn remove_private(paths: &Paths, worker: &str) {
    let dir = sandbox_dir(paths).join(worker);
    for entry in WalkDir::new(&dir).into_iter().flatten().filter(|entry| entry.file_type().is_dir()) {
        let _ = std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o700));
    }
    if let Err(error) = std::fs::remove_dir_all(&dir)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(worker, %error, "cannot delete the caches of its sandbox");
    }
}
