//! The verbs of a worker.

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, PossibleValue};
use clap::{Args, ValueEnum};
use swarm_state::model::{PromptVia, RestartWhen, WorkerName};

use super::{BudgetArgs, Format, GateArgs, PageFormat};
use crate::settings;

/// The help of `spawn` in long form and in its man page.
pub(super) const SPAWN_LONG: &str = "\
Start an agent in a tmux window of its own and look after it.

Without --ralph the command returns as soon as the agent runs; look at it with `swarm attach NAME`.

With --restart a worker that ends is started again, after 1, 2, 4, 8 seconds and so on up to five minutes: \
with on-failure after every end but exit status 0 (a signal, a pane that vanished and a tmux server that \
went away are failures too), with always after every end. Exit status 0, and a run of ten minutes, start the \
count anew; after --max-restarts restarts in a row the worker is failed. A kill and a done pattern that \
matched are the end; but a run that fails has failed, whatever it printed. While the daemon is stopped \
nothing is started; the waits go on where they were. Each run gets the environment and the prompt of the first; a prompt file is \
read afresh.

With --ralph the agent is started again each time it ends, or when its screen has not changed for the \
inactivity time-out; each start is an iteration with a fresh context, and each reads the prompt file \
afresh. The command follows the loop and ends with its result: 0 when the done pattern matched or all \
iterations are used, 1 when the loop failed. Closing the terminal does not end the loop. Ctrl-C pauses \
it: the current agent may finish, no other is started; a second Ctrl-C leaves at once. With --detach the \
command returns when the first agent runs; with a --check or a --promise already when the base line is begun, since its \
checks may take long: whether an agent ever ran is then for `swarm why` and `swarm wait` to say.

Claude Code and Codex get hooks for the run (as --settings FILE, into which your own --settings are joined, and as \
-c arguments); no file of yours is touched. By them an agent tells that it has its prompt, that its turn is over, that it \
asks for something, that its API failed it, and that its context is full. What a person would see then: an interactive \
iteration ends a second after the agent's turn, unless another hook or a background task keeps it going; it ends too \
when its context is full; an API error fails it or, when it is a usage limit or an outage, is waited for; `waiting` says \
what for. A command that runs once (claude -p, codex exec) ends by itself as ever. Without hooks the screen alone is gone by; \
hooks = \"off\" under [agents.claude] of the settings turns them off.";

/// The help of `respawn` in long form and in its man page.
pub(super) const RESPAWN_LONG: &str = "\
Start a worker once more, as it was spawned: the same command, directory, environment, prompt and worktree.

A worker that lives is ended first, with every process it started. One that has ended, failed, was killed or \
lost needs nothing before. With --clean-first its worktree is removed and made again; when work in it would be \
lost, that is refused and nothing is ended. Ignored files outside caches are a reason to refuse too, unless \
--discard-ignored is given (swarm clean --help lists the caches). While one respawn of a worker is under way, another one is refused, \
and so are a spawn and a clean of its name; a kill calls it off.

A loop starts afresh at its first iteration, with the limits that were set since it was spawned; the state of \
the loop before is kept as NAME.1, NAME.2 and so on. The command follows it as `swarm spawn` does; with \
--detach it returns as that does.";

const SPAWN_EXAMPLES: &str = "\
Examples:
  swarm spawn --name fix --prompt 'Fix the failing test' -- claude
  swarm spawn --name agent --ralph --prompt-file PROMPT.md --max-iterations 10 \\
      --done-pattern 'All tasks complete' -- claude
  swarm spawn --name agent --ralph --prompt-file PROMPT.md -n 10 -d -- codex
  swarm spawn --name web --restart on-failure --max-restarts 5 -- npm run dev";

/// `swarm spawn`
#[derive(Debug, Args)]
#[command(after_long_help = SPAWN_EXAMPLES)]
pub struct Spawn {
    /// The worker's name [default: made from the directory's]
    #[arg(long)]
    pub name: Option<WorkerName>,
    /// Where the agent works [default: here]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set a variable for the agent; KEY alone takes its value from your environment
    #[arg(long, value_name = "KEY[=VALUE]")]
    pub env: Vec<String>,
    /// Label the worker (may be given several times)
    #[arg(long, value_name = "TAG", value_parser = NonEmptyStringValueParser::new())]
    pub tag: Vec<String>,
    /// Return at once instead of following the loop
    #[arg(short, long)]
    pub detach: bool,
    /// End a live worker of the same name first
    #[arg(long)]
    pub replace: bool,
    /// Keep everything the agent prints, raw
    #[arg(long)]
    pub record: bool,
    /// Columns and rows of the window, 20x5 to 1000x500 [default: 200x50]
    #[arg(long, value_name = "COLSxROWS", value_parser = parse_size)]
    pub size: Option<(u16, u16)>,
    /// Use this tmux server: a socket's path, or a name as in tmux -L
    #[arg(long, value_name = "SOCKET")]
    pub tmux_socket: Option<String>,
    /// Accepted and without meaning: every worker runs in tmux
    #[arg(long)]
    pub tmux: bool,
    /// How to print what was spawned
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
    /// The prompt.
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// The restart policy.
    #[command(flatten)]
    pub restart: RestartArgs,
    /// The loop.
    #[command(flatten)]
    pub ralph: LoopArgs,
    /// What has to hold before it is complete.
    #[command(flatten)]
    pub gates: GateArgs,
    /// Its limits.
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// The worktree.
    #[command(flatten)]
    pub worktree: WorktreeArgs,
    /// The agent's command [default: `command` of the settings]
    #[arg(last = true, value_name = "COMMAND")]
    pub cmd: Vec<String>,
}

