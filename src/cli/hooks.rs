//! The verbs that put hooks and commands where agents find them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::PageFormat;

/// What more there is to know about `swarm hooks`.
pub(super) const HOOKS_LONG: &str = "\
Let the sessions that you start yourself be held by swarm.\n\n\
An agent runs `swarm hook EVENT` at the turns of a session; that is how a loop inside a session goes on when the agent \
wants to stop, and how /ralph-loop and its like are read. Sessions that swarm starts need none of this: they get their \
hooks for the run, and no file of yours is touched.\n\n\
Everything else in the file stays. What stood there before is kept: uninstall gives back the very same bytes unless \
somebody changed the file since, and takes out only swarm's hooks then. Where the program is gone, the hooks do nothing.";

/// What only the man page carries.
pub(super) const HOOKS_AFTER: &str = "\
Files:
  claude, project  .claude/settings.json in the current directory
  claude, user     ~/.claude/settings.json (CLAUDE_CONFIG_DIR names another directory)
  codex, project   .codex/hooks.json in the current directory
  codex, user      ~/.codex/hooks.json (CODEX_HOME names another directory)

Claude Code needs version 2.1: an older one may run no hook of a file that names an event it does not know.
  The commands are those of `swarm plugin install`; with the hooks alone /ralph-loop, /ulw-loop and /cancel-ralph
  need the files that it puts into .claude/commands.

Codex asks once, in its window, whether it may run new hooks ('Trust all and continue'); `codex exec` skips those
  that were not trusted, without a word, unless it gets --dangerously-bypass-hook-trust. Hooks of a project are read
  only where the project is trusted: its window asks for that too, or [projects.\"DIR\"] in its config.toml has
  trust_level = \"trusted\". It has no commands of others: type a blank first, so that the line is a prompt, which
  the hook reads:
     /ralph-loop \"TASK\" --max-iterations 20 --completion-promise DONE
     /ulw-loop \"TASK\"
     /cancel-ralph
     /do-it:ralph 30
     /do-it:cancel-ralph
  For `codex exec` no blank is needed: codex exec '/ralph-loop \"TASK\"'.

opencode has no hooks of this kind but plugins: swarm plugin install --agent opencode";

/// `swarm hooks`
#[derive(Debug, Args)]
pub struct HooksArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: HooksCommand,
}

/// Every verb of `swarm hooks`.
#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    /// Put the hooks into an agent's settings file
    Install(HookPlace),
    /// Take them out again
    Uninstall(HookPlace),
    /// Say where hooks are installed
    Status(HooksStatus),
}

/// Which settings file.
#[derive(Debug, Args)]
pub struct HookPlace {
    /// For which sessions: those in this directory, or all of yours
    #[arg(long, value_enum, default_value_t, value_name = "SCOPE")]
    pub scope: HookScope,
    /// Of which agent
    #[arg(long, value_enum, default_value_t, value_name = "AGENT")]
    pub agent: HookAgent,
}

/// `swarm hooks status`
#[derive(Debug, Args)]
pub struct HooksStatus {
    /// Only this scope
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub scope: Option<HookScope>,
    /// Only this agent
    #[arg(long, value_enum, value_name = "AGENT")]
    pub agent: Option<HookAgent>,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// For which sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookScope {
    /// Those in the current directory
    #[default]
    Project,
    /// All of the user's
    User,
}

impl HookScope {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// An agent with hooks in a settings file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookAgent {
    /// Claude Code
    #[default]
    Claude,
    /// Codex
    Codex,
}

impl HookAgent {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// What more there is to know about `swarm plugin`.
pub(super) const PLUGIN_LONG: &str = "\
Give an agent the commands of loops inside a session.\n\n\
For Claude Code two plugins, swarm and do-it, are written into a directory that is a marketplace, the settings file of \
the scope names it and enables both, and the bare names /ralph-loop, /ulw-loop and /cancel-ralph are put into \
.claude/commands. The plugins bring their hooks along. A file of the same name that is not ours is never touched: then \
nothing is installed. A session that is running does not see any of it; the first new one may still say 'Unknown \
command' while it learns of the marketplace.\n\n\
For opencode a plugin file does the same work at the end of each turn.";

/// What only the man page carries.
pub(super) const PLUGIN_AFTER: &str = "\
Commands in Claude Code:
  /ralph-loop \"TASK\" [--max-iterations N] [--completion-promise TEXT] [--min-tool-calls M]
                     [--on-promise-no-work reject|warn|accept]
  /ulw-loop \"TASK\"   the same, with an instruction to work at full strength
  /cancel-ralph      ends the loop
  /do-it:ralph [MAX_ITERATIONS], /do-it:cancel-ralph

By Claude Code's own means it is, after `swarm plugin install --dir DIR`:
  claude plugin marketplace add DIR
  claude plugin install swarm@swarm
  claude plugin install do-it@swarm";

/// `swarm plugin`
#[derive(Debug, Args)]
pub struct PluginArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PluginCommand,
}

/// Every verb of `swarm plugin`.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Write the plugins and the commands, and enable them
    Install(PluginPlace),
    /// Take away what install wrote
    Uninstall(PluginPlace),
}

/// Where the plugin goes.
#[derive(Debug, Args)]
pub struct PluginPlace {
    /// For which sessions: those in this directory, or all of yours
    #[arg(long, value_enum, default_value_t, value_name = "SCOPE")]
    pub scope: HookScope,
    /// For which agent
    #[arg(long, value_enum, default_value_t, value_name = "AGENT")]
    pub agent: PluginAgent,
    /// Where the marketplace of Claude Code's plugins is written [default: claude-plugin in swarm's directory]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// An agent that has plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PluginAgent {
    /// Claude Code
    #[default]
    Claude,
    /// opencode
    Opencode,
}
