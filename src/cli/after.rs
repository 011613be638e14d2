//! The verbs that wait for workers, tell what happens to them, and forget them.

use clap::{Args, ValueEnum};
use swarm_state::model::WorkerName;

use super::PageFormat;

pub(super) const WAIT_LONG: &str = "\
Wait until something holds for workers.

With several workers it waits until it is decided for each of them. Each is told in a line as soon as it is \
decided: on standard output where it came true and ended well, on standard error where not. A loop \
that is paused is waited for; a worker that is lost is not. Waiting goes on when the daemon is restarted or \
killed.";

pub(super) const EVENTS_LONG: &str = "\
Tell what happens to workers: runs that start and end, iterations, waits for a person, warnings.

Without --follow it prints what the daemon still keeps (the last 10000 notices since it started) and ends. With \
--follow it goes on with what happens from now on, over restarts of the daemon, until its reader is gone or the \
daemon is stopped.

With --format json each line is one object. `seq` grows from notice to notice, over restarts of the daemon too; \
`kind` says what happened, and the other fields belong to it (swarm-protocol(7)).";

pub(super) const CLEAN_LONG: &str = "\
Forget workers that are over, and remove what is left of them.

That is everything that bears the name: the record, the logs, the prompts, and the state of its loop and of \
earlier loops of that name. Its worktree goes too, unless something in it would be lost: changed or untracked \
files, an operation that is not finished (a rebase, a merge), a commit that no branch holds, a repository in it (also one that git \
ignores) with such work or with commits that none of its remotes has. Then all of the worker stays, and what is in \
the way is named; so it is while something that the worker left running works in it. --force-dirty deletes such work. \
A branch goes only when swarm made it and it is merged; stashes stay in the repository.

Of the files that git ignores, swarm deletes caches with the worktree and lists them: directories called target, node_modules, \
__pycache__, .venv, .tox, .nox, .eggs, .pytest_cache, .mypy_cache, .ruff_cache, .gradle, .next, .nuxt, .svelte-kit, \
.turbo or .parcel-cache, directories with a CACHEDIR.TAG or a pyvenv.cfg, and files that end in .pyc, .pyo, .o or \
.class, or are called .DS_Store. If there is any other ignored file, such as .env, a \
database or a result, swarm keeps the worktree and lists the file with its size. --discard-ignored deletes such files \
too; --force-dirty alone does not.

A worker that is not over is refused: swarm kill ends it. One of an earlier swarm is only taken from the list, \
once it has ended there and when it is named; --all leaves it.

With several names each is cleaned by itself, and the exit status is the highest of theirs: 0 cleaned, 1 refused, 2 \
no worker of that name.";

/// What to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WaitFor {
    /// It is over; a loop: the whole loop is
    #[default]
    Exit,
    /// It is over, and ended well
    Done,
    /// The agent shows its input box
    Ready,
    /// The agent's turn is over: it said so, or its input box has been there unchanged for a few seconds
    Idle,
    /// It waits for a person: a dialog, a login, a trust question
    Waiting,
}

impl WaitFor {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Done => "done",
            Self::Ready => "ready",
            Self::Idle => "idle",
            Self::Waiting => "waiting",
        }
    }
}

/// `swarm wait`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Ready and idle are read from the screen; of an agent that swarm does not know ([agents] in the settings) they \
may never come true.

Exit status:
  0  It came true for all, and all that are over ended well. With --all and no live worker: at once, with a note.
  1  One ended badly, was killed or is lost; or it is over and it can not come true any more.
  2  There is no worker of that name; then none is waited for.
  3  The daemon was stopped meanwhile (swarm daemon stop).
  5  The time-out ran out; who is still out is named.

Examples:
  swarm wait build test && swarm wait deploy --for done --timeout 3600
  swarm send agent 'run the tests' && swarm wait agent --for idle && swarm peek agent")]
pub struct Wait {
    /// The workers
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Every worker that is live now
    #[arg(long)]
    pub all: bool,
    /// What to wait for
    #[arg(long = "for", value_enum, default_value_t, value_name = "WHAT")]
    pub what: WaitFor,
    /// How long at most [default: for ever]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// How to print it; json is one object a worker, one a line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm events`
#[derive(Debug, Args)]
#[command(after_long_help = "\
What --since guarantees: you get every notice after SEQ, or you are told. Notices are kept in the daemon's memory. \
When SEQ is older than what it keeps, or of an earlier daemon, the first line says so and holds how all the \
workers are now (kind `snapshot`, with `gap` true; its `seq` is that of the last notice which that state includes); \
then come the notices that are kept. The same line comes when something was missed while following, and, with \
`gap` false, at the start of --follow without --since. --since 0 means all that is kept.

Exit status: 0, also when the reader went away; 2 for a name that no worker has; 3 when the daemon was stopped.

Examples:
  swarm events --follow --format json | jq -c 'select(.kind == \"waiting\")'
  swarm events agent --since 1768469700000042")]
pub struct Events {
    /// Only these workers
    #[arg(value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Go on with what happens from now on
    #[arg(short, long)]
    pub follow: bool,
    /// Begin after this notice [default: all that is kept; with --follow from now on]
    #[arg(long, value_name = "SEQ")]
    pub since: Option<u64>,
    /// How to print it; json is one object a line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm clean`
#[derive(Debug, Args)]
pub struct Clean {
    /// The workers
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Every worker that is over
    #[arg(long)]
    pub all: bool,
    /// Leave worktrees and their branches where they are
    #[arg(long, conflicts_with = "force_dirty")]
    pub keep_worktree: bool,
    /// Remove a worktree even if it holds uncommitted work
    #[arg(long)]
    pub force_dirty: bool,
    /// Delete ignored files outside caches too
    #[arg(long, conflicts_with = "keep_worktree")]
    pub discard_ignored: bool,
}
