//! Puts the agent of a run into its sandbox. Used by the driver.

use std::path::Path;

use swarm_state::model::Run;
use swarm_state::sandbox::SandboxNet;
use swarm_state::spec::WorkerSpec;

use super::context::RunContext;
use crate::error::{Error, Result};
use crate::hooks::passed::SETTINGS_FILE;
use crate::sandbox::SandboxedCommand;
use crate::sandbox::hosts::{self, PaneProxy};
use crate::wrapper::LaunchSpec;

/// Changes the launch so that the agent starts in the sandbox of its worker, if it has one. `dir` is the run's folder.
///
/// # Errors
/// When the sandbox cannot be built.
pub(super) async fn enter(
    context: &RunContext,
    (spec, run): (&WorkerSpec, Run),
    dir: &Path,
    mut launch: LaunchSpec,
) -> Result<LaunchSpec> {
    let Some(sandbox) = context.worker_sandbox(spec) else { return Ok(launch) };
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
            env: &mut launch.env,
        })?;
        launch.argv.splice(0..0, prefix.argv);
        // The wrapper holds them for the run.
        launch.placeholders = prefix.placeholders.paths();
        Ok(launch)
    });
    prepared.await.map_err(|e| Error::system("cannot prepare the sandbox", e))?
}
