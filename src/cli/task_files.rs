//! The verbs of `swarm ralph` that write the files of a task list.

use std::path::PathBuf;

use clap::Args;

use super::format::PageFormat;

pub(super) const INIT_LONG: &str = "\
Write a starter PROMPT.md and TODO.md, or with --tasks the files of a task list.

Without --tasks, the prompt makes the agent do one task of TODO.md in each iteration, check it off and commit. When \
every task is checked off, the agent prints `All tasks complete`. An existing TODO.md is not changed.

With --tasks, swarm writes a directory `ralph` for a loop that implements and reviews one story after the other:

  prd.md        The requirements, which the agent reads and never changes
  tasks.json    The stories, and the state of each
  progress.txt  What each iteration did and learned
  prompt.md     The prompt of each iteration; change it as you need

swarm writes only missing files; --force overwrites the others, unless a live or paused loop works on the list. It also adds .ralph-active, which exists while a \
loop works, to .gitignore.

The command prints the next commands to run.";

pub(super) const INIT_EXAMPLES: &str = "\
Examples:
  swarm ralph init
  swarm ralph init --tasks --name checkout
  swarm ralph init --tasks --cwd ../shop";

pub(super) const PLAN_LONG: &str = "\
Plan the stories of a task list with an agent.

swarm starts an agent in this terminal, with instructions for planning as its first prompt. If ralph/prd.md has no \
requirements yet, the agent asks you questions and writes prd.md and tasks.json. If it has some, the agent derives \
tasks.json from them. Run swarm ralph init --tasks first.

The default for COMMAND is `command` in the settings, or claude. Claude Code has the same instructions as \
/ralph-plan, once you have run swarm plugin install.";

pub(super) const PLAN_EXAMPLES: &str = "\
Examples:
  swarm ralph plan
  swarm ralph plan -- codex
  swarm ralph plan --print | less";

pub(super) const ARCHIVE_LONG: &str = "\
Archive a finished task list and start a new one.

swarm moves prd.md, tasks.json and progress.txt to a new directory ralph-archive/DATE-LABEL, and writes empty ones. \
A prompt.md that you changed stays, and the archive gets a copy. The archive also has a summary.md: the stories, \
their reviews and the dates. swarm commits these files and nothing else; changes that you have staged stay staged.

swarm refuses to archive while a loop works on the list, also while that loop is paused; end it with swarm kill NAME. \
If stories are left, swarm warns and archives the list all the same.";

/// `swarm ralph init`
#[derive(Debug, Args)]
pub struct RalphInit {
    /// Overwrite existing files (without --tasks: PROMPT.md)
    #[arg(long)]
    pub force: bool,
    /// Write the files of a task list to the directory ralph
    #[arg(long)]
    pub tasks: bool,
    /// Name of the feature; its branch is ralph/FEATURE
    #[arg(long, value_name = "FEATURE", requires = "tasks")]
    pub name: Option<String>,
    /// Directory of the project [default: the current one]
    #[arg(long, alias = "project-dir", value_name = "DIR", requires = "tasks")]
    pub cwd: Option<PathBuf>,
}

/// `swarm ralph plan`
#[derive(Debug, Args)]
pub struct RalphPlan {
    /// Directory of the task list [default: ralph]
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
    /// Print the prompt and start no agent
    #[arg(long, conflicts_with = "cmd")]
    pub print: bool,
    /// Agent command
    #[arg(last = true, value_name = "COMMAND")]
    pub cmd: Vec<String>,
}

/// `swarm ralph archive`
#[derive(Debug, Args)]
pub struct RalphArchive {
    /// Name of the archive after the date [default: the branch]
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Directory of the project [default: the current one]
    #[arg(long, alias = "project-dir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Directory of the task list [default: ralph]
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
    /// Do not commit the archive
    #[arg(long)]
    pub no_commit: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}
