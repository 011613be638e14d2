//! What makes a loop a verified one: its gates and its budgets. For `spawn --ralph` and `loop` alike.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use swarm_state::ends;
use swarm_state::model::WorkerName;
use swarm_state::promise::OnNoWork;

use super::PageFormat;
use super::worker::{Route, WorktreeArgs, parse_size};

/// The help of `loop` in long form and in its man page.
pub(super) const LOOP_LONG: &str = "\
Let an agent work on a task until it is verifiably done.

Each iteration starts the agent anew, with a clean context. It is told the task, the rules, what has changed \
since the start, which checks failed last time, and the progress so far. When it ends, every check is run: the loop is \
complete when all of them exit with 0 and the agent has said, in words of its own, exactly \
<promise>COMPLETE</promise> (--promise changes the word, --no-promise asks for none).

The checks are also run once before the first iteration; what failed already then is told to the agent. Files that \
stand as programs or scripts in a check's own text, the file that make or just reads, the scripts of the package.json that npm, \
pnpm, yarn or bun reads (not what any of these runs in turn), and files named with \
--protect may not be changed by an iteration: it does not count as done until \
they are as they were, or you say `swarm ralph approve NAME`. `swarm why NAME` says which are watched.

After each iteration the whole tree, but for what git ignores and what lies in a repository within it, is kept as a commit \
under refs/swarm/; `swarm ralph restore` brings it back. The command follows the loop and exits with 0 only when it is complete; Ctrl-C pauses it.

Claude Code and Codex get hooks for each run, by which an interactive agent tells that its turn is over, and any that its \
context is full: that ends the iteration. swarm-spawn(1) says what else they tell, and how to turn them off.";

const LOOP_EXAMPLES: &str = "\
Examples:
  swarm loop 'make the tests pass' --check 'cargo test' -- claude -p --dangerously-skip-permissions
  swarm loop --spec spec.md --check 'make test' --worktree --max-cost 3 --max-time 1800 -- claude -p --output-format json
  swarm loop 'fix the types' --check 'mypy src/' --no-promise -- codex exec --full-auto";

/// How a loop can end, and examples.
fn loop_after() -> String {
    format!(
        "How a loop ends, as `stop_reason` of the result, `status` of its state.json, and exit status (of two that \
         are true the first is told, but failures before iterations):\n{}A loop that is paused (status `paused`), when the daemon stopped or with reason no_progress or budget_unseen, has not ended, nor has \
         one that was cancelled with Ctrl-C: its follower exits with 1 (130 after a second Ctrl-C, which leaves at once), \
         and `swarm ralph resume` goes on.\n\n{LOOP_EXAMPLES}",
        ends::table()
    )
}

/// Gates.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gates (all that are asked for must hold)")]
pub struct GateArgs {
    /// A shell command that must exit with 0 (may be given several times; they run in order)
    ///
    /// It runs with `sh -c` in the worker's directory, without input, in the agent's environment; SWARM_CHECK there names the
    /// file that it prints into. When it ends, all that it started is ended with it, also what went into the background and
    /// made itself a daemon, as sccache and Gradle do: start such a thing yourself, before the loop.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub check: Vec<String>,
    /// How long a check may take [default: 120]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub check_timeout: Option<u64>,
    /// How many checks run side by side [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub check_jobs: Option<u32>,
    /// The agent must say <promise>TOKEN</promise>
    ///
    /// It counts in words of the agent's own: as the CLI's transcript has them, where it keeps one (Claude Code, Codex); else
    /// as the JSON has them that it prints; else alone on a line of new output, which a tool can print as well. `swarm why`
    /// and `swarm report` tell which of them it was: transcript, result or screen.
    #[arg(long, visible_alias = "completion-tag", value_name = "TOKEN")]
    pub promise: Option<String>,
    /// A promise counts only with so many tool calls in its iteration; 0 lets any count [default: 1]
    #[arg(long, value_name = "N")]
    pub min_tool_calls: Option<u64>,
    /// What becomes of a promise without work [default: reject]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub on_promise_no_work: Option<NoWork>,
    /// Ask only for the checks that passed before the first iteration
    #[arg(long)]
    pub allow_preexisting: bool,
    /// Files that no iteration may change (may be given several times); ** goes into directories
    #[arg(long, value_name = "GLOB")]
    pub protect: Vec<String>,
    /// Let iterations change protected files and the scripts that checks run
    #[arg(long)]
    pub allow_changed_checks: bool,
}

