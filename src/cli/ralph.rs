//! The verbs of a loop.

use std::path::PathBuf;

use chrono::{DateTime, FixedOffset};
use clap::{Args, Subcommand};
use swarm_state::model::WorkerName;

use super::format::{ListFormatArg, PageFormat, WorkerPage, whole};
use super::ralph_tasks::{self, RalphTasksCommand};
use super::task_files::{self, RalphArchive, RalphInit, RalphPlan};
use crate::duration::parse_time;

pub(super) const RALPH_LONG: &str = "\
Manage loops.

`swarm spawn --ralph` and `swarm loop` start a loop. Each iteration starts the agent again with a fresh context and \
the current prompt file. With spawn --ralph, iterations share only the files in the worker's directory. The loop ends when all \
its gates hold (a done pattern is one), when its iterations or another budget are used up, after five failures in a \
row (--max-failures), or when you kill it.

An iteration ends when the agent exits or finishes its turn. It also ends when the agent shows no activity within \
--inactivity-timeout. The default is 60s, or 30m for a one-shot command such as `claude -p`, which prints its answer \
at the end. If the output matches --done-pattern, the iteration ends once the agent has been quiet for four seconds. The \
prompt itself does not count as output, even where the screen repeats it.

An iteration fails if swarm cannot deliver the prompt, if the agent exits with a nonzero status, or if nobody answers \
the agent's question within --question-timeout (10m). While the question is open, the worker's status is \
`waiting`. If the inactivity timeout ends an interactive agent that printed something, the iteration succeeds. If it \
ends an agent that printed nothing, or a one-shot command, the iteration fails.

A failed iteration counts toward --max-iterations. After a failure, swarm waits 1, 2, 4, 8 seconds and so on, at most \
five minutes, before the next iteration. The fifth failure in a row ends the loop. If the iterations are used up and \
none succeeded, the loop fails. `swarm why NAME` shows the reason and the agent's last output.

Task lists:
`swarm spawn --ralph --ralph-dir DIR` works through the stories of DIR/tasks.json. Each iteration works on one story, the \
first that exists of these:\n  \
  1. a story for which a review requested changes: the agent fixes it\n  \
  2. a story that waits for a review: the agent reviews it\n  \
  3. the open story with the lowest priority number whose dependencies are\n     approved: the agent implements it\n\n\
The file .ralph-active in the worker's \
directory has the mode and the story. It exists while the loop is live.

After each iteration, swarm compares the list with its own copy. Only a review can approve a story. swarm undoes every \
other change of the fields passes, reviewStatus and reviewCount, a removed story, and changed checks of a story. It \
restores a broken list (the broken one is kept in ~/.swarm/ralph/NAME), a changed prd.md and a changed prompt.md. An \
approval does not count if the review changed other files. The next iteration and `swarm report` name each of these. \
Agents may add stories and change every other field; `swarm report` and the next review name changed requirements. While \
the loop is paused, you may edit every file.

The commands in the field checks of a story must exit with 0 before a review can approve it. swarm runs them, and those \
of all stories once every story is approved. swarm does not run the verifyCommands of the list: they are for the agent. \
If all stories are approved and a gate such as --check does not hold, swarm returns the story that was approved last \
to the agent, with the output. If the list is approved when the loop starts, swarm first runs the gates without an \
agent. If the gates fail three times in a row for a story at its review cap, the loop pauses, since a person has to \
decide. An agent that exits with 0 but prints and changes nothing is started again, up to three times in a row without \
using an iteration.

With hooks (Claude Code, Codex), the agent cannot end its turn while the list is not valid, a change is not permitted, \
or files are not committed.";

