//! The verbs of a loop.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use swarm_state::model::WorkerName;

use super::{Format, PageFormat};

/// `swarm ralph`
#[derive(Debug, Args)]
pub struct RalphArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: RalphCommand,
}

/// Every verb of `swarm ralph`.
#[derive(Debug, Subcommand)]
pub enum RalphCommand {
    /// Write a starter PROMPT.md here
    Init(RalphInit),
    /// Print that starter prompt
    Template,
    /// Show how far a loop is
    Status(RalphStatus),
    /// Let the current agent finish, then start no other
    #[command(long_about = "Let the current agent finish, then start no other.\n\n\
        Nothing is sent to the agent. A loop that waits after a failure stops waiting at once. On a \
        full disk the pause is kept all the same.")]
    Pause(RalphPause),
    /// Let a paused or lost loop go on
    #[command(long_about = "Let a paused or lost loop go on.\n\n\
        The count goes on where it was. If the agent is still at work, the loop waits for it; if not, the \
        next iteration starts. An iteration that was lost with the tmux server is repeated. On a full disk it \
        is refused, since it could not be kept.\n\n\
        --env sets a variable for the agent's next runs. --env ANTHROPIC_API_KEY copies the value from your \
        environment, so that no process list shows it.")]
    Resume(RalphResume),
    /// List the loops
    Ls(RalphLs),
    /// Show a loop's iterations.log
    Logs(RalphLogs),
    /// Change a setting of a loop while it runs
    #[command(long_about = "Change a setting of a loop while it runs.\n\n\
        Keys: max_iterations, inactivity_timeout and question_timeout (seconds), done_pattern (null removes it), prompt_file. The \
        change holds from the next iteration on.")]
    Set(RalphSet),
    /// Show what an iteration changed
    #[command(long_about = "Show what an iteration changed, or all that changed since the loop began.\n\n\
        After each iteration swarm keeps the tree as a commit, untracked files included, ignored ones not. The \
        refs are refs/swarm/NAME/LOOP/ITERATION; git log, git show and git diff take them.")]
    Diff(RalphDiff),
    /// Check an iteration's tree out into a new worktree
    #[command(long_about = "Check the tree that an iteration left out into a new worktree.\n\n\
        Nothing that is there is touched. Iteration 0 is the tree before the first. The last line printed is the \
        worktree's path alone.")]
    Restore(RalphRestore),
    /// Take changed checks and protected files as they are
    #[command(long_about = "Take changed checks and protected files as they are.\n\n\
        An iteration that changed a script which a check runs, a file named with --protect, or the task's own file does not \
        count as done. Look at the change (swarm ralph diff NAME); when it is right, say so with this. An agent \
        cannot approve its own work: not from its pane, a check or what it left running, not through a worker that it \
        spawned. From within swarm's own tmux (a window opened while attached, say) nobody can who is no worker; use a terminal \
        of your own. The same holds for ralph set, ralph resume, respawn and spawn --replace.")]
    Approve(RalphApprove),
    /// Remove the state of loops that are over
    #[command(long_about = "Remove the state of loops that are over.\n\n\
        That is the directory with state.json, iterations.log and the iterations' files. When a name is used \
        again, the state of the loop before is kept under NAME.1, NAME.2 and so on; NAME means all of them, \
        NAME.1 that one. The worker's own record and its logs stay: swarm ls and swarm ralph status still show it.")]
    Clean(RalphClean),
}

/// `swarm ralph init`
#[derive(Debug, Args)]
pub struct RalphInit {
    /// Overwrite PROMPT.md if it is there
    #[arg(long)]
    pub force: bool,
}

/// `swarm ralph status`
#[derive(Debug, Args)]
pub struct RalphStatus {
    /// The loop's worker
    pub name: WorkerName,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm ralph pause`
#[derive(Debug, Args)]
pub struct RalphPause {
    /// The loop's worker
    pub name: WorkerName,
}

/// `swarm ralph resume`
#[derive(Debug, Args)]
pub struct RalphResume {
    /// The loop's worker
    pub name: WorkerName,
    /// Set a variable for the agent's next runs; KEY alone copies its value from your environment
    #[arg(long, value_name = "KEY[=VALUE]")]
    pub env: Vec<String>,
}

/// `swarm ralph ls`
#[derive(Debug, Args)]
pub struct RalphLs {
    /// How to print them
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// `swarm ralph logs`
#[derive(Debug, Args)]
pub struct RalphLogs {
    /// The loop's worker
    pub name: WorkerName,
    /// Go on printing until the loop is over
    #[arg(short, long)]
    pub follow: bool,
    /// How many lines, from the end [default: all]
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<u32>,
}

/// `swarm ralph set`
#[derive(Debug, Args)]
pub struct RalphSet {
    /// The loop's worker
    pub name: WorkerName,
    /// What to change
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub changes: Vec<(String, String)>,
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
    /// The loop's worker, or the kept state of an earlier loop of that name, as in agent.1
    #[arg(required_unless_present = "all", conflicts_with = "all", value_parser = parse_state)]
    pub name: Option<String>,
    /// Every loop that is over, and what earlier loops left, also those of a name whose loop is live
    #[arg(long)]
    pub all: bool,
}

/// A worker's name, or one with the number of an earlier loop.
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
    /// The loop's worker
    pub name: WorkerName,
    /// Which iteration [default: all that changed since the start]
    #[arg(value_name = "ITERATION", value_parser = clap::value_parser!(u32).range(1..))]
    pub iteration: Option<u32>,
}

/// `swarm ralph restore`
#[derive(Debug, Args)]
pub struct RalphRestore {
    /// The loop's worker
    pub name: WorkerName,
    /// Whose tree; 0 is the one before the first iteration
    #[arg(value_name = "ITERATION")]
    pub iteration: u32,
    /// Where to [default: REPOSITORY-worktrees/NAME-ITERATION]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The new branch [default: swarm/NAME-ITERATION]
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
}

/// `swarm ralph approve`
#[derive(Debug, Args)]
pub struct RalphApprove {
    /// The loop's worker
    pub name: WorkerName,
}

/// `swarm why`
#[derive(Debug, Args)]
pub struct Why {
    /// The loop's worker
    pub name: WorkerName,
}

/// `swarm report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The loop's worker
    pub name: WorkerName,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,
}

/// How to print a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Markdown, for people
    #[default]
    Md,
    /// For programs
    Json,
}
