//! `spawn`, and the options that it shares with `loop`.

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, PossibleValue};
use clap::{Args, ValueEnum};
use swarm_state::model::{PromptVia, RestartWhen, WorkerName};

use super::format::PageFormat;
use super::gates::{BudgetArgs, GateArgs};
use crate::settings;

/// The help of `spawn` in long form and in its man page.
pub(super) const SPAWN_LONG: &str = "\
Start an agent in its own tmux window and supervise it.

Without --ralph, the command returns as soon as the agent runs. `swarm attach NAME` shows the agent.

With --restart, swarm starts the worker again when it ends, after 1, 2, 4, 8 seconds and so on, up to five minutes. \
on-failure restarts it after every end except exit status 0; a signal, a missing pane and a lost tmux server also count \
as failures. always restarts it after every end. Exit status 0 and a run of ten minutes reset the restart count. After \
--max-restarts restarts in a row, the worker has failed. swarm does not restart a worker that was killed or whose done \
pattern matched. A run that fails counts as a failure even if it printed the pattern. While the daemon is stopped, nothing is \
restarted; afterwards the waits continue where they stopped. Each run gets the environment and the prompt of the first \
run, but a prompt file is read again.

With --ralph, swarm starts the agent again each time it ends, and when it shows no activity for the inactivity \
timeout. Each start is an iteration: it has a fresh context and reads the prompt file again. The command follows the \
loop and exits with its result: 0 if the done pattern matched or all iterations were used, 1 if the loop failed. \
Closing the terminal does not end the loop. Ctrl-C pauses it: the current agent may finish, and no other starts. A second \
Ctrl-C leaves at once. With --detach, the command returns when the first agent runs. With --check or --promise, \
--detach returns earlier, when the baseline begins, because its checks may take long. Use `swarm why` or `swarm wait` \
to see whether an agent started.

swarm passes hooks to Claude Code (as --settings FILE, merged with your own --settings) and to Codex (as -c arguments) \
for each run. It changes none of your files. Through these hooks the agent reports that it received its \
prompt, that its turn is over, that it has a question, that its API failed, and that its context is full. An \
interactive iteration then ends one second after the agent's turn, unless another hook or a background task continues the \
turn. It also ends when the context is full. An API error fails the iteration; for a usage limit or an outage, \
swarm waits instead. The worker's status is then `waiting`, with the reason. A command that runs once (claude -p, codex exec) ends by \
itself as usual. Without hooks, swarm relies on the screen alone. To turn hooks off, set hooks = \"off\" under \
[agents.claude] in the settings.";

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
    /// Worker name [default: derived from the directory]
    #[arg(long)]
    pub name: Option<WorkerName>,
    /// Directory the agent works in [default: current directory]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set a variable; KEY alone copies it from your environment
    #[arg(hide_short_help = true, long, value_name = "KEY[=VALUE]")]
    pub env: Vec<String>,
    /// Label for the worker (repeatable)
    #[arg(hide_short_help = true, long, value_name = "TAG", value_parser = NonEmptyStringValueParser::new())]
    pub tag: Vec<String>,
    /// Return without following the loop
    #[arg(short, long)]
    pub detach: bool,
    /// Stop a live worker with the same name first
    #[arg(hide_short_help = true, long)]
    pub replace: bool,
    /// Save the agent's raw output
    #[arg(hide_short_help = true, long)]
    pub record: bool,
    /// Window size, 20x5 to 1000x500 [default: 200x50]
    #[arg(hide_short_help = true, long, value_name = "COLSxROWS", value_parser = parse_size)]
    pub size: Option<(u16, u16)>,
    /// tmux server: a socket path, or a name as in tmux -L
    #[arg(hide_short_help = true, long, value_name = "SOCKET")]
    pub tmux_socket: Option<String>,
    /// Ignored; accepted for compatibility
    #[arg(hide_short_help = true, long)]
    pub tmux: bool,
    /// Output format
    #[arg(hide_short_help = true, long, value_enum, default_value_t, value_name = "FORMAT")]
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
    /// The gates.
    #[command(flatten)]
    pub gates: GateArgs,
    /// The budgets.
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// The worktree.
    #[command(flatten)]
    pub worktree: WorktreeArgs,
    /// Agent command [default: `command` in the settings]
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub cmd: Vec<String>,
}