/// Every verb of `swarm ralph`.
#[derive(Debug, Subcommand)]
pub enum RalphCommand {
    /// Write a starter PROMPT.md and TODO.md, or a task list
    #[command(long_about = task_files::INIT_LONG, after_long_help = task_files::INIT_EXAMPLES)]
    Init(RalphInit),
    /// Plan the stories of a task list with an agent
    #[command(long_about = task_files::PLAN_LONG, after_long_help = task_files::PLAN_EXAMPLES)]
    Plan(RalphPlan),
    /// Archive a finished task list and start a new one
    #[command(long_about = task_files::ARCHIVE_LONG)]
    Archive(RalphArchive),
    /// Print the starter prompt
    Template,
    /// Show a loop's progress
    Status(WorkerPage),
    /// Pause a loop after the current iteration
    #[command(long_about = "Pause a loop after the current iteration.\n\n\
        swarm lets the current agent finish, sends nothing to it, and starts no further iteration. If the loop is \
        waiting to retry after a failure, it pauses at once. swarm saves the pause even if the disk is full.")]
    Pause(RalphPause),
    /// Resume a paused or lost loop, or one that ended at a limit
    #[command(long_about = RESUME_LONG)]
    Resume(RalphResume),
    /// List loops
    Ls(ListFormatArg),
    /// Print a loop's iterations.log
    Logs(RalphLogs),
    /// Change a setting of a loop
    #[command(
        long_about = "Change a setting of a running, paused or lost loop, or of one that ended at a limit.\n\n\
        The change applies from the next iteration. Other gates and budgets cannot be changed. Times accept the forms \
        90, 90s, 10m, 8h and 1h30m. none removes the value of a key marked with *. The keys are:\n\n  \
          max_iterations      Maximum iterations\n  \
          max_time *          Maximum time of the loop\n  \
          max_cost *          Maximum cost in US dollars\n  \
          max_tokens *        Maximum input and output tokens\n  \
          max_failures        Failed iterations in a row that stop the loop\n  \
          no_progress *       Iterations in a row without progress that pause it\n  \
          max_context *       Percent of the agent's context for an iteration\n  \
          inactivity_timeout  Time without activity that ends an iteration\n  \
          question_timeout    Your time to answer an agent's question; 0: no limit\n  \
          done_pattern *      Regular expression\n  \
          prompt_file         Path of the prompt file, relative to the current\n                      \
                              directory",
        after_long_help = "\
Examples:
  swarm ralph set agent max_iterations=20
  swarm ralph set agent max_cost=5 max_time=8h
  swarm ralph set agent done_pattern=none
  swarm ralph set agent max_iterations=50 && swarm ralph resume agent"
    )]
    Set(RalphSet),
    /// Show what an iteration changed
    #[command(long_about = "Show what an iteration changed, or all changes since the loop began.\n\n\
        After each iteration, swarm saves the files as a commit, with untracked files and without ignored ones. Its ref \
        is refs/swarm/NAME/LOOP/ITERATION, which git log, git show and git diff accept.")]
    Diff(RalphDiff),
    /// Check out an iteration's files into a new worktree
    #[command(long_about = "Check out an iteration's files into a new worktree.\n\n\
        Existing files stay as they are. Iteration 0 stands for the files before the first iteration. The last line of \
        the output is the path of the new worktree.")]
    Restore(RalphRestore),
    /// Accept changes to watched files and tests
    #[command(long_about = "Accept changes to watched files and tests.\n\n\
        An iteration does not count as done while a watched file is changed: a script, program or configuration file that a check \
        uses, a file named with --protect, a test file with --protect-tests, or the loop's task file (swarm loop --help lists them all). The command also accepts tests for which an iteration was refused: changed, missing or skipped ones, which `swarm why` lists. Look at the change \
        (swarm ralph diff NAME), and accept it with this command if it is right.\n\n\
        An agent cannot approve its own work: not from its pane, not from a check or a process that it left running, and \
        not through a worker that it spawned. swarm also refuses the command in a window that you opened inside swarm's \
        tmux (for example while attached); use another terminal. The same rules apply to hold, release, ralph set, ralph \
        resume, respawn and spawn --replace.")]
    Approve(WorkerPage),
    /// Check, list, import and export task lists
    #[command(subcommand, long_about = ralph_tasks::TASKS_LONG)]
    Tasks(RalphTasksCommand),
    /// Delete the state of finished loops
    #[command(long_about = "Delete the state of finished loops.\n\n\
        The state is the directory with state.json, iterations.log and the files of the iterations. When a name is used \
        again, swarm keeps the state of the earlier loop as NAME.1, NAME.2 and so on. NAME deletes all of them, \
        NAME.1 only that one. The worker's record and its logs stay, so swarm ls and swarm ralph status still show the \
        worker.\n\n\
        The snapshots of a loop are deleted with its state if a branch of yours has the files of the last one; see \
        swarm clean --help.")]
    Clean(RalphClean),
}

/// `swarm ralph pause`
#[derive(Debug, Args)]
pub struct RalphPause {
    /// Worker names
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Pause every live loop
    #[arg(long)]
    pub all: bool,
    /// Output format; json prints one object per worker and line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm ralph logs`
#[derive(Debug, Args)]
pub struct RalphLogs {
    /// Worker name
    pub name: WorkerName,
    /// Keep printing until the loop has finished
    #[arg(short, long)]
    pub follow: bool,
    /// Number of lines from the end [default: all]
    #[arg(short = 'n', long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    pub lines: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", conflicts_with = "follow")]
    pub format: PageFormat,
}

/// `swarm ralph set`
#[derive(Debug, Args)]
pub struct RalphSet {
    /// Worker name
    pub name: WorkerName,
    /// Settings to change
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub changes: Vec<(String, String)>,
    /// Output format; json prints the loop's settings
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE, as in max_iterations=20".to_owned()),
    }
}

