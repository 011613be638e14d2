//! Puts the agent of a run into its sandbox, and prepares and leaves a Docker sandbox. Used by the driver.

use std::path::Path;

use swarm_state::docker::{self, DEFAULT_IDENTITY, INNER_PROGRAM};
use swarm_state::engine::{Ended, SpawnError};
use swarm_state::model::{Exit, Run};
use swarm_state::notice::IterationExit;
use swarm_state::sandbox::SandboxNet;
use swarm_state::spec::WorkerSpec;

use super::context::RunContext;
use crate::daemon::messages::RunReport;
use crate::error::{Error, ErrorCode, Result, sentence};
use crate::git;
use crate::hooks::passed::{HookProgram, SETTINGS_FILE};
use crate::loops::{LoopRun, hurried};
use crate::sandbox::SandboxedCommand;
use crate::sandbox::docker_setup::hooks_run_inside;
use crate::sandbox::hosts::{self, PaneProxy};
use crate::wrapper::LaunchSpec;

/// The exit statuses from this one on are those of signals.
const SIGNAL_STATUS: i32 = 128;

/// Changes the launch so that the agent starts in the sandbox of its worker, if it has one. `dir` is the run's folder.
/// Fails when the sandbox cannot be built.
pub(super) async fn enter(
    context: &RunContext,
    (spec, run): (&WorkerSpec, Run),
    dir: &Path,
    mut launch: LaunchSpec,
) -> Result<LaunchSpec> {
    let Some(sandbox) = context.worker_sandbox(spec, &launch.cwd) else { return Ok(launch) };
    if let Some(docker) = &sandbox.docker {
        let program = spec.profile.place_of_program(&launch.argv);
        launch.argv = docker.agent_argv(launch.argv.get(program..).unwrap_or_default());
        return Ok(launch);
    }
    let (profile, settings) = (spec.profile.clone(), dir.join(SETTINGS_FILE));
    if sandbox.spec.net == SandboxNet::Allow {
        let cannot = |error| Error::system("cannot prepare the proxy of the sandbox", error);
        hosts::prepare(&dir.join(hosts::PROXY_DIR)).map_err(cannot)?;
        hosts::write_hosts(dir, &sandbox.spec.hosts).map_err(cannot)?;
        let (worker, daemon) = (sandbox.worker.clone(), sandbox.paths.socket());
        launch.proxy = Some(PaneProxy { dir: dir.to_owned(), daemon, worker, run: run.0 });
    }
    let prepared = tokio::task::spawn_blocking(move || {
        let prefix = sandbox.prepare(SandboxedCommand {
            cwd: &launch.cwd,
            tree: None,
            profile: Some(&profile),
            origin: None,
            proxy: launch.proxy.as_ref().map(|proxy| proxy.dir.join(hosts::PROXY_DIR)),
            settings: Some(settings),
            limit: None,
            env: &mut launch.env,
        })?;
        launch.argv.splice(0..0, prefix.argv);
        // The wrapper holds them for the run.
        launch.placeholders = prefix.placeholders.paths();
        Ok(launch)
    });
    prepared.await.map_err(|e| Error::system("cannot prepare the sandbox", e))?
}

/// The error of a run whose sandbox failed. A client that waits for the run gets it with its own exit status.
pub(super) fn spawn_error(context: &RunContext, error: &Error) -> SpawnError {
    if error.code == ErrorCode::Sandbox {
        context.report(RunReport::NoSandbox);
    }
    SpawnError::Other(sentence(error))
}

/// Makes the Docker sandbox of a worker ready for a run in `cwd`, before anything is written or checked there. Fails
/// when docker fails, or the worker was killed meanwhile.
pub(super) async fn open_docker(context: &RunContext, spec: &WorkerSpec, run: Run, cwd: &Path) -> Result<()> {
    let Some(sandbox) = context.worker_sandbox(spec, cwd) else { return Ok(()) };
    let Some(docker) = sandbox.docker.clone() else { return Ok(()) };
    let identity = git::identity(cwd).await;
    let identity = identity.unwrap_or_else(|| (DEFAULT_IDENTITY.0.to_owned(), DEFAULT_IDENTITY.1.to_owned()));
    let (name, spec_of) = (docker.name.clone(), sandbox.spec.clone());
    let profile = spec.profile.clone();
    let opening = tokio::task::spawn_blocking(move || {
        let setup = sandbox.docker_setup(&docker, &profile, identity)?;
        docker.open(&setup)
    });
    tokio::select! {
        opened = opening => opened.map_err(|e| Error::system("cannot prepare the sandbox", e))??,
        () = hurried(&context.hurry) => return Err(Error::invalid("it was killed")),
    }
    if let Some(command) =
        docker::network_command(&name, spec_of.net, &spec_of.hosts).filter(|_| run == Run(1))
    {
        context.report(RunReport::AtSpawn(format!(
            "the network of the sandbox is not limited until you run: {command}"
        )));
    }
    Ok(())
}

/// How the hooks of an agent find swarm's program; `None` if it cannot be in the sandbox.
pub(super) fn hook_program<'a>(spec: &WorkerSpec, helper: &'a Path) -> Option<HookProgram<'a>> {
    if !spec.is_in_docker() {
        return Some(HookProgram { path: helper, is_inline: false });
    }
    hooks_run_inside(helper).then(|| HookProgram { path: Path::new(INNER_PROGRAM), is_inline: true })
}

/// Leaves the Docker sandbox of a run that ended. Stops the sandbox if the agent did not exit by itself: it
/// may still run inside.
pub(super) async fn leave_docker(
    context: &RunContext,
    spec: &WorkerSpec,
    cwd: &Path,
    exit: Exit,
    end: Option<&Ended>,
) {
    let Some(docker) = context.worker_sandbox(spec, cwd).and_then(|sandbox| sandbox.docker) else { return };
    let has_exited = matches!(exit, Exit::Code(code) if code < SIGNAL_STATUS)
        && end.is_none_or(|end| matches!(end.exit, IterationExit::Exit(_)));
    if !context.is_hurried() {
        docker.wait_for_sync().await;
    }
    if !has_exited || context.is_hurried() {
        let stopped = tokio::task::spawn_blocking(move || docker.stop()).await;
        if let Ok(Err(error)) = stopped {
            let why = format!("the agent may still run in its sandbox: {error}");
            context.warn(why);
        }
    }
}

/// Permits a person to edit the task list of a loop, and reports the edits of the agent that were undone.
pub(super) fn open_task_files(context: &RunContext, loop_run: &LoopRun) {
    for message in loop_run.open_task_files() {
        context.warn(message);
    }
}

/// Records the files of a Docker sandbox when a run was evaluated.
pub(super) async fn note_files(context: &RunContext, spec: &WorkerSpec, cwd: &Path) {
    if let Some(docker) = context.worker_sandbox(spec, cwd).and_then(|sandbox| sandbox.docker) {
        drop(tokio::task::spawn_blocking(move || docker.note_files()).await);
    }
}
