//! Loops within a session, and what agents call.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::PageFormat;

/// What `swarm session --help` says.
pub(super) const SESSION_LONG: &str = "\
Look after loops within a session.

A session loop is one agent session that its own Stop hook keeps going: each time the agent wants to stop without its \
promise, the task comes back to it. The hooks must be there first: swarm hooks install, or the plugin (swarm plugin \
install). Inside the agent the same is done with /ralph-loop, /ulw-loop, /do-it:ralph and /cancel-ralph.

The loop's state is a file in the project's .claude directory. It may be read and edited; removing it ends the loop.";

/// `swarm session`
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SessionCommand,
}

/// Every verb of `swarm session`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Start a loop in a session, or let the one that was kept go on
    #[command(after_long_help = START_AFTER)]
    Start(Box<SessionStart>),
    /// Show the loop of a session
    #[command(after_long_help = "Exit status:\n  0  A loop is active.\n  1  None is.")]
    Status(SessionWhich),
    /// List the loops that were seen here, and how each stands
    Ls(SessionLs),
    /// End a loop: the agent's next stop is its last
    Cancel(SessionPlace),
    /// Show what became of each stop: what was found, what was decided, and why
    Logs(SessionWhich),
}

const START_AFTER: &str = "\
Examples:
  swarm session start 'implement the parser' --max-iterations 20 --completion-promise DONE
  swarm session start --do-it 30          (a do-it project; checks it first)
  swarm session start                     (lets a paused loop go on)

A start in a session whose loop was paused, or was let stop in doubt, lets it go on where it was; -n gives it another limit.

Options may also stand within the task, as they do behind /ralph-loop; what is in quotes there, and what follows `--`, is text.";

/// `swarm session start`
#[derive(Debug, Args)]
pub struct SessionStart {
    /// The task; `-` reads it from standard input
    #[arg(value_name = "TASK")]
    pub task: Vec<String>,
    /// Turns: 1 to 100, or 0 for no limit [default: 20]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub max_iterations: Option<u32>,
    /// What the agent must say when it is done, as <promise>TOKEN</promise> [default: DONE]
    #[arg(long, visible_alias = "promise", value_name = "TOKEN", value_parser = parse_promise)]
    pub completion_promise: Option<swarm_state::promise::Promise>,
    /// Tool calls without which a promise is none [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub min_tool_calls: Option<u64>,
    /// What to do with a promise without them [default: reject]
    #[arg(long, value_enum, value_name = "POLICY")]
    pub on_promise_no_work: Option<super::NoWork>,
    /// Put the instruction to work without holding back before each turn
    #[arg(long, conflicts_with = "do_it")]
    pub ulw: bool,
    /// Loop a do-it project by its contract, MAX turns at most
    #[arg(long, value_name = "MAX", num_args = 0..=1, allow_negative_numbers = true, default_missing_value = "", conflicts_with = "completion_promise")]
    pub do_it: Option<String>,
    /// A contract of your own in place of the built-in one
    #[arg(long, value_name = "FILE", requires = "do_it")]
    pub contract: Option<PathBuf>,
    /// Make the project's branch when it is not there
    #[arg(long, requires = "do_it")]
    pub create_branch: bool,
    /// Keep progress and open changes of the run before when that was on another branch
    #[arg(long, requires = "do_it")]
    pub archive_on_branch_change: bool,
    /// Pause after N stops in a row without a change in the tree (0: never)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub no_diff_limit: Option<u32>,
    /// Whose loop it is [default: the agent session around this command]
    #[arg(long, value_name = "ID", value_parser = parse_session)]
    pub session_id: Option<swarm_state::session::SessionId>,
    /// The project's directory [default: the current one]
    #[arg(long, visible_alias = "project-dir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// Which loop.
#[derive(Debug, Args)]
pub struct SessionPlace {
    /// Whose loop [default: the session around this command, else the only one in this directory]
    #[arg(long, value_name = "ID", value_parser = parse_session)]
    pub session_id: Option<swarm_state::session::SessionId>,
    /// The project's directory [default: the current one]
    #[arg(long, visible_alias = "project-dir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// `swarm session status` and `swarm session logs`
#[derive(Debug, Args)]
pub struct SessionWhich {
    /// Which loop.
    #[command(flatten)]
    pub place: SessionPlace,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm session ls`
#[derive(Debug, Args)]
pub struct SessionLs {
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: super::Format,
}

/// What `swarm hook --help` says.
pub(super) const HOOK_LONG: &str = "\
What agent CLIs call; there is no reason to type it.

It reads what the CLI tells its hook, as JSON, from standard input (or from INPUT, as Codex's notify gives it). It always ends \
with status 0 and says nothing when in doubt, so it never harms the agent. Events: stop, subagent-stop, stop-failure, \
session-start, session-end, user-prompt-submit, pre-tool-use, post-tool-use, pre-compact, notification, codex-notify; any other \
passes.";

/// `swarm hook`
#[derive(Debug, Args)]
pub struct Hook {
    /// What happened
    pub event: String,
    /// What the CLI tells, where it does not come on standard input
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
