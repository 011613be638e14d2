//! Sandboxes: chooses the program that builds one, and wraps a command so that it runs inside.
//!
//! [`choose`] decides at a spawn, [`WorkerSandbox`] wraps each run of the agent and each check of a worker.
//! [`swarm_state::sandbox`] decides what a sandbox may see and write; [`facts`] collects what exists. Used by the
//! client, the daemon, `doctor` and the loops. Deliberately absent: any way to run without a sandbox that was
//! requested.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use swarm_state::docker::Workspace;
use swarm_state::profiles::Profile;
use swarm_state::sandbox::{
    GitPlace, Mounts, SANDBOX_VARIABLE, SandboxKind, SandboxWish, UnfitTree, change_environment, check_tree,
};
use walkdir::WalkDir;

use crate::error::{Error, ErrorCode, Result};
use crate::files::if_exists;
use crate::paths::{Paths, home, resolve};

pub mod bridge;
mod bwrap;
pub(crate) mod docker;
pub(crate) mod docker_setup;
mod facts;
pub(crate) mod hosts;
pub mod inside;
mod placeholders;
mod process;
pub(crate) mod proxy;
mod seccomp;
pub(crate) mod tree_files;
mod worker;

pub(crate) use bwrap::detect as detect_bwrap;
use facts::Collected;
pub(crate) use placeholders::HeldPlaceholders;
use worker::sandbox_dir;
pub(crate) use worker::{SandboxPrefix, SandboxedCommand, WorkerSandbox, named_files};

#[derive(Debug, Default)]
pub(crate) struct SandboxChoice {
    /// The kind and its program; `None` for no sandbox.
    pub(crate) program: Option<(SandboxKind, PathBuf)>,
    /// A line for the user, if swarm itself chose to have none.
    pub(crate) warning: Option<String>,
}

/// Chooses the program for a sandbox; [`ErrorCode::Sandbox`] if the requested one cannot be built, with the fix as a
/// hint. `obstacle` is why it cannot be Docker Sandbox, with the next step.
pub(crate) fn choose(wish: SandboxWish, obstacle: Option<(String, &str)>) -> Result<SandboxChoice> {
    let of_kind = |kind| move |program| SandboxChoice { program: Some((kind, program)), warning: None };
    let bwrap = of_kind(SandboxKind::Bwrap);
    let docker = || match obstacle {
        Some((why, hint)) => Err(Error::new(ErrorCode::Sandbox, why).hint(hint)),
        None => docker::detect().map(of_kind(SandboxKind::Docker)),
    };
    match wish {
        SandboxWish::None => Ok(SandboxChoice::default()),
        SandboxWish::Bwrap => bwrap::detect().map(bwrap),
        SandboxWish::Docker => docker(),
        SandboxWish::Auto => Ok(docker().or_else(|_| bwrap::detect().map(bwrap)).unwrap_or_else(|error| {
            SandboxChoice {
                program: None,
                warning: Some(format!(
                    "no sandbox: the agent and the checks can read and change all of your files, keys and processes ({})",
                    error.message
                )),
            }
        })),
    }
}

/// Whether this process is in a sandbox of the swarm with these files.
pub(crate) fn is_inside(paths: &Paths) -> bool {
    std::env::var_os(SANDBOX_VARIABLE).is_some_and(|root| Paths::new(root.into()).root() == paths.root())
}

impl WorkerSandbox {
    /// Prepares a sandbox, changes the environment, and returns the way in. Blocks for a moment. [`ErrorCode::Sandbox`]
    /// if the tree cannot be protected.
    pub(crate) fn prepare(&self, command: SandboxedCommand<'_>) -> Result<SandboxPrefix> {
        if let Some(docker) = &self.docker {
            let env_file = sandbox_dir(&self.paths).join(&self.worker).join("docker.env");
            let mut argv = docker.check_argv(command.cwd, command.env, &env_file)?;
            // The end of `docker` does not end the command inside.
            let limit = command.limit.map(|limit| limit.as_secs().to_string());
            argv.extend(limit.iter().flat_map(|seconds| ["timeout", "-k", "2", seconds]).map(str::to_owned));
            return Ok(SandboxPrefix { argv, ..SandboxPrefix::default() });
        }
        let Collected { facts, placeholders, copies } = facts::collect(self, &command)?;
        let (temporary, lasting) = placeholders.into_iter().partition::<Vec<_>, _>(|one| one.is_temporary);
        for one in &lasting {
            placeholders::create_lasting(&one.path, one.text)?;
        }
        let held = HeldPlaceholders::hold(temporary.into_iter().map(|one| one.path).collect())?;
        let exists = |path: &Path| path.symlink_metadata().is_ok_and(|found| !found.is_symlink());
        let mounts = Mounts::of(&facts, &exists).map_err(unfit)?;
        change_environment(command.env, self.paths.root());
        let argv = bwrap::argv(self, &mounts, &command, &copies)?;
        Ok(SandboxPrefix { argv, placeholders: held })
    }

