//! `swarm ralph resume`

use clap::Args;
use swarm_state::model::WorkerName;

use super::format::PageFormat;

pub(super) const LONG: &str = "Resume a paused or lost loop, or one that ended at a limit.\n\n\
A loop that waits for a usage limit or another outage tries again at once. \
The iteration count continues. If the agent of the current iteration still runs, swarm waits for its end; \
otherwise it starts the next iteration. swarm repeats an iteration that was lost with the tmux server. On a \
full disk, swarm refuses to resume, because it could not save the change.\n\n\
A loop that ended at a limit (iterations, time, cost, tokens or failures) continues with its count, its \
baseline, its snapshots, its worktree and its environment. Raise the limit first with swarm ralph set. Cost, \
tokens, failures and time used so far count; the time between the end and the resume does not. --all \
includes loops that a stop of the daemon paused, but not loops that ended at a limit. To start any finished loop again \
from its first iteration, use swarm respawn.\n\n\
--all --now also continues, before the resets, all loops that wait for a usage limit (swarm quota), and resumes the \
loops that wait for another outage.\n\n\
--env sets a variable for the agent's next runs. --env ANTHROPIC_API_KEY copies the value from your \
environment, so that no process list shows it.";

/// `swarm ralph resume`
#[derive(Debug, Args)]
pub struct RalphResume {
    /// Worker names
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Resume every paused or lost loop
    #[arg(long)]
    pub all: bool,
    /// With --all: also loops that wait for a usage limit
    #[arg(long, requires = "all", conflicts_with = "names")]
    pub now: bool,
    /// Set a variable (repeatable); KEY alone copies your value
    #[arg(long, value_name = "KEY[=VALUE]")]
    pub env: Vec<String>,
    /// Output format; json prints one object per worker and line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}
