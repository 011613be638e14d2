//! The options of `spawn --ralph` for a loop with a task list.

use std::path::PathBuf;

use clap::Args;

use super::format::whole;

/// The task list.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Task list (implement and review stories)")]
pub struct TaskListArgs {
    /// Work through DIR/tasks.json; DIR also has prompt.md, prd.md
    ///
    /// Each iteration implements, reviews or fixes one story of the list. Only a review in a fresh context can approve
    /// a story. The loop is complete when every story is approved. The default is 15 iterations; --prompt-file and
    /// --max-iterations override prompt.md and that number. `swarm ralph init --tasks` creates the files. DIR is in the
    /// worker's directory, and relative to it. The command also prints what the agent prints, as with --stream, unless
    /// the agent has a terminal interface or prints JSON. See swarm-ralph(1) for the rules.
    #[arg(hide_short_help = true, long, value_name = "DIR", requires = "ralph")]
    pub ralph_dir: Option<PathBuf>,
    /// Do not review stories
    ///
    /// An iteration that implements a story sets `passes` itself. The loop is complete when every story passes.
    #[arg(hide_short_help = true, long, requires = "ralph_dir")]
    pub skip_review: bool,
    /// Maximum reviews of a story [default: 5]
    ///
    /// The last review approves the story if the story's checks pass. If this review requests changes, swarm turns that
    /// into an approval and puts [AUTO-APPROVED AT CAP] before the concerns in reviewFeedback. If the story's
    /// checks or the loop's gates then fail three times in a row, the loop pauses, since a person has to decide.
    #[arg(hide_short_help = true, long, value_name = "N", requires = "ralph_dir", conflicts_with = "skip_review", value_parser = whole(1..=1000_u32))]
    pub review_cap: Option<u32>,
    /// Command of another agent that reviews stories
    ///
    /// The default is the agent itself, with a fresh context. The command is split into words as a shell does. It must
    /// run in the same way as the agent: both interactive, or both one-shot (claude -p, codex exec).
    #[arg(
        hide_short_help = true,
        long,
        value_name = "COMMAND",
        requires = "ralph_dir",
        conflicts_with = "skip_review"
    )]
    pub reviewer: Option<String>,
    /// Run up to N stories at the same time, each in a worktree
    ///
    /// Each story gets a worker NAME-STORY, which implements and reviews only this story. Worker NAME starts them and
    /// merges approved stories into its branch, swarm/NAME. The section PARALLEL STORIES has the rules. --jobs implies
    /// --worktree; with 1, the stories run one after another in one loop.
    #[arg(hide_short_help = true, long, value_name = "N", requires = "ralph_dir", conflicts_with_all = ["allow_preexisting", "stream"], value_parser = whole(1..=64_u32))]
    pub jobs: Option<u32>,
    /// Start no new story while K stories wait for a review
    #[arg(hide_short_help = true, long, value_name = "K", requires = "jobs", conflicts_with = "skip_review", value_parser = whole(1..=64_u32))]
    pub max_in_review: Option<u32>,
    /// Model of the agent
    #[arg(hide_short_help = true, short, long, value_name = "MODEL", requires = "ralph")]
    pub model: Option<String>,
    /// Add the agent's option to work without permission prompts
    ///
    /// --ralph-dir implies it. swarm adds nothing if the command has an option about permissions. The line about the
    /// spawned worker shows what was added.
    #[arg(hide_short_help = true, long, requires = "ralph")]
    pub unattended: bool,
    /// Do not add that option
    #[arg(hide_short_help = true, long, requires = "ralph", conflicts_with = "unattended")]
    pub no_unattended: bool,
}
