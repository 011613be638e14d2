//! `swarm loop`.

use std::path::PathBuf;

use clap::Args;
use swarm_state::ends;
use swarm_state::model::PromptVia;

use super::format::{PageFormat, choice, whole};
use super::gates::{BudgetArgs, GateArgs};
use super::sandbox::SandboxArgs;
use super::spawn::{CapArgs, ROUTES, WorkerArgs, WorktreeArgs};
use crate::duration::{parse_duration, parse_nonzero_duration};

pub(super) const LOOP_LONG: &str = "\
Run an agent in a loop until your checks pass.

Each iteration starts the agent again with a fresh context. swarm gives it the task, the rules of the loop (the \
checks that must pass, the promise to print), the changes since the start, the checks that failed last time, and the \
progress so far. When the agent ends, swarm runs every check. The loop is complete when all checks exit with 0 and \
the agent has printed <promise>COMPLETE</promise> in the same iteration, in its own text. --promise TOKEN sets \
another word. With --no-promise, the checks decide without a promise.

swarm also runs the checks once before the first iteration. This baseline shows which of them fail already, and swarm \
reports those to the agent.

The command prints the loop's progress until the loop ends, and exits with 0 if it succeeded (see Exit status). Ctrl-C \
pauses the loop: swarm lets the current agent finish and starts no further iteration.

Use `swarm loop` with a task and checks; swarm then writes the prompt. Use `swarm spawn --ralph` with a prompt file \
of your own; it accepts the same gates and budgets.";

const LOOP_NOTES: &str = "\
Watched files:
swarm watches the files that decide whether the work is done, so that an agent cannot weaken them:
  - programs that a check's command names by a path, and files that it gives to
    a shell, as in ./check.sh and sh check.sh, also behind make, just, npm, tox
  - a file that it gives to python, node, perl or ruby, if its path
    contains check, test, spec, verif, valid, lint or assert, or the word
    ci, qa or e2e (python3 app.py may be the work itself)
  - of package.json and a makefile, the scripts and targets that a check runs
  - the configuration of known test runners (pytest, cargo test, jest, go test,
    make and others), also of a file that does not exist yet
  - test files that exist before the loop, with --protect-tests
  - files named with --protect
  - the task file

While a watched file is changed, no iteration counts as done; restore the file or run `swarm ralph approve NAME`. \
The loop continues meanwhile. `swarm why NAME` lists the watched files and, without --protect-tests, changed test \
files. swarm-config(5) describes how to add a test runner.

swarm does not watch these files, unless git tracks them or --protect names them without a wildcard:
  - caches of test runners and compiled files (__pycache__)
  - files that git ignored before the loop
  - files that the checks write by themselves

swarm-promises(7) lists other files that swarm does not watch; add them with --protect.

Changed tests:
If existing test files changed, and the check failed because of tests before the loop, swarm also runs it in a fresh \
checkout with the changed tests and the old versions of all other files. If it passes there, the tests were changed \
instead of the code. The iteration then does not count as done until you run `swarm ralph approve NAME`. For a task that \
changes only tests, use --allow-changed-checks.

Words:
  fresh checkout
      A temporary directory outside of the worker's, with the files of the work
      that git would commit. swarm runs checks in it and deletes it.
  clean room
      A run of all checks in a fresh checkout (--clean-check).
  red replay
      A run of the checks with the source files from before the loop. They must
      be red, which means that they fail.
  canary
      A test that must fail. swarm adds it when all gates hold, runs the checks
      again, and removes it. If a check still passes, it proves nothing, and
      the iteration does not count.
  held-out check
      A check that the agent cannot read, with files that it cannot see.

Background processes:
When the agent ends, and again before the checks run, swarm ends every process that the agent left running, also \
detached ones and jobs in swarm's tmux server. Processes that you started outside of swarm's tmux \
server stay. `swarm report NAME` lists what was ended.

Snapshots:
In a git repository, swarm saves the files after each iteration as a commit under refs/swarm/, with untracked files, \
but without ignored files and nested repositories. `swarm ralph diff` shows the changes of an iteration, and `swarm \
ralph restore` checks out its files into a new worktree.

Permissions:
Nobody answers a permission dialog while you are away. swarm-spawn(1) lists the options with which agents work without \
one, such as claude --dangerously-skip-permissions, codex --full-auto, gemini --yolo and aider --yes-always.

Resource caps:
swarm-spawn(1) describes --memory, --cpus and --pids, which hold for each iteration.

Hooks:
swarm passes hooks to Claude Code and Codex for each run. Through them, the agent reports a full context and, if it \
is interactive, the end of its turn. Each of these reports ends the iteration. swarm-spawn(1) lists the other reports \
and the setting that turns hooks off.";