/// What the agent is told.
#[derive(Debug, Args)]
#[command(next_help_heading = "Prompt")]
pub struct PromptArgs {
    /// Tell the agent this
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "prompt_file")]
    pub prompt: Option<String>,
    /// Tell the agent what this file holds; a loop reads it afresh for each iteration
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// How the prompt reaches the agent; auto decides by the command
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub prompt_via: Route,
    /// Return only when the agent is ready for input (a loop always waits for that)
    #[arg(long)]
    pub ready_wait: bool,
    /// How long the agent may take to be ready
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    pub ready_timeout: u64,
    /// A regular expression (as in Python's re): the worker is done when the agent prints it; ^ and $ are
    /// the ends of a line
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub done_pattern: Option<String>,
}

/// What follows the end of a plain worker.
#[derive(Debug, Args)]
#[command(next_help_heading = "Restart")]
pub struct RestartArgs {
    /// Start the command again after its end; not with --ralph [default: no]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub restart: Option<Restart>,
    /// The most restarts in a row; 0 is none
    #[arg(long, value_name = "N", default_value_t = 10, requires = "restart")]
    pub max_restarts: u32,
}

/// [`RestartWhen`], or never, as the command line spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart(pub Option<RestartWhen>);

impl ValueEnum for Restart {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(None), Self(Some(RestartWhen::OnFailure)), Self(Some(RestartWhen::Always))]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            None => PossibleValue::new("no").help("Never"),
            Some(when @ RestartWhen::OnFailure) => {
                PossibleValue::new(when.as_str()).help("After every end but exit status 0")
            }
            Some(when @ RestartWhen::Always) => PossibleValue::new(when.as_str()).help("After every end"),
        })
    }
}

/// What makes it a loop.
#[derive(Debug, Args)]
#[command(next_help_heading = "Loop")]
pub struct LoopArgs {
    /// Loop the agent: start it again with a fresh context each time it ends
    #[arg(long)]
    pub ralph: bool,
    /// The most iterations; needed with --ralph
    #[arg(short = 'n', long, value_name = "N", requires = "ralph", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: Option<u32>,
    /// End an iteration after this long without activity [default: 60; 1800 for a one-task command such as claude -p]
    #[arg(long, value_name = "SECONDS", requires = "ralph", value_parser = clap::value_parser!(u64).range(1..))]
    pub inactivity_timeout: Option<u64>,
    /// Fail an iteration if the agent's question is not answered within this time; 0: no limit [default: 600]
    #[arg(long, value_name = "SECONDS", requires = "ralph")]
    pub question_timeout: Option<u64>,
    /// Short for --prompt-file DIR/prompt.md --max-iterations 15
    #[arg(long, value_name = "DIR", requires = "ralph")]
    pub ralph_dir: Option<PathBuf>,
    /// Print also what the agent prints
    #[arg(long, requires = "ralph", conflicts_with = "detach")]
    pub stream: bool,
}

/// Isolation in git.
#[derive(Debug, Args)]
#[command(next_help_heading = "Worktree")]
pub struct WorktreeArgs {
    /// Let the agent work in a git worktree of its own
    #[arg(long)]
    pub worktree: bool,
    /// The worktree's branch [default: swarm/NAME]
    #[arg(long, value_name = "BRANCH", requires = "worktree")]
    pub branch: Option<String>,
    /// The worktree's directory [default: beside the repository, REPO-worktrees/NAME]
    #[arg(long, value_name = "DIR", requires = "worktree")]
    pub worktree_dir: Option<PathBuf>,
}

/// [`PromptVia`] as the command line spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route(pub PromptVia);

impl ValueEnum for Route {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(PromptVia::Auto), Self(PromptVia::Stdin), Self(PromptVia::Arg), Self(PromptVia::Paste)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            PromptVia::Auto => "What fits the command",
            PromptVia::Stdin => "On standard input, as in `cat PROMPT | agent`",
            PromptVia::Arg => "As an argument",
            PromptVia::Paste => "Pasted into the agent's input box when it is ready",
        };
        Some(PossibleValue::new(self.0.as_str()).help(help))
    }
}

