//! The verbs that wait for workers, show their events, and delete them.

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use swarm_state::model::WorkerName;
use swarm_state::notice::Entry;

use super::format::PageFormat;
pub use crate::duration::Since;
use crate::duration::parse_duration;
use crate::duration::parse_since;

pub(super) const WAIT_LONG: &str = "\
Wait until workers reach a state.

With several workers, the command waits for each of them. It prints one line for a worker as soon as the result is \
known: on standard output if the worker reached the state, otherwise on standard error.

The command keeps waiting for a paused loop, but not for a lost worker. It also waits through a restart or crash of \
the daemon; `swarm daemon stop` ends the wait (exit status 3).";

pub(super) const EVENTS_LONG: &str = "\
Show events: runs that start and end, iterations, waits for a person, warnings.

Without --follow, the command prints the stored events and exits. swarm stores the last 10000 events or 4 MiB of them, \
also across restarts and crashes of the daemon, and after a worker was deleted. With --follow, the command prints new \
events as they happen. It continues when the daemon restarts. It exits when its reader goes away or the daemon is \
stopped.

--since accepts a time of day (22:00, the last one that has passed), a time span (8h: since eight hours ago), a date (2026-01-15), a \
date and time (RFC 3339, or without offset), or the number of an event. Times without an offset are in your time zone.

With --notify, which implies --follow, your terminal also shows the notifications of [notify] in your settings (see swarm-config(5)), with the \
escape sequence OSC 9 and a bell. In tmux this requires `set -g allow-passthrough on`.

With --format json, each line is one object. `seq` grows from event to event, also across restarts of the daemon. \
`kind` names the event; the other fields depend on it (see swarm-json(7)).";

pub(super) const CLEAN_LONG: &str = "\
Delete finished workers and their files.

swarm deletes the worker's record, logs and prompts, and the state of its loop and of earlier loops with that name. \
Its events stay. swarm refuses to delete a worker that is live (see swarm ls --help), a \
paused loop or a lost loop; stop it first with swarm kill.

swarm also removes the worker's worktree, unless work would be lost. Work is:
  - changed or untracked files
  - an unfinished operation (a rebase, a merge)
  - a commit that no branch contains
  - any of these in a nested repository, even in an ignored one, and commits
    of a nested repository that none of its remotes has

If there is work, swarm keeps the worker with all its files and lists the work. --force-dirty deletes the \
worktree with this work. swarm also keeps the worker while one of its processes still uses the worktree. swarm deletes the branch of the \
worktree only if swarm created the branch and the branch is merged. Stashes stay in the repository.

swarm deletes ignored caches together with the worktree and prints their names. Caches are:
  - directories called target, node_modules, __pycache__, .venv, .tox, .nox,
    .eggs, .pytest_cache, .mypy_cache, .ruff_cache, .gradle, .next, .nuxt,
    .svelte-kit, .turbo or .parcel-cache
  - directories with a CACHEDIR.TAG or a pyvenv.cfg
  - files that end in .pyc, .pyo, .o or .class, or are called .DS_Store

If there is another ignored file, such as .env or a database, swarm keeps the worker and lists the file with its \
size. --discard-ignored deletes such files too; --force-dirty alone does not.

swarm deletes the snapshots of the worker's loops (the refs under refs/swarm/NAME/) if a branch of yours has the files \
of the last one: you merged or committed them. Branches called swarm/... do not count. Otherwise swarm keeps the \
snapshots and prints their ref; --discard deletes them too. The snapshots of earlier iterations are deleted together \
with the last one.

A worker of swarm's Python predecessor is only removed from the list, after it has ended. --all skips such workers; \
give the name.";

/// The state to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WaitFor {
    /// The worker, or its whole loop, has finished with success
    #[default]
    Exit,
    /// Same as exit
    Done,
    /// The agent shows its input box
    Ready,
    /// The agent's turn has ended: reported by its hook, or its input box has been quiet for a few seconds
    Idle,
    /// The agent waits for a person: a dialog, a login, a question
    Waiting,
}

/// `swarm wait`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without hooks, swarm detects the states ready and idle on the screen. A worker whose agent has no profile (see \
swarm-config(5)) may never reach them.

