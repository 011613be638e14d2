//! The verbs of a worker.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use swarm_state::model::WorkerName;

use super::format::{Format, PageFormat};

/// The help of `respawn` in long form and in its man page.
pub(super) const RESPAWN_LONG: &str = "\
Start a worker again with the same command, directory, environment, prompt and worktree.

If the worker is live, swarm first stops it and all its processes. With --clean-first, swarm also removes the worktree \
and creates it again. If that would lose work, swarm refuses and stops nothing. Ignored files outside caches are also a \
reason to refuse, unless you set --discard-ignored (swarm clean --help lists the caches). While a respawn is in progress, \
swarm refuses another respawn, a spawn and a clean of the same name. A kill cancels the respawn.

A loop starts again at iteration 1, with the limits as changed by swarm ralph set. The state of the earlier loop \
is kept as NAME.1, NAME.2 and so on. The command follows the loop, or returns with --detach, as `swarm spawn` does.";

/// The workers to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WhichStatus {
    /// Workers that swarm supervises
    Running,
    /// Workers that have ended
    Stopped,
    /// All workers
    #[default]
    All,
}

/// `swarm ls`
#[derive(Debug, Args)]
pub struct Ls {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Workers to list
    #[arg(long, value_enum, default_value_t, value_name = "STATUS")]
    pub status: WhichStatus,
    /// Only workers with this label (repeatable: all must match)
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
}

/// `swarm status`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit status:
  0  swarm supervises the worker: starting, running, waiting, backing_off or
     unreachable.
  1  The worker has ended: stopped, failed or lost.
  2  Unknown worker.")]
pub struct StatusArgs {
    /// Worker name
    pub name: WorkerName,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm peek`
#[derive(Debug, Args)]
pub struct Peek {
    /// Worker name
    pub name: WorkerName,
    /// Number of lines from the end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub lines: u32,
}

/// `swarm logs`
#[derive(Debug, Args)]
pub struct Logs {
    /// Worker name
    pub name: WorkerName,
    /// Keep printing until the worker has ended
    #[arg(short, long)]
    pub follow: bool,
    /// Number of lines from the end [default: all; with --follow: 10]
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<u32>,
    /// Also print the output of earlier runs
    #[arg(long)]
    pub history: bool,
    /// Print only the output of this iteration
    ///
    /// For a worker that is not a loop, N is the number of the run. Both count from 1 since the last spawn or respawn;
    /// --history also prints the output from before.
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["follow", "history"],
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub iteration: Option<u32>,
    /// Output format; json prints one object
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", conflicts_with = "follow")]
    pub format: PageFormat,
}

/// `swarm send`
#[derive(Debug, Args)]
#[command(
    override_usage = "swarm send [OPTIONS] <NAME> <TEXT>...\n       swarm send [OPTIONS] <NAME> -\n       \
        swarm send [OPTIONS] <NAME> --file <FILE>\n       swarm send [OPTIONS] --all <TEXT>...",
    after_long_help = "\
Put options before the text. Everything after its first word is text.

Examples:
  swarm send agent 'run the tests again'
  swarm send --no-enter agent y
  swarm send --keys agent /compact
  git diff | swarm send agent -"
)]
pub struct Send {
    /// Worker name; left out with --all
    #[arg(allow_hyphen_values = true, required_unless_present = "all")]
    pub name: Option<String>,
    /// Text; its words are joined by spaces, - reads standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub text: Vec<String>,
    /// Send the contents of this file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Do not press Enter after the text
    #[arg(long)]
    pub no_enter: bool,
    /// Type key by key instead of pasting, for slash commands
    #[arg(long)]
    pub keys: bool,
    /// Send the text to every live worker
    #[arg(long)]
    pub all: bool,
}

/// `swarm interrupt`
#[derive(Debug, Args)]
pub struct Interrupt {
    /// Worker name
    pub name: WorkerName,
}

/// `swarm eof`
#[derive(Debug, Args)]
pub struct Eof {
    /// Worker name
    pub name: WorkerName,
}

/// `swarm attach`
#[derive(Debug, Args)]
pub struct Attach {
    /// Worker name
    pub name: WorkerName,
    /// Watch only; your keys do not reach the agent
    #[arg(long)]
    pub read_only: bool,
}

/// `swarm kill`
#[derive(Debug, Args)]
pub struct Kill {
    /// Worker names
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Stop every live worker
    #[arg(long)]
    pub all: bool,
    /// Also remove worktrees, unless work would be lost
    #[arg(long)]
    pub rm_worktree: bool,
    /// Remove worktrees even with uncommitted work
    #[arg(long, requires = "rm_worktree")]
    pub force_dirty: bool,
    /// Also delete ignored files outside caches
    #[arg(long, requires = "rm_worktree")]
    pub discard_ignored: bool,
}

/// `swarm respawn`
#[derive(Debug, Args)]
pub struct Respawn {
    /// Worker name
    pub name: WorkerName,
    /// Create the worktree again, unless work would be lost
    #[arg(long)]
    pub clean_first: bool,
    /// Also delete ignored files outside caches
    #[arg(long, requires = "clean_first")]
    pub discard_ignored: bool,
    /// Return without following the loop
    #[arg(short, long)]
    pub detach: bool,
    /// Also print the agent's output (loops only)
    #[arg(long, conflicts_with = "detach")]
    pub stream: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}
