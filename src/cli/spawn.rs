//! `spawn`, and the options that it shares with `loop`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use swarm_state::caps::{parse_cpus, parse_memory, parse_pids};
use swarm_state::model::{PromptVia, RestartWhen, WorkerName};

use super::format::{Choice, OptionLimit, PageFormat, choice, limit, whole};
use super::gates::{BudgetArgs, GateArgs};
use super::sandbox::SandboxArgs;
use super::task_list::TaskListArgs;
use crate::duration::{parse_duration, parse_nonzero_duration};
use crate::settings;

pub(super) const SPAWN_LONG: &str = "\
Start an agent in its own tmux window and supervise it.

The command returns as soon as the agent runs. `swarm attach NAME` shows the agent.

With --ralph, swarm runs the agent in a loop. The command then prints the loop's progress until the loop ends, and \
exits with its result. Use --ralph with a prompt file of your own; without --check, --promise and \
--ralph-dir, swarm passes it to the agent unchanged. Use `swarm loop` with a task and checks; swarm then writes the prompt.";

const SPAWN_AFTER: &str = "\
Loops:
Each start of the agent is an iteration: the agent has a fresh context, and swarm reads the prompt file again. The \
next iteration starts when the agent has ended. swarm ends an agent that shows no activity for --inactivity-timeout \
seconds. swarm-ralph(1) has all rules. Gates and budgets need --ralph.

The command exits with 0 if all gates hold. A loop without --check and --promise also succeeds when all iterations \
are used and one succeeded. Otherwise the command exits with 1; swarm-loop(1) lists the reasons.

Closing the terminal does not end the loop. Ctrl-C pauses it: swarm lets the current agent finish and starts no \
further iteration, and the command exits with 1. A second Ctrl-C ends the command at once (exit status 130); the \
agent continues, and the loop pauses after it.

With --detach, the command returns when the first agent runs. With checks, a promise or a task list, \
it returns earlier, before the baseline: the run of the checks that shows which of them fail already. `swarm why NAME` shows whether the \
agent started.

Parallel stories:
With --ralph-dir DIR --jobs N, worker NAME is not a loop. It coordinates the stories in a worktree of its own, on \
branch swarm/NAME, and starts a worker NAME-STORY for each story that is ready: a loop that works on this story only, \
in its own worktree. A story is ready when the stories that it depends on are merged. Commit the files of DIR first: \
the worktrees start from the last commit. Your own directory does not change.

When a story is approved, swarm merges its branch into swarm/NAME and runs the story's checks and each --check on the \
result. After a conflict or a failed check, swarm undoes the merge and sends the story back to its worker with the \
reason, at most three times. swarm itself merges the task list and progress.txt. The committer is the one of your git \
configuration.

When a story fails, the others continue, except those that depend on it. The command exits with 0 when every story is \
merged, otherwise with 1. Its last lines name the branch and the stories that failed. swarm then removes the worktrees \
and branches of merged stories if nothing would be lost. Merge branch swarm/NAME when you are satisfied.

Ctrl-C ends only this command. `swarm kill NAME` also kills the stories' workers, and `swarm respawn NAME` continues \
with the stories that are left. -n and limits such as --max-cost apply to each story.

Permissions:
Nobody answers a permission dialog while you are away. Give the agent its permissions with an option of its command, \
or in its settings. swarm warns about a loop of a known agent that has neither:
  claude  --dangerously-skip-permissions, --permission-mode acceptEdits,
          --allowedTools
  codex   --full-auto, --sandbox workspace-write
  gemini  --yolo, --approval-mode auto_edit; the same for qwen
  aider   --yes-always
Options that skip all questions are for a container or a VM. opencode asks only if its settings say so. In Claude Code \
and Codex, the guard stops dangerous commands, but it is not a sandbox: see [guard] in swarm-config(5).

Restarts:
With --restart, swarm restarts a worker that ended. It first waits 1 second. After each further failure in a row it \
waits twice as long, at most five minutes. on-failure restarts the worker after every end except exit status 0; an \
end by a signal, a closed pane and a stopped tmux server also count as failures. always restarts it after every end. \
Exit status 0 and a run of ten minutes reset the count of failures. If the worker fails again after --max-restarts \
restarts in a row, its status is failed.

swarm does not restart a killed worker, or one whose done pattern matched. If a run printed the pattern and then \
exited with an error, swarm restarts the worker. While the daemon is stopped, nothing is restarted; the next daemon \
continues the pending delays. Each run gets the same environment and prompt as the first, but swarm reads a prompt \
file again.