/// The prompt and how the agent receives it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Prompt")]
pub struct PromptArgs {
    /// Prompt for the agent
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "prompt_file")]
    pub prompt: Option<String>,
    /// Prompt file, read again for each iteration
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// Way to deliver the prompt; auto depends on the command
    #[arg(hide_short_help = true, long, value_name = "HOW", value_enum, default_value_t)]
    pub prompt_via: Route,
    /// Wait until the agent accepts input (a loop always does)
    #[arg(hide_short_help = true, long)]
    pub ready_wait: bool,
    /// Maximum time until the agent accepts input
    #[arg(hide_short_help = true, long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    pub ready_timeout: u64,
    /// Stop when the output matches this regular expression
    ///
    /// The syntax is that of Python's re. ^ and $ match at the start and the end of each line.
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub done_pattern: Option<String>,
}

/// The restart policy of a worker without a loop.
#[derive(Debug, Args)]
#[command(next_help_heading = "Restart")]
pub struct RestartArgs {
    /// When to restart the worker; not with --ralph [default: no]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub restart: Option<Restart>,
    /// Maximum restarts in a row; 0 allows none
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 10, requires = "restart")]
    pub max_restarts: u32,
}

/// [`RestartWhen`], or never, as an option's value.
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
                PossibleValue::new(when.as_str()).help("After every end except exit status 0")
            }
            Some(when @ RestartWhen::Always) => PossibleValue::new(when.as_str()).help("After every end"),
        })
    }
}

/// The options that make a worker a loop.
#[derive(Debug, Args)]
#[command(next_help_heading = "Loop")]
pub struct LoopArgs {
    /// Loop the agent with a fresh context each time
    #[arg(long)]
    pub ralph: bool,
    /// Maximum iterations; required with --ralph
    #[arg(short = 'n', long, value_name = "N", requires = "ralph", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: Option<u32>,
    /// End an iteration after this time without activity [default: 60]
    ///
    /// For a one-shot command such as claude -p, which prints nothing until its end, the default is 1800.
    #[arg(hide_short_help = true, long, value_name = "SECONDS", requires = "ralph", value_parser = clap::value_parser!(u64).range(1..))]
    pub inactivity_timeout: Option<u64>,
    /// Time to answer an agent's question; 0: no limit [default: 600]
    ///
    /// If nobody answers in time, the iteration fails.
    #[arg(hide_short_help = true, long, value_name = "SECONDS", requires = "ralph")]
    pub question_timeout: Option<u64>,
    /// Same as --prompt-file DIR/prompt.md --max-iterations 15
    #[arg(hide_short_help = true, long, value_name = "DIR", requires = "ralph")]
    pub ralph_dir: Option<PathBuf>,
    /// Also print the agent's output
    #[arg(hide_short_help = true, long, requires = "ralph", conflicts_with = "detach")]
    pub stream: bool,
}

/// The git worktree.
#[derive(Debug, Args)]
#[command(next_help_heading = "Worktree")]
pub struct WorktreeArgs {
    /// Run the agent in its own git worktree
    #[arg(long)]
    pub worktree: bool,
    /// Branch of the worktree [default: swarm/NAME]
    #[arg(hide_short_help = true, long, value_name = "BRANCH", requires = "worktree")]
    pub branch: Option<String>,
    /// Directory of the worktree [default: ../REPO-worktrees/NAME]
    #[arg(hide_short_help = true, long, value_name = "DIR", requires = "worktree")]
    pub worktree_dir: Option<PathBuf>,
}

/// [`PromptVia`] as an option's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route(pub PromptVia);

impl ValueEnum for Route {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(PromptVia::Auto), Self(PromptVia::Stdin), Self(PromptVia::Arg), Self(PromptVia::Paste)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            PromptVia::Auto => "Depends on the command",
            PromptVia::Stdin => "On standard input, as in `cat PROMPT | agent`",
            PromptVia::Arg => "As an argument",
            PromptVia::Paste => "Paste into the agent's input box when it is ready",
        };
        Some(PossibleValue::new(self.0.as_str()).help(help))
    }
}

/// Parses `200x50` into columns and rows.
pub(super) fn parse_size(text: &str) -> Result<(u16, u16), String> {
    settings::size(text).ok_or_else(|| format!("give {}", settings::SIZE))
}
