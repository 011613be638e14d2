//! The verbs of a worker.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use swarm_state::host::{HostName, split_worker};
use swarm_state::model::{Status, WorkerName};

use super::format::{Format, PageFormat, StatusFormat, whole};

pub(super) const RESPAWN_LONG: &str = "\
Start a worker again with the same command, directory, environment, prompt and worktree.

If the worker is live, swarm first stops it and all its processes. With --clean-first, swarm also removes the \
worktree and creates it again. If that would lose work, swarm refuses and stops nothing. It also refuses if the \
worktree has ignored files that are not caches, unless you set --discard-ignored (swarm clean --help lists the \
caches). While a respawn is in progress, swarm refuses another respawn, a spawn and a clean of the same name. A kill \
cancels the respawn.

A loop starts again at iteration 1, with the limits as changed by swarm ralph set. The state of the earlier loop \
is kept as NAME.1, NAME.2 and so on. The command prints the loop's progress until the loop ends, or returns with \
--detach, as `swarm spawn` does.";

pub(super) const SEND_LONG: &str = "\
Type text into a worker, press Enter, and check that the agent accepted it.

If the agent is still starting, swarm types the text when the agent is ready, after its prompt. In a dialog, swarm \
types only an answer that the dialog shows: the number of a row, a letter in parentheses, the y or n of a question, \
or an empty text, which presses Enter. If swarm has no profile for the agent (see swarm-config(5)), it treats two \
things as a dialog: a numbered list with a cursor mark such as > on one line, and a yes-or-no question whose choices \
end the screen, such as [y/N] or (yes/no). swarm types your answer unchanged: some programs require the whole word yes or no.

The command fails if the text could not be typed or may have been lost. If the program has not read the text yet, the \
terminal queues it; the command then prints a warning and exits with 0.

swarm does not send control characters and escape sequences, and warns about them. Tabs and line ends are sent, except \
for one line end after the text. With --keys, tabs are not sent.

Put options before the text. After the first word that is not an option, everything is sent literally. \
swarm send NAME --help sends --help.";

pub(super) const KILL_LONG: &str = "\
Stop workers and all their processes.

swarm sends SIGTERM to the processes, and after 5 seconds SIGKILL to those that remain. A killed loop is finished; \
swarm respawn starts it again from the first iteration.

The worktree stays unless you set --rm-worktree. swarm then also deletes its branch, if swarm created the branch and \
it is merged. To remove a worktree with uncommitted work, also set --force-dirty. To remove one with ignored files \
that are not caches, also set --discard-ignored (swarm clean --help lists the caches).";

/// The workers to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhichStatus {
    /// All workers.
    #[default]
    All,
    /// Those with which swarm itself goes on.
    Live,
    /// Those that have ended.
    Finished,
    /// Those with one status.
    One(Status),
}

impl ValueEnum for WhichStatus {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::All,
            Self::Live,
            Self::Finished,
            Self::One(Status::Starting),
            Self::One(Status::Running),
            Self::One(Status::Waiting),
            Self::One(Status::Retrying),
            Self::One(Status::Paused),
            Self::One(Status::Done),
            Self::One(Status::Failed),
            Self::One(Status::Killed),
            Self::One(Status::Lost),
            Self::One(Status::Unreachable),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::All => PossibleValue::new("all").help("All workers"),
            Self::Live => {
                PossibleValue::new("live").help("Starting, running, waiting, retrying or unreachable")
            }
            Self::Finished => PossibleValue::new("finished").help("Done, failed or killed"),
            Self::One(status) => PossibleValue::new(status.as_str()),
        })
    }
}

/// `swarm ls`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Columns:
  ITER  Iteration of a loop, and its maximum
  AGE   Time since the spawn

Status:
  starting     The agent is starting and accepts no input yet, or swarm runs
               the checks of a loop before the first iteration.
  running      The agent runs, or swarm runs the checks after an iteration.
  waiting      The agent waits for a person, or swarm waits for the end of a
               usage limit or another outage.
  retrying     swarm waits before it starts the agent again.
  unreachable  tmux does not answer; the state of the agent is unknown.
  paused       The loop is paused and has no agent. swarm ralph resume starts
               its next iteration.
  done         The loop is complete, or the command exited with 0.
  failed       The worker finished without success.
  killed       A person or script killed the worker.
  lost         The tmux server is gone. swarm ralph resume (a loop) or swarm
               respawn starts the worker again.

