//! The verbs of session loops, and the entry point for agent hooks.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use swarm_state::promise::{OnNoWork, Promise};
use swarm_state::session::SessionId;

use super::format::{ListFormatArg, PageFormat, choice, whole};
use super::gates::NO_WORK;

pub(super) const SESSION_LONG: &str = "\
Manage loops inside an agent's own session.

A session loop is one agent session that its own Stop hook keeps going: each time the agent tries to stop without its \
promise, the hook returns the task to it. Install the hooks first (swarm hooks install) or the plugin (swarm plugin \
install). Inside the agent, /ralph-loop, /ulw-loop, /do-it:ralph and /cancel-ralph do the same as these commands. \
swarm-session(7) is the guide.

The loop's state is a file in the project's .claude directory. You may read and edit it. If you delete it, the loop ends.";

/// Every verb of `swarm session`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Start a loop in a session, or resume a paused one
    #[command(long_about = START_LONG, after_long_help = START_AFTER)]
    Start(Box<SessionStart>),
    /// Show the progress of a session loop
    #[command(after_long_help = "Exit status:\n  0  A loop is active.\n  1  No loop is active.")]
    Status(SessionWhich),
    /// List session loops and their state
    Ls(ListFormatArg),
    /// Cancel a session loop at the end of the agent's turn
    Cancel(SessionPlace),
    /// Show each decision of the Stop hook and its reason
    Logs(SessionWhich),
}

const START_LONG: &str = "\
Start a loop in a session, or resume a paused one.

A session loop keeps one agent session going: each time the agent ends its turn, a hook returns the task to it, until \
the agent prints its promise or the turns are used up. Install the hooks first (swarm hooks install or swarm plugin \
install). Run the command inside the session, or give its id with --session-id. swarm-session(7) is the guide.";

const START_AFTER: &str = "\
Examples:
  swarm session start 'write the parser' -n 20 --completion-promise DONE
  swarm session start --do-it 30          (a do-it project)
  swarm session start                     (resume a paused loop)

Resume:
Without a task, the command resumes the paused loop of the session (with --do-it, a do-it loop). It also resumes a \
loop whose agent stopped because the hook could not read its files or because the agent limits how often a hook may \
continue it. -n sets a new limit.

Options in the task:
swarm also reads options inside TASK, because /ralph-loop passes its whole line as one text. To keep a word such as \
-n as text, put it in quotes inside TASK, or after -- inside TASK.";

/// `swarm session start`
#[derive(Debug, Args)]
pub struct SessionStart {
    /// Task for the agent; - reads standard input
    #[arg(value_name = "TASK")]
    pub task: Vec<String>,
    /// Maximum turns, 1 to 100; 0: no limit [default: 20]
    #[arg(short = 'n', long, value_name = "N", value_parser = whole(0..=100_u32))]
    pub max_iterations: Option<u32>,
    /// Require <promise>TOKEN</promise> to finish [default: DONE]
    #[arg(long, visible_alias = "promise", value_name = "TOKEN", value_parser = Promise::new)]
    pub completion_promise: Option<Promise>,
    /// Tool calls for a promise [default: 1; with --do-it 0]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub min_tool_calls: Option<u64>,
    /// Response to a promise with fewer tool calls [default: reject]
    #[arg(hide_short_help = true, long, value_parser = choice(&NO_WORK), value_name = "POLICY")]
    pub on_promise_no_work: Option<OnNoWork>,
    /// Add the ultrawork instructions to each turn
    ///
    /// They require a full plan, complete work and a proof of each step. Turns may take longer and cost more.
    #[arg(long, conflicts_with = "do_it")]
    pub ulw: bool,
    /// Work through the specs of a do-it project (.do-it/)
    ///
    /// The task is to meet .do-it/specs and to finish the open changes in .do-it/changes. swarm first checks the
    /// project. If something is missing, it prints what to do and starts no loop. MAX is the maximum of turns; the
    /// default is max_iterations_default in .do-it/specs/_meta.json, or 20.
    #[arg(long, value_name = "MAX", num_args = 0..=1, default_missing_value = "", conflicts_with = "completion_promise")]
    pub do_it: Option<String>,
    /// With --do-it: file with the text for each turn
    ///
    /// The text replaces the built-in contract, which the hook returns to the agent at the end of each turn.
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "do_it")]
    pub contract: Option<PathBuf>,
    /// With --do-it: create the project's branch if missing
    #[arg(hide_short_help = true, long, requires = "do_it")]
    pub create_branch: bool,
    /// With --do-it: archive a previous run on another branch
    ///
    /// swarm copies .do-it/progress.md and the open changes of that run to .do-it/archive/DATE-BRANCH.
    #[arg(hide_short_help = true, long, requires = "do_it")]
    pub archive_on_branch_change: bool,
    /// Pause after N turns without a file change [default: 0, never]
    ///
    /// Only turns in a row count. This needs a git repository.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = whole(0..=u32::MAX))]
    pub no_diff_limit: Option<u32>,
    /// Session of the loop [default: the agent session that runs this command]
    #[arg(hide_short_help = true, long, value_name = "ID", value_parser = SessionId::new)]
    pub session_id: Option<SessionId>,
    /// Project directory [default: current directory]
    #[arg(long, visible_alias = "project-dir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Output format
    #[arg(hide_short_help = true, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// The session loop.
#[derive(Debug, Args)]
pub struct SessionPlace {
    /// Session of the loop [default: the agent session that runs this command]
    ///
    /// Outside an agent session, the default is the only loop in the directory.
    #[arg(long, value_name = "ID", value_parser = SessionId::new)]
    pub session_id: Option<SessionId>,
    /// Project directory [default: current directory]
    #[arg(long, visible_alias = "project-dir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// `swarm session status` and `swarm session logs`
#[derive(Debug, Args)]
pub struct SessionWhich {
    #[command(flatten)]
    pub(crate) place: SessionPlace,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

pub(super) const HOOK_LONG: &str = "\
Entry point for agent hooks; you do not run it yourself.

The command reads the hook's JSON from standard input, or from INPUT as in Codex's notify. It always exits with 0. If \
anything is in doubt, it prints nothing, so it never harms the agent. Events: stop, subagent-stop, stop-failure, \
session-start, session-end, user-prompt-submit, pre-tool-use, post-tool-use, pre-compact, notification, codex-notify, \
status-line. It ignores other events. pre-tool-use denies a dangerous tool call: see [guard] in swarm-config(5). \
status-line reports the usage limits of Claude Code's account (see swarm quota), and prints the output of your own \
statusLine command, which it runs with the same input for at most 4.5 seconds.";

/// `swarm hook`
#[derive(Debug, Args)]
pub struct Hook {
    /// Event name
    pub event: String,
    /// The hook's JSON [default: read from standard input]
    pub input: Option<String>,
}
