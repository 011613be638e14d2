//! `swarm report`.

use chrono::{DateTime, FixedOffset};
use clap::{Args, ValueEnum};
use swarm_state::model::WorkerName;

use crate::duration::parse_time;

pub(super) const REPORT_LONG: &str = "\
Summarize what happened, or each iteration of one loop.

Without NAME, swarm prints the morning view: one line for each worker, those that need you first. Then come those that \
failed or are lost, that work, that are parked, and that have finished. The line has the status, the iterations, the \
cost, the time and the reason. Below it is the command that answers, continues or merges the work. Workers to which \
nothing happened are counted in one line.

The view covers the time since you last looked; the first one covers everything. A view counts as a look if it is \
run from a terminal (also into a file), without --since and not as JSON. The daemon keeps this time for all clients. If \
swarm prints the view as text on a terminal, the finished workers in it count as seen in swarm ui. \
`swarm status NAME` does the same for one worker.

ITER is the last iteration and the maximum, such as 4/20. In `+2, 4/20`, only two of the four iterations ended in the \
period. TIME is the time of the agent and the checks in the period, or of a worker that is not a loop, the \
time that it ran.

If a finished worker has a worktree, the view shows the commits that the repository's current branch does not have, and \
the number of uncommitted files. It shows a command to merge only for a worker that ended with success.

With NAME, the report has the end of each iteration, the time of the agent and of the checks, the cost, the changes and \
the gates, and the last output of an agent or a check that failed. It also has the number of outages and the time lost \
to them: the iterations that they ended, and the waits.

With --format html, the output is one HTML file with charts of the time, the checks and the cost of each iteration. It \
has no scripts and loads nothing.

--since accepts a time of day (22:00, the last one that has passed), a time span (8h: since eight hours ago), a date (2026-01-15), or a \
date and time (RFC 3339, or without offset).";

/// `swarm report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Worker name [default: all workers]
    pub name: Option<WorkerName>,
    /// Start of the period (22:00, 8h) [default: your last look]
    ///
    /// With NAME, the report covers only iterations that ended since then; the default is all.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub since: Option<DateTime<FixedOffset>>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,
}

/// Output formats of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Text for people
    #[default]
    Text,
    /// Markdown, such as for a pull request
    #[value(alias = "md")]
    Markdown,
    /// One HTML file with charts
    Html,
    /// JSON for programs
    Json,
}