Exit status:
  0  Every worker reached the state. A worker finishes with success if its
     command exits with 0, its done pattern matches or its loop exits with 0.
     With --all and nothing to wait for, the command prints a note and exits.
  1  A worker failed, was killed or is lost, or it finished before it reached
     the state.
  2  A name is unknown. The command then waits for none of the workers.
  3  The daemon was stopped (swarm daemon stop).
  5  The timeout expired. The command names the workers it still waited for.

Examples:
  swarm wait build test && swarm wait deploy --timeout 1h
  swarm send agent 'run the tests' && swarm wait agent --for idle")]
pub struct Wait {
    /// Worker names
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Wait for every live worker and paused loop
    #[arg(long)]
    pub all: bool,
    /// State to wait for
    #[arg(long = "for", value_enum, default_value_t, value_name = "WHAT")]
    pub what: WaitFor,
    /// Maximum time to wait (90s, 10m, 8h) [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub timeout: Option<u64>,
    /// Output format; json prints one object per worker and line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// The kinds of lines that are not events.
const OTHER_KINDS: [&str; 2] = ["missing", "snapshot"];

/// `swarm events`
#[derive(Debug, Args)]
#[command(after_long_help = "\
If events are missing, a line says so at the place where they are missing (kind `missing`; `reason` is dropped, \
unwritten or damaged). Events are dropped when there are newer ones to store, unwritten if the disk was full, and \
damaged if the log cannot be read, for example after a power cut. A power cut can also lose the events of the last \
seconds without a line.

With --since SEQ, you get every notice after SEQ. If notices are missing, or if SEQ is from another event log, the \
first line has the current state of all workers (kind `snapshot`, `gap` true; its `seq` is that of the last notice that \
this state includes). The command prints the same line when it missed notices while following. The line also appears at \
the start of --follow without --since, with `gap` false.

Kinds:
  runs        started, ready, idle, prompt_sent, prompt_failed, waiting,
              held, released, done_pattern_matched, run_ended, stopped, lost,
              cleaned, warning
  iterations  iteration_started, iteration_ended, iteration_failed,
              inactivity, inactivity_extended, out_of_time, outage,
              story_started, check_started, checked, gates_missed,
              gates_held
  loops       loop_complete, loop_failed, paused, resumed
  the log     missing, snapshot (always printed; --kind can omit the others)

Exit status:
  0  Success, also if the reader went away
  2  Unknown worker
  3  The daemon was stopped

Examples:
  swarm events --since 22:00 --kind loop_failed --kind warning
  swarm events agent --since 1768469700000042
  swarm events --follow --format json | jq -c 'select(.kind == \"waiting\")'")]
pub struct Events {
    /// Workers to show [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// The same as NAME (repeatable)
    #[arg(long = "worker", value_name = "NAME")]
    pub workers: Vec<WorkerName>,
    /// Only events of this kind (repeatable) [default: all]
    #[arg(long = "kind", value_name = "KIND", value_parser = PossibleValuesParser::new(Entry::KINDS.iter().chain(&OTHER_KINDS).copied()), hide_possible_values = true)]
    pub kinds: Vec<String>,
    /// Keep printing new events
    #[arg(short, long)]
    pub follow: bool,
    /// Show notifications in your terminal too; implies --follow
    #[arg(long)]
    pub notify: bool,
    /// Only events since TIME (22:00, 8h) or after number SEQ [default: all; with --follow: now]
    #[arg(long, value_name = "TIME|SEQ", value_parser = parse_since)]
    pub since: Option<Since>,
    /// Output format; json prints one object per line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm clean`
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Exit status:
  0  Deleted
  1  Refused
  2  Unknown worker

With several names, swarm deletes each worker separately. The exit status is the highest of the results.")]
pub struct Clean {
    /// Worker names
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Delete every finished worker
    #[arg(long)]
    pub all: bool,
    /// Keep worktrees and their branches
    #[arg(long, conflicts_with = "force_dirty")]
    pub keep_worktree: bool,
    /// Delete worktrees even if work is lost (see --help)
    #[arg(long)]
    pub force_dirty: bool,
    /// Also delete ignored files that are not caches
    #[arg(long, conflicts_with = "keep_worktree")]
    pub discard_ignored: bool,
    /// Delete snapshots even if no branch has the latest files
    #[arg(long)]
    pub discard: bool,
    /// Output format; json prints one object per worker and line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}