const LOOP_EXAMPLES: &str = "\
Examples:
  swarm loop 'make the tests pass' --check 'cargo test' -- \\
      claude -p --permission-mode acceptEdits
  swarm loop --spec spec.md --check 'make test' --worktree --max-cost 3 \\
      --max-time 30m -- claude -p --output-format json \\
      --permission-mode acceptEdits
  swarm loop 'fix the types' --check 'mypy src/' --no-promise -- \\
      codex exec --full-auto";

/// The sections after the options of `loop`: with the table of ends, and examples.
fn loop_after() -> String {
    format!(
        "{LOOP_NOTES}\n\n\
         Exit status:\n\
         STOP_REASON is in the output of --format json. STATUS is that of swarm ls and swarm status; state.json has \
         other words (see swarm-state(5)). If several reasons apply at the end of an iteration, swarm reports the \
         first one in this table.\n\n{}\n\
         A live or paused loop has not ended; `swarm ralph resume` continues a paused one. It also continues a loop that \
         ended at a limit, once `swarm ralph set` has raised the limit. The time of --max-time counts while an agent or \
         its checks run and during the waits after failures and outages. It does not count while the loop is paused, or \
         between its end and the resume.\n\n\
         A loop pauses on Ctrl-C, on `swarm ralph pause` and when the daemon is stopped, and with these reasons:\n  \
           no_progress    --no-progress iterations in a row changed nothing\n  \
           budget_unseen  an iteration did not report the cost or the tokens of a budget\n  \
           held_out       the held-out checks failed --final-tries times\n  \
           cannot_check   a program of --setup or --final-check, or --hidden, is unusable\n  \
           story_stuck    a story at its review cap, or a gate, failed 3 times in a row\n\n\
         With resume_after_shutdown in the settings (see swarm-config(5)), the next daemon resumes the loops that a stop \
         of the daemon paused. When the loop pauses, the command exits with 1, except after `swarm ralph pause`: then \
         the command waits until the loop is resumed or ends. A second Ctrl-C ends the command at once with 130; the \
         agent continues, and the loop pauses after it.\n\n{LOOP_EXAMPLES}",
        ends::table()
    )
}

/// `swarm loop`
#[derive(Debug, Args)]
#[command(after_long_help = loop_after())]
pub struct Loop {
    /// Task for the agent
    #[arg(value_name = "TASK")]
    pub task: Option<String>,
    /// Read the task from FILE, again for each iteration
    ///
    /// The file replaces TASK.
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// Maximum iterations, 1 to 100 [default: 25]
    #[arg(short = 'n', long, value_name = "N", value_parser = whole(1..=100_u32))]
    pub max_iterations: Option<u32>,
    /// Require no promise, only the checks
    #[arg(long, conflicts_with = "promise")]
    pub no_promise: bool,
    /// Kind of agent [default: derived from the command]
    ///
    /// The profile by which swarm starts the agent and reads its screen (see swarm-config(5)): claude, codex, opencode,
    /// gemini, qwen, aider, generic (for any other agent), or one in your settings. Without COMMAND, swarm runs the
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
    /// Return without printing the loop's progress
    #[arg(short, long)]
    pub detach: bool,
    /// Also print the agent's output
    #[arg(hide_short_help = true, long, conflicts_with_all = ["detach", "quiet"])]
    pub stream: bool,
    #[command(flatten)]
    pub(crate) worker: WorkerArgs,
    /// Directory the agent works in [default: current directory]
    #[arg(hide_short_help = true, long, visible_alias = "project-dir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// How to deliver the prompt
    #[arg(hide_short_help = true, long, value_name = "HOW", value_parser = choice(&ROUTES), default_value = "auto")]
    pub prompt_via: PromptVia,
    /// One more gate: the agent's output matches
    ///
    /// The prompt itself does not count as output. The syntax is that of Python's re. ^ and $ match at the start and
    /// the end of each line.
    #[arg(hide_short_help = true, long, value_name = "REGEX", allow_hyphen_values = true)]
    pub done_pattern: Option<String>,
    /// End an iteration after this time without activity [default: 60s]
    ///
    /// Activity is a change of the screen, a longer transcript, a report of a hook, or CPU use by the agent's
    /// processes. For a one-shot command such as claude -p, which prints nothing until its end, the default is 30m.
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = parse_nonzero_duration)]
    pub inactivity_timeout: Option<u64>,
    /// Your time to answer the agent's question; 0: no limit [default: 10m]
    ///
    /// Answer with `swarm answer`, `swarm attach` or `swarm send`. If nobody answers in time, the iteration fails.
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = parse_duration)]
    pub question_timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) gates: GateArgs,
    #[command(flatten)]
    pub(crate) budgets: BudgetArgs,
    #[command(flatten)]
    pub(crate) worktree: WorktreeArgs,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(crate) caps: CapArgs,
    /// Agent command [default: of --agent, or else of the settings]
    ///
    /// swarm runs the first that is set: COMMAND, the command of --agent, that of `agent` under `[ralph_loop]` in the
    /// settings, the top-level `command`.
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub cmd: Vec<String>,
}
