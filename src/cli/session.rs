//! The verbs of session loops, and the entry point for agent hooks.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::format::PageFormat;

/// The help of `session` in long form and in its man page.
pub(super) const SESSION_LONG: &str = "\
Manage loops inside an agent's own session.

A session loop is one agent session that its own Stop hook keeps going: each time the agent tries to stop without \
its promise, the hook returns the task to it. Install the hooks first (swarm hooks install) or the plugin (swarm plugin \
install). Inside the agent, /ralph-loop, /ulw-loop, /do-it:ralph and /cancel-ralph do the same as these commands. \
swarm-session(7) is the guide.

The loop's state is a file in the project's .claude directory. You may read and edit it. If you delete it, the loop ends.";

/// `swarm session`
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// The verb.
    #[command(subcommand)]
    pub command: SessionCommand,
}

/// Every verb of `swarm session`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Start a loop in a session, or resume a paused one
    #[command(after_long_help = START_AFTER)]
    Start(Box<SessionStart>),
    /// Show the progress of a session loop
    #[command(after_long_help = "Exit status:\n  0  A loop is active.\n  1  No loop is active.")]
    Status(SessionWhich),
    /// List session loops and their state
    Ls(SessionLs),
    /// Cancel a session loop at the agent's next stop
    Cancel(SessionPlace),
    /// Show each decision of the Stop hook and its reason
    Logs(SessionWhich),
}

const START_AFTER: &str = "\
Examples:
  swarm session start 'write the parser' -n 20 --completion-promise DONE
  swarm session start --do-it 30          (loop a do-it project)
  swarm session start                     (resume a paused loop)

If the loop of the session was paused, or swarm let it stop because it was in doubt, start resumes it; -n sets a new limit.

Options may also be part of the task, as after /ralph-loop. Quoted words and everything after `--` are text.";

/// `swarm session start`
#[derive(Debug, Args)]
pub struct SessionStart {
    /// Task for the agent; - reads standard input
    #[arg(value_name = "TASK")]
    pub task: Vec<String>,
    /// Maximum turns, 1 to 100; 0: no limit [default: 20]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub max_iterations: Option<u32>,
    /// Require <promise>TOKEN</promise> to finish [default: DONE]
    #[arg(long, visible_alias = "promise", value_name = "TOKEN", value_parser = parse_promise)]
    pub completion_promise: Option<swarm_state::promise::Promise>,
    /// Tool calls required for a promise to count [default: 1]
    #[arg(hide_short_help = true, long, value_name = "N", allow_negative_numbers = true)]
    pub min_tool_calls: Option<u64>,
    /// Response to a promise without tool calls [default: reject]
    #[arg(hide_short_help = true, long, value_enum, value_name = "POLICY")]
    pub on_promise_no_work: Option<super::gates::NoWork>,
    /// Tell the agent before each turn to work at full strength
    #[arg(long, conflicts_with = "do_it")]
    pub ulw: bool,
    /// Loop a do-it project, for at most MAX turns
    #[arg(long, value_name = "MAX", num_args = 0..=1, allow_negative_numbers = true, default_missing_value = "", conflicts_with = "completion_promise")]
    pub do_it: Option<String>,
    /// File that replaces the built-in contract
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "do_it")]
    pub contract: Option<PathBuf>,
    /// Create the project's branch if it is missing
    #[arg(hide_short_help = true, long, requires = "do_it")]
    pub create_branch: bool,
    /// Archive the previous run if it was on another branch
    ///
    /// The archive has the progress and the uncommitted changes of that run.
    #[arg(hide_short_help = true, long, requires = "do_it")]
    pub archive_on_branch_change: bool,
    /// Pause after N stops without changes in the tree; 0: never
    #[arg(hide_short_help = true, long, value_name = "N", allow_negative_numbers = true)]
    pub no_diff_limit: Option<u32>,
    /// Session of the loop [default: the session of this command]
    #[arg(hide_short_help = true, long, value_name = "ID", value_parser = parse_session)]
    pub session_id: Option<swarm_state::session::SessionId>,
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
    /// Session of the loop [default: the session of this command]
    ///
    /// Outside an agent session, the default is the only loop in the directory.
    #[arg(long, value_name = "ID", value_parser = parse_session)]
    pub session_id: Option<swarm_state::session::SessionId>,
    /// Project directory [default: current directory]
    #[arg(long, visible_alias = "project-dir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// `swarm session status` and `swarm session logs`
#[derive(Debug, Args)]
pub struct SessionWhich {
    /// The session loop.
    #[command(flatten)]
    pub place: SessionPlace,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm session ls`
#[derive(Debug, Args)]
pub struct SessionLs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: super::format::Format,
}

/// The help of `hook` in long form and in its man page.
pub(super) const HOOK_LONG: &str = "\
Entry point for agent hooks; you do not run it yourself.

The command reads the hook's JSON from standard input, or from INPUT as in Codex's notify. It always exits with 0. If anything \
is in doubt, it prints nothing, so it never harms the agent. Events: stop, subagent-stop, stop-failure, session-start, \
session-end, user-prompt-submit, pre-tool-use, post-tool-use, pre-compact, notification, codex-notify. It ignores other \
events.";

/// `swarm hook`
#[derive(Debug, Args)]
pub struct Hook {
    /// Event name
    pub event: String,
    /// The hook's JSON [default: read from standard input]
    pub input: Option<String>,
}

fn parse_session(
    text: &str,
) -> Result<swarm_state::session::SessionId, swarm_state::session::SessionIdError> {
    swarm_state::session::SessionId::new(text)
}

fn parse_promise(text: &str) -> Result<swarm_state::promise::Promise, swarm_state::promise::TokenError> {
    swarm_state::promise::Promise::new(text)
}