/// `swarm ralph clean`
#[derive(Debug, Args)]
pub struct RalphClean {
    /// Worker name, or an earlier loop of that name (agent.1)
    #[arg(required_unless_present = "all", conflicts_with = "all", value_parser = parse_state)]
    pub name: Option<String>,
    /// Delete the state of every finished and every earlier loop
    ///
    /// This includes earlier loops of a name whose current loop is live.
    #[arg(long)]
    pub all: bool,
    /// Delete snapshots even if no branch has the latest files
    #[arg(long)]
    pub discard: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// Parses a worker's name, with or without the number of an earlier loop.
fn parse_state(text: &str) -> Result<String, String> {
    let base = match text.rsplit_once('.') {
        Some((base, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => base,
        Some(_) | None => text,
    };
    WorkerName::new(base).map(|_| text.to_owned()).map_err(|e| e.to_string())
}

/// `swarm ralph diff`
#[derive(Debug, Args)]
pub struct RalphDiff {
    /// Worker name
    pub name: WorkerName,
    /// Iteration number [default: all changes since the start]
    #[arg(value_name = "ITERATION", value_parser = whole(1..=u32::MAX))]
    pub iteration: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm ralph restore`
#[derive(Debug, Args)]
pub struct RalphRestore {
    /// Worker name
    pub name: WorkerName,
    /// Iteration number; 0: the files before the first
    #[arg(value_name = "ITERATION", value_parser = whole(0..=u32::MAX))]
    pub iteration: u32,
    /// Directory [default: REPOSITORY-worktrees/NAME-ITERATION]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// New branch [default: swarm/NAME-ITERATION]
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

pub(super) const WHY_LONG: &str = "\
Explain a worker's state and suggest the next step.

With NAME, swarm prints the reason for the worker's state, and how the last iteration or run ended. For a loop, it \
also prints the results of the checks, and the last output of an agent that failed. For any other worker, it prints \
the last 15 lines of output.

Without NAME, swarm prints a short block for each worker, the worst first: failed, lost, unreachable, waiting, \
retrying, paused, killed, starting, running, done. A block contains the last lines of the failed agent or check, or the question \
on the screen of a waiting agent. If there is nothing to do for a worker, its block is one line.

--since accepts a time of day (22:00, the last one that has passed), a time span (8h: since eight hours ago), a date (2026-01-15), or a \
date and time (RFC 3339, or without offset).";

/// `swarm why`
#[derive(Debug, Args)]
pub struct Why {
    /// Worker name [default: all workers]
    pub name: Option<WorkerName>,
    /// Only workers with events since TIME; not with NAME
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "name")]
    pub since: Option<DateTime<FixedOffset>>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

const RESUME_LONG: &str = "Resume a paused or lost loop, or one that ended at a limit.\n\n\
A loop that waits for a usage limit or another outage tries again at once. \
The iteration count continues. If the agent of the current iteration still runs, swarm waits for its end; \
otherwise it starts the next iteration. swarm repeats an iteration that was lost with the tmux server. On a \
full disk, swarm refuses to resume, because it could not save the change.\n\n\
A loop that ended at a limit (iterations, time, cost, tokens or failures) continues with its count, its \
baseline, its snapshots, its worktree and its environment. Raise the limit first with swarm ralph set. Cost, \
tokens, failures and time used so far count; the time between the end and the resume does not. --all \
includes loops that a stop of the daemon paused, but not loops that ended at a limit. To start any finished loop again \
from its first iteration, use swarm respawn.\n\n\
--all --now also continues, before the resets, all loops that wait for a usage limit (swarm quota), and resumes the \
loops that wait for another outage.\n\n\
--env sets a variable for the agent's next runs. --env ANTHROPIC_API_KEY copies the value from your \
environment, so that no process list shows it.";

/// `swarm ralph resume`
#[derive(Debug, Args)]
pub struct RalphResume {
    /// Worker names
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    pub names: Vec<WorkerName>,
    /// Resume every paused or lost loop
    #[arg(long)]
    pub all: bool,
    /// With --all: also loops that wait for a usage limit
    #[arg(long, requires = "all", conflicts_with = "names")]
    pub now: bool,
    /// Set a variable (repeatable); KEY alone copies your value
    #[arg(long, value_name = "KEY[=VALUE]")]
    pub env: Vec<String>,
    /// Output format; json prints one object per worker and line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}
