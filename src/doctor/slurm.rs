//! Checks the Slurm to which this machine submits jobs.

use std::time::Duration;

use swarm_state::host::HostSpec;
use tokio::time::timeout;

use super::check::Check;
use crate::hosts::slurm::check_tracking;
use crate::paths::Paths;
use crate::settings::Settings;

/// How long Slurm may take.
const SLURM_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks how Slurm tracks the processes of a job; `None` on a machine that submits no jobs.
pub(super) async fn check(paths: &Paths) -> Option<Check> {
    let settings = Settings::load(&paths.user_config(), None, None).unwrap_or_default();
    let submits_here = |host: &HostSpec| host.slurm.is_some() && host.ssh.is_none();
    // Another machine may submit through this one.
    if !settings.hosts.values().any(submits_here) && !paths.slurm_dir().exists() {
        return None;
    }
    let hint = "see which Slurm answers: sinfo";
    Some(match timeout(SLURM_TIMEOUT, check_tracking()).await {
        Ok(Ok(kind)) => Check::ok("slurm", format!("it answers, and tracks jobs with {kind}")),
        Ok(Err(error)) => Check::of("slurm", error, hint),
        Err(_) => Check::fail("slurm", "it does not answer", hint),
    })
}
