//! `swarm hold` and `swarm release`

use clap::Args;
use swarm_state::model::WorkerName;

pub(super) const HOLD_LONG: &str = "\
Keep swarm away from workers until `swarm release`. swarm types nothing into a held worker, and starts and ends no \
run. A start that has already begun completes, including the checks before the first iteration.

Typing into a worker in swarm attach holds it too, until 30 seconds after you detach. Watching it and `swarm send` do not \
hold it. --iteration-timeout, --max-time, --inactivity-timeout and --question-timeout do not count held time. If a \
turn ends meanwhile, its iteration ends at the release, unless the agent works again by then. If the agent exits by \
itself, its run is checked as usual, and the next one starts after the release. A loop inside an agent's own session \
(swarm session) goes on.

The hold survives a restart of the daemon. swarm kill and swarm respawn end it. If no agent runs, swarm ralph resume \
ends it too. A worker cannot hold or release itself.";

pub(super) const HOLD_AFTER: &str = "\
Examples:
  swarm hold api
  swarm release api";

pub(super) const RELEASE_LONG: &str = "\
End the hold of workers, whether it began by swarm hold or by typing.

The loop goes on where it is: a turn that has ended ends its iteration, and the next iteration starts. If a \
person is still attached, the next key holds the worker again.";

pub(super) const RELEASE_AFTER: &str = "\
Examples:
  swarm release api";

/// `swarm hold` and `swarm release`
#[derive(Clone, Debug, Args)]
pub struct HoldArgs {
    /// Worker names
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<WorkerName>,
}