/// Budgets.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Budgets")]
pub struct BudgetArgs {
    /// End the loop after this much time that the machine was awake, its checks included
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_time: Option<u64>,
    /// End the loop after the iteration that passes this cost; pause it after one that tells none
    ///
    /// Claude Code tells it with --output-format json; what tells tokens alone needs prices in the settings.
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub max_cost: Option<u64>,
    /// The same for tokens; what came from a cache does not count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Failures in a row that end the loop [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_failures: Option<u32>,
    /// End an iteration after this long, and go on
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub iteration_timeout: Option<u64>,
    /// Pause the loop when so many iterations in a row changed nothing
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub no_progress: Option<u32>,
}

/// `swarm loop`
#[derive(Debug, Args)]
#[command(after_long_help = loop_after())]
pub struct Loop {
    /// What is to be done
    #[arg(value_name = "TASK", conflicts_with = "spec")]
    pub task: Option<String>,
    /// The same in a file, read afresh for each iteration; one of the two is needed
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// The most iterations, 1 to 100 [default: 25]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_iterations: Option<u32>,
    /// Ask for no promise
    #[arg(long, conflicts_with = "promise")]
    pub no_promise: bool,
    /// The agent, if the command does not name it: claude, codex, opencode, gemini, qwen, aider or one in your settings
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The model, passed on to the agent's command
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Print the result only
    #[arg(short, long)]
    pub quiet: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
    /// Return at once instead of following the loop
    #[arg(short, long)]
    pub detach: bool,
    /// Print also what the agent prints
    #[arg(long, conflicts_with_all = ["detach", "quiet"])]
    pub stream: bool,
    /// The worker's name [default: made from the directory's]
    #[arg(long)]
    pub name: Option<WorkerName>,
    /// Where the agent works [default: here]
    #[arg(long, visible_alias = "project-dir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set a variable for the agent; KEY alone takes its value from your environment
    #[arg(long, value_name = "KEY[=VALUE]")]
    pub env: Vec<String>,
    /// Label the worker (may be given several times)
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// End a live worker of the same name first
    #[arg(long)]
    pub replace: bool,
    /// Keep everything the agent prints, raw
    #[arg(long)]
    pub record: bool,
    /// How the contract reaches the agent; auto decides by the command
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub prompt_via: Route,
    /// One more gate: a regular expression (as in Python's re) that the agent must print
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub done_pattern: Option<String>,
    /// End an iteration after this long without activity [default: 60; 1800 for a one-task command such as claude -p]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub inactivity_timeout: Option<u64>,
    /// Fail an iteration if the agent's question is not answered within this time; 0: no limit [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub question_timeout: Option<u64>,
    /// Columns and rows of the window, 20x5 to 1000x500 [default: 200x50]
    #[arg(long, value_name = "COLSxROWS", value_parser = parse_size)]
    pub size: Option<(u16, u16)>,
    /// Use this tmux server: a socket's path, or a name as in tmux -L
    #[arg(long, value_name = "SOCKET")]
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
    /// The agent's command [default: `command` of the settings, or what --agent is started with]
    #[arg(last = true, value_name = "COMMAND")]
    pub cmd: Vec<String>,
}

/// [`OnNoWork`] as the command line spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoWork(pub OnNoWork);

impl ValueEnum for NoWork {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(OnNoWork::Reject), Self(OnNoWork::Warn), Self(OnNoWork::Accept)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            OnNoWork::Reject => PossibleValue::new("reject").help("It does not count"),
            OnNoWork::Warn => PossibleValue::new("warn").help("It counts, with a warning"),
            OnNoWork::Accept => PossibleValue::new("accept").help("It counts"),
        })
    }
}

/// US dollars, as millionths.
fn parse_dollars(text: &str) -> Result<u64, String> {
    let amount: f64 =
        text.trim_start_matches('$').parse().map_err(|_| "no amount of dollars, as in 2.50".to_owned())?;
    if amount.is_finite() && (0.000_001..=1e9).contains(&amount) {
        Ok((amount * 1e6).round() as u64)
    } else {
        Err("an amount of dollars is more than 0, as in 2.50".into())
    }
}
