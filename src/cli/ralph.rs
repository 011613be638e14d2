//! The verbs of a loop.

use clap::{Args, Subcommand};
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
        is refused, since it could not be kept.")]
    Resume(RalphResume),
    /// List the loops
    Ls(RalphLs),
    /// Show a loop's iterations.log
    Logs(RalphLogs),
    /// Change a setting of a loop while it runs
    #[command(long_about = "Change a setting of a loop while it runs.\n\n\
        Keys: max_iterations, inactivity_timeout (seconds), done_pattern (null removes it), prompt_file. The \
        change holds from the next iteration on.")]
    Set(RalphSet),
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