Resource caps:
--memory, --cpus and --pids limit all processes of a run together, also those that detach from the terminal. The \
defaults are those under [limits] in the settings. swarm puts the agent into a cgroup of its own: in a scope of the \
systemd manager, or else below a cgroup that swarm may write. Where neither is possible, --memory becomes a resource \
limit (RLIMIT_DATA), which holds for each process by itself, and --cpus and --pids are not enforced. `swarm status` \
shows the mechanism, and the command warns about a cap that is not enforced.

If the memory of a run reaches the cap, the kernel kills its largest process. If that is the agent, the run ends with \
the reason `out of memory (200 MiB)`; in a loop, the iteration fails with it. If it is another process, the agent \
continues, and swarm logs a warning. With a resource limit, a program gets an error when it allocates memory, and ends \
with a message of its own. With or without caps, when the memory of the whole machine runs out, the kernel kills agents \
before the daemon and other programs (oom_score_adj 500).

Processes in a systemd scope of your user manager end when that manager ends; `swarm doctor` shows what ends them at \
logout.

Hooks:
swarm passes hooks to Claude Code (as --settings FILE, merged with your own --settings) and to Codex (as -c \
arguments) for each run. It does not change your settings files for this. The hooks report an accepted prompt, the \
end of a turn, a question, an API error, and a full context. Without hooks, swarm detects the end of a turn and a \
question on the screen. To turn hooks off, set hooks = \"off\" under [agents.claude] in the settings.

An interactive agent (claude, codex) stays open when its turn ends, that is, when it waits for the next prompt. In a \
loop, swarm ends it one second after the end of its turn, unless another hook or a background task continues the \
turn. A one-shot command (claude -p, codex exec) exits by itself. A full context also ends the iteration, and an API \
error fails it. While a usage limit, an overloaded API or a refused login lasts, swarm waits and uses up no \
iteration; the worker's status is then `waiting`.

Examples:
  swarm spawn --name fix --prompt 'Fix the failing test' -- claude
  swarm spawn --name agent --ralph --prompt-file PROMPT.md --max-iterations 10 \\
      --done-pattern 'All tasks complete' -- \\
      claude --dangerously-skip-permissions
  swarm spawn --name agent --ralph --prompt-file PROMPT.md -n 10 -d -- \\
      codex --full-auto
  swarm spawn --name checkout --ralph --ralph-dir ralph --jobs 3 -- claude
  swarm spawn --name web --restart on-failure --max-restarts 5 -- npm run dev";

/// `swarm spawn`
#[derive(Debug, Args)]
#[command(after_long_help = SPAWN_AFTER)]
pub struct Spawn {
    #[command(flatten)]
    pub(crate) worker: WorkerArgs,
    /// Directory the agent works in [default: current directory]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// With --ralph: return without printing the loop's progress
    #[arg(short, long)]
    pub detach: bool,
    /// Ignored; accepted for compatibility
    #[arg(hide_short_help = true, long)]
    pub tmux: bool,
    /// Output format
    #[arg(hide_short_help = true, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
    #[command(flatten)]
    pub(crate) restart: RestartArgs,
    #[command(flatten)]
    pub(crate) ralph: LoopArgs,
    #[command(flatten)]
    pub(crate) tasks: TaskListArgs,
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
    /// Agent command [default: `command` in the settings]
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub cmd: Vec<String>,
}

/// The options that `spawn` and `loop` share.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Worker name [default: from the directory's name]
    ///
    /// If another worker has the default name, swarm appends a number.
    #[arg(long, allow_hyphen_values = true)]
    pub name: Option<WorkerName>,
    /// Set a variable (repeatable); KEY alone copies your value
    ///
    /// The agent also gets your other variables, except TMUX*, SWARM_* and those that name a git directory.
    #[arg(hide_short_help = true, long, value_name = "KEY[=VALUE]")]
    pub env: Vec<String>,
    /// Label for the worker (repeatable)
    #[arg(hide_short_help = true, long, value_name = "TAG", value_parser = NonEmptyStringValueParser::new())]
    pub tag: Vec<String>,
    /// Stop a live worker with the same name first
    #[arg(hide_short_help = true, long)]
    pub replace: bool,
    /// Save the raw terminal output in ~/.swarm/logs/NAME.raw
    #[arg(hide_short_help = true, long)]
    pub record: bool,
    /// Window size, 20x5 to 1000x500 [default: 200x50]
    #[arg(hide_short_help = true, long, value_name = "COLSxROWS", value_parser = parse_size)]
    pub size: Option<(u16, u16)>,
    /// tmux server: a path, or a name as in tmux -L [default: swarm's own]
    #[arg(hide_short_help = true, long, value_name = "SOCKET")]
    pub tmux_socket: Option<String>,
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
    /// How to deliver the prompt
    #[arg(hide_short_help = true, long, value_name = "HOW", value_parser = choice(&ROUTES), default_value = "auto")]
    pub prompt_via: PromptVia,
    /// Wait until the agent accepts input
    #[arg(hide_short_help = true, long)]
    pub ready_wait: bool,
    /// Maximum time until the agent accepts input
    ///
    /// After this time, the worker's status is `waiting`. With --ready-wait, the command then exits with 5; the worker
    /// stays.
    #[arg(hide_short_help = true, long, value_name = "DURATION", default_value = "120s", value_parser = parse_nonzero_duration)]
    pub ready_timeout: u64,
    /// End the worker or loop when the output matches
    ///
    /// With --check or --promise, it is one more gate. The prompt itself does not count as output. The syntax is that
    /// of Python's re. ^ and $ match at the start and the end of each line.
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub done_pattern: Option<String>,
}