    /// The content of the Docker sandbox for an agent. `identity` is the name and the address for commits.
    /// [`ErrorCode::Sandbox`] if the directory, or one of the further paths, cannot be in it.
    pub(crate) fn docker_setup(
        &self,
        docker: &docker::DockerSandbox,
        profile: &Profile,
        identity: (String, String),
    ) -> Result<docker_setup::DockerSetup> {
        let refused = |why: String, hint: &str| Err(Error::new(ErrorCode::Sandbox, why).hint(hint));
        let home = docker.env.get("HOME").map(PathBuf::from).map_or_else(home, Ok)?;
        let project = docker.project.as_path();
        let inner = [resolve(&home), self.paths.root().to_owned()];
        if let Some(inner) = inner.iter().find(|inner| inner.starts_with(project)) {
            let why =
                format!("the Docker sandbox of '{}' would show '{}'", project.display(), inner.display());
            return refused(why, "start the worker in a project's directory, or use --worktree");
        }
        let mut workspaces = vec![];
        if let GitPlace::Linked { common, .. } = facts::repository(project)? {
            workspaces.push(Workspace::writable(&common));
        }
        workspaces.extend(self.spec.writable.iter().map(|path| Workspace::writable(path)));
        let readable = self.spec.readable.iter();
        workspaces.extend(readable.map(|path| Workspace { path: path.clone(), is_read_only: true }));
        if let Some(file) = workspaces.iter().find(|workspace| !workspace.path.is_dir()) {
            let why =
                format!("'{}' is not a directory: a Docker sandbox gets only those", file.path.display());
            return refused(why, "give its directory, or use --sandbox bwrap");
        }
        let shows = |hidden: &&PathBuf| {
            hidden.starts_with(project) || workspaces.iter().any(|shown| hidden.starts_with(&shown.path))
        };
        if let Some(hidden) = self.spec.hidden.iter().find(shows) {
            return refused(
                format!("a Docker sandbox cannot hide '{}'", hidden.display()),
                "use --sandbox bwrap",
            );
        }
        let Some(template) = profile.sandbox.docker_template.clone() else {
            return refused(
                format!("Docker Sandbox has no template for '{}'", profile.name),
                "use --sandbox bwrap",
            );
        };
        let links = profile.sandbox.docker_state.clone();
        Ok(docker_setup::DockerSetup {
            template,
            links,
            home,
            workspaces,
            identity,
            helper: self.helper.clone(),
        })
    }
}

/// Refuses, with [`ErrorCode::Sandbox`], a directory that no bubblewrap sandbox can be for. Used before a worker is
/// replaced.
pub(crate) fn check_directory(cwd: &Path) -> Result<()> {
    let (home, paths) = (resolve(&home()?), Paths::from_env()?);
    let tree = facts::tree(None, cwd)?;
    facts::repository(&tree)?;
    check_tree(&tree, &home, paths.root()).map_err(unfit)
}

fn unfit(error: UnfitTree) -> Error {
    Error::new(ErrorCode::Sandbox, error.to_string())
        .hint("start the worker in a project's directory, or use --worktree")
}

/// Deletes a worker's caches. Package managers make directories that cannot be written.
pub(crate) fn remove_private(paths: &Paths, worker: &str) {
    let dir = sandbox_dir(paths).join(worker);
    for entry in WalkDir::new(&dir).into_iter().flatten().filter(|entry| entry.file_type().is_dir()) {
        let _ = std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o700));
    }
    if let Err(error) = if_exists(std::fs::remove_dir_all(&dir)) {
        tracing::warn!(worker, %error, "cannot delete the caches of its sandbox");
    }
}
