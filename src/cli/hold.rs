//! `swarm hold` and `swarm release`

use clap::Args;
use swarm_state::model::WorkerName;

/// The help of `hold` in long form and in its man page.
pub(super) const HOLD_LONG: &str = "\
Leave workers to yourself until swarm release: swarm types nothing there, starts no iteration and ends none.

Typing into a worker in swarm attach holds it too, until 30 seconds after you detach. Watching does not, with or \
without --read-only, and neither does swarm send. While a worker is held, no limit of its loop counts the time: not \
the iteration timeout, the time of the loop, inactivity or an open question. A run that ends by itself is checked as \
usual; the next one starts after the release. A turn that has ended meanwhile ends its iteration then, unless you gave \
the agent something else to do. A loop inside an agent's own session (swarm session) goes on.

The hold survives a restart of the daemon. swarm kill and swarm respawn end it, and so does swarm ralph resume if no \
agent runs. A worker cannot hold or release itself.";

/// `swarm hold`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swarm hold api
  swarm release api")]
pub struct HoldArgs {
    /// Worker names
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<WorkerName>,
}

/// The help of `release` in long form and in its man page.
pub(super) const RELEASE_LONG: &str = "\
End the hold of workers, whether it began by swarm hold or by typing.

The loop goes on where it is: a turn that has ended ends its iteration, and the next iteration starts. A person who is \
still attached and types again holds the worker again.";

/// `swarm release`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swarm release api")]
pub struct ReleaseArgs {
    /// Worker names
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<WorkerName>,
}