/// The restart policy of a worker without a loop.
#[derive(Debug, Args)]
#[command(next_help_heading = "Restart")]
pub struct RestartArgs {
    /// When to restart the worker; not with --ralph [default: no]
    #[arg(long, value_name = "WHEN", value_parser = choice(&RESTARTS))]
    pub restart: Option<Restart>,
    /// Maximum restarts in a row; 0 allows none
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 10, requires = "restart", value_parser = whole(0..=u32::MAX))]
    pub max_restarts: u32,
}

/// [`RestartWhen`], or never, as an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart(pub Option<RestartWhen>);

/// [`RestartWhen::OnAbnormal`] is only for the program of `--jobs`.
const RESTARTS: [Choice<Restart>; 3] = [
    (Restart(None), "no", "Never"),
    (Restart(Some(RestartWhen::OnFailure)), "on-failure", "After every end except exit status 0"),
    (Restart(Some(RestartWhen::Always)), "always", "After every end"),
];

/// The options that make a worker a loop.
#[derive(Debug, Args)]
#[command(next_help_heading = "Loop (with --ralph)")]
pub struct LoopArgs {
    /// Loop the agent with a fresh context each time
    #[arg(long)]
    pub ralph: bool,
    /// Maximum iterations; required unless the settings set it
    ///
    /// --ralph-dir sets it too.
    #[arg(short = 'n', long, value_name = "N", requires = "ralph", value_parser = whole(1..=u32::MAX))]
    pub max_iterations: Option<u32>,
    /// End an iteration after this time without activity [default: 60s]
    ///
    /// Activity is a change of the screen, a longer transcript, a report of a hook, or CPU use by the agent's
    /// processes. For a one-shot command such as claude -p, which prints nothing until its end, the default is 30m.
    #[arg(hide_short_help = true, long, value_name = "DURATION", requires = "ralph", value_parser = parse_nonzero_duration)]
    pub inactivity_timeout: Option<u64>,
    /// Your time to answer the agent's question; 0: no limit [default: 10m]
    ///
    /// Answer with `swarm answer`, `swarm attach` or `swarm send`. If nobody answers in time, the iteration fails.
    #[arg(hide_short_help = true, long, value_name = "DURATION", requires = "ralph", value_parser = parse_duration)]
    pub question_timeout: Option<u64>,
    /// Also print the agent's output
    #[arg(hide_short_help = true, long, requires = "ralph", conflicts_with = "detach")]
    pub stream: bool,
}

/// The git worktree.
#[derive(Debug, Args)]
#[command(next_help_heading = "Isolation")]
pub(crate) struct WorktreeArgs {
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

/// The resource caps.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Resource caps")]
pub struct CapArgs {
    /// Maximum memory of all processes, such as 200M or 8G
    ///
    /// K, M, G and T are powers of 1024. The caps do not hold for the checks. The value `none` turns off the default
    /// of the settings, for each cap.
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = limit(parse_memory))]
    pub memory: Option<OptionLimit<u64>>,
    /// Maximum CPU time of all processes, in CPUs, such as 1.5
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = limit(parse_cpus))]
    pub cpus: Option<OptionLimit<u32>>,
    /// Maximum number of processes and threads, at least 5
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = limit(parse_pids))]
    pub pids: Option<OptionLimit<u32>>,
}

pub(super) const ROUTES: [Choice<PromptVia>; 4] = [
    (PromptVia::Auto, "auto", "As the agent's profile defines (see swarm-config(5))"),
    (PromptVia::Stdin, "stdin", "On standard input, as in `cat PROMPT | agent`"),
    (PromptVia::Arg, "arg", "As an argument"),
    (PromptVia::Paste, "paste", "Paste into the agent's input box when it is ready"),
];

/// Parses `200x50` into columns and rows.
pub(super) fn parse_size(text: &str) -> Result<(u16, u16), String> {
    settings::size(text).ok_or_else(|| format!("give {}", settings::SIZE))
}