/// `200x50` as columns and rows.
pub(super) fn parse_size(text: &str) -> Result<(u16, u16), String> {
    settings::size(text).ok_or_else(|| format!("give {}", settings::SIZE))
}

/// Which workers to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WhichStatus {
    /// Those that swarm still looks after
    Running,
    /// Those that have ended
    Stopped,
    /// All
    #[default]
    All,
}

/// `swarm ls`
#[derive(Debug, Args)]
pub struct Ls {
    /// How to print them
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Which of them
    #[arg(long, value_enum, default_value_t, value_name = "STATUS")]
    pub status: WhichStatus,
    /// Only those with this label (given several times: with all of them)
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
}

/// `swarm status`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit status:
  0  swarm looks after it: starting, running, waiting, backing_off or unreachable.
  1  It has ended: stopped, failed or lost.
  2  There is no worker of that name.")]
pub struct StatusArgs {
    /// The worker
    pub name: WorkerName,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm peek`
#[derive(Debug, Args)]
pub struct Peek {
    /// The worker
    pub name: WorkerName,
    /// How many lines, from the end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub lines: u32,
}

/// `swarm logs`
#[derive(Debug, Args)]
pub struct Logs {
    /// The worker
    pub name: WorkerName,
    /// Go on printing until the worker has ended
    #[arg(short, long)]
    pub follow: bool,
    /// How many lines, from the end [default: all that is kept; with --follow 10]
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<u32>,
    /// Also what it printed in earlier runs
    #[arg(long)]
    pub history: bool,
    /// Only what iteration N of a loop printed (of a worker that is no loop: run N). Both are counted from 1 since it
    /// was last spawned or spawned again; --history has what was before
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["follow", "history"],
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub iteration: Option<u32>,
    /// How to print it; json is one object
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", conflicts_with = "follow")]
    pub format: PageFormat,
}

/// `swarm send`
#[derive(Debug, Args)]
#[command(
    override_usage = "swarm send [OPTIONS] <NAME> <TEXT>...\n       swarm send [OPTIONS] <NAME> -\n       \
        swarm send [OPTIONS] <NAME> --file <FILE>\n       swarm send [OPTIONS] --all <TEXT>...",
    after_long_help = "\
Options stand before the text: whatever follows its first word is text.

Examples:
  swarm send agent 'run the tests again'
  swarm send --no-enter agent y
  swarm send --keys agent /compact
  git diff | swarm send agent -"
)]
pub struct Send {
    /// The worker; with --all the text begins here
    #[arg(allow_hyphen_values = true, required_unless_present = "all")]
    pub name: Option<String>,
    /// The text; its words are joined by one blank. A single - reads it from standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub text: Vec<String>,
    /// Send what this file holds
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Do not press Enter after it
    #[arg(long)]
    pub no_enter: bool,
    /// Type the text key by key instead of pasting it, for slash commands
    #[arg(long)]
    pub keys: bool,
    /// Send it to every live worker
    #[arg(long)]
    pub all: bool,
}

/// `swarm interrupt`
#[derive(Debug, Args)]
pub struct Interrupt {
    /// The worker
    pub name: WorkerName,
}

/// `swarm eof`
#[derive(Debug, Args)]
pub struct Eof {
    /// The worker
    pub name: WorkerName,
}

/// `swarm attach`
#[derive(Debug, Args)]
pub struct Attach {
    /// The worker
    pub name: WorkerName,
    /// Look, but do not touch: nothing you type reaches the agent
    #[arg(long)]
    pub read_only: bool,
}

/// `swarm kill`
#[derive(Debug, Args)]
pub struct Kill {
    /// The workers
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Every live worker
    #[arg(long)]
    pub all: bool,
    /// Remove its worktree too, unless work in it would be lost
    #[arg(long)]
    pub rm_worktree: bool,
    /// Remove the worktree even if it holds uncommitted work
    #[arg(long, requires = "rm_worktree")]
    pub force_dirty: bool,
    /// Delete ignored files outside caches too
    #[arg(long, requires = "rm_worktree")]
    pub discard_ignored: bool,
}

/// `swarm respawn`
#[derive(Debug, Args)]
pub struct Respawn {
    /// The worker
    pub name: WorkerName,
    /// Remove its worktree first and make it again, unless work in it would be lost
    #[arg(long)]
    pub clean_first: bool,
    /// Delete ignored files outside caches too
    #[arg(long, requires = "clean_first")]
    pub discard_ignored: bool,
    /// Return at once instead of following the loop
    #[arg(short, long)]
    pub detach: bool,
    /// Print also what the agent of a loop prints
    #[arg(long, conflicts_with = "detach")]
    pub stream: bool,
    /// How to print what was spawned
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}
