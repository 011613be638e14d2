//! `swarm loop`.

use std::path::PathBuf;

use clap::Args;
use swarm_state::ends;
use swarm_state::model::WorkerName;

use super::format::PageFormat;
use super::gates::{BudgetArgs, GateArgs};
use super::spawn::{Route, WorktreeArgs, parse_size};

/// The help of `loop` in long form and in its man page.
pub(super) const LOOP_LONG: &str = "\
Run an agent in a loop until its work is verified.

Each iteration starts the agent again with a clean context. swarm gives it the task, the rules, the changes since the \
start, the checks that failed last time, and the progress so far. When the agent ends, swarm runs every check. The loop \
is complete when all checks exit with 0 and the agent has printed exactly <promise>COMPLETE</promise> in its own text. \
--promise changes the word; --no-promise requires none.

swarm also runs the checks once before the first iteration. This baseline shows which of them failed already, and swarm \
reports those to the agent.

Some files are watched: programs and scripts named in a check's own command, the file that make or just reads, the \
scripts in the package.json that npm, pnpm, yarn or bun reads, and the files named with --protect. Scripts that these \
run in turn are not watched. An iteration that changes a watched file does not count as done until the file is restored \
or you run `swarm ralph approve NAME`. `swarm why NAME` lists the watched files.

After each iteration, swarm saves the whole tree, except ignored files and nested repositories, as a commit under \
refs/swarm/. `swarm ralph restore` checks it out again. The command follows the loop and exits with 0 only if the loop is \
complete. Ctrl-C pauses the loop. `swarm spawn --ralph` accepts the same gates and budgets.

swarm passes hooks to Claude Code and Codex for each run. An interactive agent then reports the end of its turn, and any \
agent reports a full context. Both reports end the iteration. swarm-spawn(1) lists the other reports and the setting \
that turns hooks off.";

const LOOP_EXAMPLES: &str = "\
Examples:
  swarm loop 'make the tests pass' --check 'cargo test' -- \\
      claude -p --dangerously-skip-permissions
  swarm loop --spec spec.md --check 'make test' --worktree --max-cost 3 \\
      --max-time 1800 -- claude -p --output-format json
  swarm loop 'fix the types' --check 'mypy src/' --no-promise -- \\
      codex exec --full-auto";

/// The table of ends, and examples.
fn loop_after() -> String {
    format!(
        "How a loop ends: stop_reason of the result, status in state.json, exit status, meaning. If several apply, \
         the first one in the table is reported; but repeated failures come before max_iterations.\n\n{}\n\
         A paused loop has not ended: `swarm ralph resume` continues it. A loop is paused by Ctrl-C, when the daemon \
         stops, and with the reasons no_progress and budget_unseen. Its follower exits with 1, or with 130 after a \
         second Ctrl-C, which leaves at once.\n\n{LOOP_EXAMPLES}",
        ends::table()
    )
}

/// `swarm loop`
#[derive(Debug, Args)]
#[command(after_long_help = loop_after())]
pub struct Loop {
    /// Task for the agent
    #[arg(value_name = "TASK", conflicts_with = "spec")]
    pub task: Option<String>,
    /// Task file instead of TASK, read for each iteration
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// Maximum iterations, 1 to 100 [default: 25]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_iterations: Option<u32>,
    /// Require no promise
    #[arg(long, conflicts_with = "promise")]
    pub no_promise: bool,
    /// Agent profile [default: derived from the command]
    ///
    /// One of claude, codex, opencode, gemini, qwen, aider, or one in your settings. Without COMMAND, swarm runs the
    /// profile's command.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Model, passed to the agent's command
    #[arg(hide_short_help = true, long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Print only the result
    #[arg(hide_short_help = true, short, long)]
    pub quiet: bool,
    /// Output format of the result
    #[arg(hide_short_help = true, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
    /// Return without following the loop
    #[arg(short, long)]
    pub detach: bool,
    /// Also print the agent's output
    #[arg(hide_short_help = true, long, conflicts_with_all = ["detach", "quiet"])]
    pub stream: bool,
    /// Worker name [default: derived from the directory]
    #[arg(long)]
    pub name: Option<WorkerName>,
    /// Directory the agent works in [default: current directory]
    #[arg(hide_short_help = true, long, visible_alias = "project-dir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set a variable; KEY alone copies it from your environment
    #[arg(hide_short_help = true, long, value_name = "KEY[=VALUE]")]
    pub env: Vec<String>,
    /// Label for the worker (repeatable)
    #[arg(hide_short_help = true, long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Stop a live worker with the same name first
    #[arg(hide_short_help = true, long)]
    pub replace: bool,
    /// Save the agent's raw output
    #[arg(hide_short_help = true, long)]
    pub record: bool,
    /// Way to deliver the prompt; auto depends on the command
    #[arg(hide_short_help = true, long, value_name = "HOW", value_enum, default_value_t)]
    pub prompt_via: Route,
    /// Additional gate: output to match, a regular expression
    ///
    /// The syntax is that of Python's re. ^ and $ match at the start and the end of each line.
    #[arg(hide_short_help = true, long, value_name = "REGEX", allow_hyphen_values = true)]
    pub done_pattern: Option<String>,
    /// End an iteration after this time without activity [default: 60]
    ///
    /// For a one-shot command such as claude -p, which prints nothing until its end, the default is 1800.
    #[arg(hide_short_help = true, long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub inactivity_timeout: Option<u64>,
    /// Time to answer an agent's question; 0: no limit [default: 600]
    ///
    /// If nobody answers in time, the iteration fails.
    #[arg(hide_short_help = true, long, value_name = "SECONDS")]
    pub question_timeout: Option<u64>,
    /// Window size, 20x5 to 1000x500 [default: 200x50]
    #[arg(hide_short_help = true, long, value_name = "COLSxROWS", value_parser = parse_size)]
    pub size: Option<(u16, u16)>,
    /// tmux server: a socket path, or a name as in tmux -L
    #[arg(hide_short_help = true, long, value_name = "SOCKET")]
    pub tmux_socket: Option<String>,
    /// The gates.
    #[command(flatten)]
    pub gates: GateArgs,
    /// The budgets.
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// The worktree.
    #[command(flatten)]
    pub worktree: WorktreeArgs,
    /// Agent command [default: `command` in the settings, or --agent's]
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub cmd: Vec<String>,
}