A worker with one of the first five statuses is live; a done, failed or killed one is finished. The option --all of \
kill and wait selects live workers and paused loops, the one of send live workers, the one of clean finished ones.

With --all-hosts, all hosts of the settings are asked at once. After one second, a host that has not answered shows \
the workers of its last answer, marked `unreachable for 4m`. Their agents continue.

WHY is the cause of the status in a few words. On a terminal of 120 columns or more, IN ITER is the time since the \
current iteration started, and COST is what the loop has cost so far. `swarm status NAME` shows the reason of a status.")]
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
    /// Also list the workers of all remote hosts
    #[arg(long, conflicts_with = "on")]
    pub all_hosts: bool,
    /// Show the table until Ctrl-C, and update it every 2 seconds
    #[arg(long, conflicts_with = "format")]
    pub watch: bool,
}

/// `swarm status`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit status:
  0  The worker is live (starting, running, waiting, retrying or unreachable)
     or a paused loop. swarm ls --help explains each status.
  1  The worker is done, failed, killed or lost.
  2  Unknown worker.
With --format tmux, it is always 0.

To see the number of workers that need you in the status line of tmux, add to ~/.tmux.conf:
  set -g status-right '#(swarm status --format tmux)'")]
pub struct StatusArgs {
    /// Worker name; with --format tmux, none
    #[arg(required_unless_present = "format", required_if_eq_any = [("format", "text"), ("format", "json")])]
    pub name: Option<WorkerName>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: StatusFormat,
}

/// `swarm peek`
#[derive(Debug, Args)]
pub struct Peek {
    /// Worker name
    pub name: WorkerName,
    /// Number of lines from the end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = whole(1..=u32::MAX))]
    pub lines: u32,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
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
    #[arg(short = 'n', long, value_name = "N", value_parser = whole(0..=u32::MAX))]
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
        value_parser = whole(1..=u32::MAX)
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
        swarm send [OPTIONS] --file <FILE> <NAME>\n       swarm send [OPTIONS] --all <TEXT>...",
    after_long_help = "\
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
    /// Text; spaces join its words, and - reads standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub text: Vec<String>,
    /// Send the contents of this file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Do not press Enter after the text
    #[arg(long)]
    pub no_enter: bool,
    /// Type the text key by key; slash commands need this
    #[arg(long)]
    pub keys: bool,
    /// Send the text to every live worker (see swarm ls --help)
    ///
    /// The command fails for a worker that shows a dialog.
    #[arg(long)]
    pub all: bool,
    /// Output format; json prints one object per worker and line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

impl Send {
    /// Removes the host from `HOST/NAME` and returns it. With --all, the first word is text.
    pub(super) fn take_host(&mut self) -> Option<Option<HostName>> {
        let (host, name) = split_worker(self.name.as_ref().filter(|_| !self.all)?).ok()?;
        self.name = Some(name.to_string());
        Some(host)
    }
}

/// Every verb whose only argument is a worker.
#[derive(Debug, Args)]
pub struct OneWorker {
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
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Exit status:
  0  The worker is stopped, or was finished before.
  1  The worker could not be stopped, or its worktree remains.
  2  Unknown worker.
  5  The worker did not stop within 60 seconds.

With several names, swarm stops each worker separately. The exit status is the highest of the results.")]
pub struct Kill {
    /// Worker names
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Stop every live worker and paused loop
    #[arg(long)]
    pub all: bool,
    /// Also remove worktrees, unless work would be lost
    #[arg(long)]
    pub rm_worktree: bool,
    /// Remove worktrees even with uncommitted work
    #[arg(long, requires = "rm_worktree")]
    pub force_dirty: bool,
    /// Also delete ignored files that are not caches
    #[arg(long, requires = "rm_worktree")]
    pub discard_ignored: bool,
    /// Output format; json prints one object per worker and line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm respawn`
#[derive(Debug, Args)]
pub struct Respawn {
    /// Worker name
    pub name: WorkerName,
    /// Create the worktree again, unless work would be lost
    #[arg(long)]
    pub clean_first: bool,
    /// Also delete ignored files that are not caches
    #[arg(long, requires = "clean_first")]
    pub discard_ignored: bool,
    /// For a loop: return without printing its progress
    #[arg(short, long)]
    pub detach: bool,
    /// Also print the agent's output (loops only)
    #[arg(long, conflicts_with = "detach")]
    pub stream: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}
