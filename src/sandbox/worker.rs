//! The sandbox of a worker as data, and a command that is to run in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use swarm_state::profiles::Profile;
use swarm_state::sandbox::{SandboxKind, SandboxSpec};
use swarm_state::spec::WorkerSpec;

use super::docker::DockerSandbox;
use super::placeholders::HeldPlaceholders;
use crate::paths::Paths;

/// The directory for what sandboxes keep, in swarm's directory.
pub(super) fn sandbox_dir(paths: &Paths) -> PathBuf {
    paths.root().join("sandbox")
}

#[derive(Clone, Debug)]
pub(crate) struct WorkerSandbox {
    pub(crate) spec: SandboxSpec,
    pub(crate) worker: String,
    /// swarm's files.
    pub(crate) paths: Paths,
    /// swarm's program for the inside.
    pub(crate) helper: PathBuf,
    /// Files that only the checks of the daemon may see.
    pub(crate) hidden: Option<PathBuf>,
    /// The tmux socket of the worker, if it is not swarm's own.
    pub(crate) tmux_socket: Option<PathBuf>,
    /// Files that the user named in the commands of the worker.
    pub(crate) named: Vec<PathBuf>,
    /// The Docker sandbox of its directory, if that is its kind.
    pub(crate) docker: Option<DockerSandbox>,
}

impl WorkerSandbox {
    /// A sandbox that hides and shows nothing of its own.
    pub(crate) fn new(spec: SandboxSpec, worker: &str, paths: &Paths, helper: &Path) -> Self {
        Self {
            spec,
            worker: worker.to_owned(),
            paths: paths.clone(),
            helper: helper.to_owned(),
            hidden: None,
            tmux_socket: None,
            named: vec![],
            docker: None,
        }
    }

    /// The same for a worker in `project`. `env` is the environment of its processes outside.
    pub(crate) fn of_project(
        self,
        project: &Path,
        spec: &WorkerSpec,
        env: &BTreeMap<String, String>,
    ) -> Self {
        // No worker has a name with a dot.
        let place = || (self.spec.program.as_path(), sandbox_dir(&self.paths).join("docker.d"));
        let is_docker = self.spec.kind == SandboxKind::Docker;
        let docker = is_docker.then(|| DockerSandbox::new(place(), project, env, &spec.env_names));
        Self { docker, ..self }
    }

    /// The sandbox for held-out checks, which may read their files.
    pub(crate) fn for_held_out(&self, commands: &[String]) -> Self {
        let mut sandbox = Self { hidden: None, ..self.clone() };
        sandbox.named.extend(self.hidden.clone());
        sandbox.named.extend(named_files(commands.iter().flat_map(|command| command.split_whitespace())));
        sandbox
    }
}

/// The files that words name by an absolute path. The words have to be the user's, and not from a file that an agent
/// can write.
pub(crate) fn named_files<'a>(words: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
    words.map(PathBuf::from).filter(|path| path.is_absolute() && path.is_file()).collect()
}

/// A command that is to run in a sandbox.
pub(crate) struct SandboxedCommand<'a> {
    pub(crate) cwd: &'a Path,
    /// The directory that it may write, if that is not the working tree that holds `cwd`.
    pub(crate) tree: Option<&'a Path>,
    /// The profile of the agent; `None` for a check, which does not need the agent's files.
    pub(crate) profile: Option<&'a Profile>,
    /// The tree that a room was made from. It may be read.
    pub(crate) origin: Option<&'a Path>,
    /// The directory of the proxy's socket, for a sandbox with a list of allowed hosts.
    pub(crate) proxy: Option<PathBuf>,
    /// The settings file that swarm passes to the agent.
    pub(crate) settings: Option<PathBuf>,
    /// How long a check may take.
    pub(crate) limit: Option<Duration>,
    pub(crate) env: &'a mut BTreeMap<String, String>,
}

/// The way into a sandbox, which stays open as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct SandboxPrefix {
    /// The words in front of the command.
    pub(crate) argv: Vec<String>,
    /// Files that exist only for the sandbox.
    pub(crate) placeholders: HeldPlaceholders,
}
