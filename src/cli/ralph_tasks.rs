//! The verbs of `swarm ralph tasks`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use swarm_state::tasks::import::ImportFormat;

use super::format::{Choice, Format, PageFormat, choice, whole};

pub(super) const TASKS_LONG: &str = "\
Check, list, import and export task lists.

A task list is the file tasks.json in the directory of a loop, usually ralph/. It has the stories that the loop \
implements and reviews. These commands need no daemon, except that import asks it which loops are live.";

/// Every verb of `swarm ralph tasks`.
#[derive(Debug, Subcommand)]
pub enum RalphTasksCommand {
    /// Check a task list and report every problem
    #[command(
        long_about = "Check a task list and report every problem.\n\n\
        swarm checks the fields of each story, the dependencies and the review fields. A list without stories and a story \
        without a title are problems too. A problem names the story and the \
        field, and the line and column if the JSON is broken. For a valid list, swarm prints the number of stories in \
        each state, and an estimate of the iterations that are left: three for each open story, one with --skip-review. In a loop, swarm runs the field checks of a story; the list's \
        verifyCommands are only for the agent.",
        after_long_help = "Exit status:\n  0  The list is valid.\n  1  It has problems, or it cannot be read."
    )]
    Check(TasksCheck),
    /// List the stories and show which one is next
    #[command(long_about = "List the stories and show which one is next.\n\n\
        A story is open, needs_review, changes_requested, approved, or done (it passes without a review). Feedback of a \
        review is fixed first, then stories are reviewed, then implemented. Within each kind of work, the lower priority \
        number comes first, then the order of the file. A list in which a story passes and no story was reviewed is that of a \
        loop without reviews.")]
    Ls(TasksLs),
    /// Show the dependencies between stories
    #[command(
        long_about = "Show the dependencies between stories.\n\n\
        Stories of one level can be worked on at once, as soon as the stories of the levels before it are approved. \
        Missing stories and cycles are reported as warnings.",
        after_long_help = "Examples:\n  swarm ralph tasks graph\n  \
        swarm ralph tasks graph --format dot | dot -Tsvg >tasks.svg"
    )]
    Graph(TasksGraph),
    /// Import stories from another program or a Markdown plan
    #[command(long_about = IMPORT_LONG, after_long_help = IMPORT_EXAMPLES)]
    Import(TasksImport),
    /// Export a task list as Markdown or prd.json
    #[command(long_about = "Export a task list as Markdown or prd.json.\n\n\
        markdown has a check box for each story, and its fields below it. swarm ralph tasks import reads the same stories \
        from it, except for fields that swarm does not have. prd is the form of snarktank/ralph, without review fields.")]
    Export(TasksExport),
}

const IMPORT_LONG: &str = "\
Import stories from another program or a Markdown plan.

swarm adds the stories to the task list; the stories in it stay. The formats are:

  prd          prd.json of snarktank/ralph, or another tasks.json
  markdown     Check boxes (- [ ] Title). Boxes below a story are its acceptance
               criteria, text below it is its description; without text, the
               heading above it is. `### US-001: Title` is a story too. Entries
               such as `- Depends on: US-001` and `- Priority: 2` set fields.
  task-master  tasks.json of task-master; subtasks become criteria
  beads        bd export; dependencies that block are kept
  github       gh issue list --state all --limit 1000 \\
               --json number,title,body,labels,state,stateReason
               Check boxes in the body become criteria; `Depends on #12` or
               `Blocked by #12` is a dependency.

Stories that are done count as approved, with the note `imported as done`. Canceled and deleted ones are left out. A \
story without criteria gets one from its title. A story without an id gets the id of the story with the same title, or \
the next free one, as in US-004.

swarm writes the list whole or not at all. It refuses if the result would not be valid, if a dependency is missing, or \
while a loop works on the list. While the loop is paused, you may import.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  swarm ralph tasks import plan.md
  swarm ralph tasks import .taskmaster/tasks/tasks.json --tag next --dry-run
  bd export | swarm ralph tasks import -";

/// The list that a verb reads.
#[derive(Debug, Args)]
pub struct TaskListPlace {
    /// Task list [default: tasks.json in the directory of --ralph-dir]
    #[arg(value_name = "FILE", conflicts_with = "ralph_dir")]
    pub file: Option<PathBuf>,
    /// Directory of the task list
    #[arg(long, value_name = "DIR", default_value = "ralph")]
    pub ralph_dir: PathBuf,
}

/// The options of a loop that decide about the state of its stories.
#[derive(Clone, Copy, Debug, Args)]
pub struct TaskReviewArgs {
    /// Check the list for a loop without reviews
    #[arg(long)]
    pub skip_review: bool,
    /// Maximum reviews of a story
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole(1..=u32::MAX))]
    pub review_cap: u32,
}

/// `swarm ralph tasks check`
#[derive(Debug, Args)]
pub struct TasksCheck {
    #[command(flatten)]
    pub(crate) place: TaskListPlace,
    #[command(flatten)]
    pub(crate) review: TaskReviewArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm ralph tasks ls`
#[derive(Debug, Args)]
pub struct TasksLs {
    #[command(flatten)]
    pub(crate) place: TaskListPlace,
    /// Show the next story of a loop without reviews
    #[arg(long)]
    pub skip_review: bool,
    /// Output format; names prints the ids
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// `swarm ralph tasks graph`
#[derive(Debug, Args)]
pub struct TasksGraph {
    #[command(flatten)]
    pub(crate) place: TaskListPlace,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: GraphFormat,
}

/// Output formats of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Levels for people
    #[default]
    Text,
    /// Graphviz
    Dot,
    /// Mermaid
    Mermaid,
    /// JSON for programs
    Json,
}

/// `swarm ralph tasks import`
#[derive(Debug, Args)]
pub struct TasksImport {
    /// File to import; - reads standard input
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Directory of the task list
    #[arg(long, value_name = "DIR", default_value = "ralph")]
    pub ralph_dir: PathBuf,
    /// Format of FILE [default: detected]
    #[arg(long, value_parser = choice(&IMPORT_FORMATS), value_name = "FORMAT")]
    pub from: Option<ImportFormat>,
    /// Tag of a task-master file [default: master]
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Replace stories with the same id and their review state
    #[arg(long)]
    pub replace: bool,
    /// Print the resulting list and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

const IMPORT_FORMATS: [Choice<ImportFormat>; 5] = [
    (ImportFormat::Prd, "prd", "prd.json, or another task list"),
    (ImportFormat::Markdown, "markdown", "Check boxes"),
    (ImportFormat::TaskMaster, "task-master", "tasks.json of task-master"),
    (ImportFormat::Beads, "beads", "bd export"),
    (ImportFormat::Github, "github", "gh issue list --json"),
];

/// `swarm ralph tasks export`
#[derive(Debug, Args)]
pub struct TasksExport {
    #[command(flatten)]
    pub(crate) place: TaskListPlace,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ExportFormat,
    /// Write to a file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The formats that can be exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Check boxes
    #[default]
    Markdown,
    /// prd.json of snarktank/ralph
    Prd,
}
