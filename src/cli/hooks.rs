//! The verbs that install hooks and plugins for agents.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::format::PageFormat;

pub(super) const HOOKS_LONG: &str = "\
Manage session hooks.\n\n\
Session hooks let swarm continue a session that you started yourself. At the end of each turn the agent runs \
`swarm hook EVENT`. This is how a loop inside a session continues, and how swarm reads /ralph-loop and the other loop \
commands. After each tool call, a hook reports to the agent how full its context is: once each at 50, 60, 70, 80 and 90 %. \
CLAUDE_CONTEXT_WINDOW sets the size of the context in tokens. The default is 200,000, and 1,000,000 for a model that \
always has it or whose name ends in [1m]. Sessions that swarm starts need no installation: they get their hooks for the run, and none of your files \
changes.\n\n\
install keeps everything else in the settings file, and saves a copy of the file. uninstall restores the same bytes. \
If the file was changed since, uninstall removes only swarm's hooks. If the swarm program is missing, the hooks do \
nothing.";

pub(super) const HOOKS_AFTER: &str = "\
Files:
  claude, project  .claude/settings.json in the current directory
  claude, user     ~/.claude/settings.json, or in CLAUDE_CONFIG_DIR
  codex, project   .codex/hooks.json in the current directory
  codex, user      ~/.codex/hooks.json, or in CODEX_HOME

Claude Code:
Version 2.1 or newer is required. An older one may run no hook at all if the file names an event that is new to it. \
The commands /ralph-loop, /ulw-loop and /cancel-ralph need files in .claude/commands, which `swarm plugin \
install` writes.

Codex:
The window asks once whether new hooks may run ('Trust all and continue'). `codex exec` skips untrusted hooks \
without a message, unless it gets --dangerously-bypass-hook-trust. Codex reads a project's hooks only if the project \
is trusted: accept the question in its window, or set trust_level = \"trusted\" under [projects.\"DIR\"] in its \
config.toml. Codex has no custom commands. Type a space first, so that the line is a prompt, which the hook reads:
   /ralph-loop \"TASK\" --max-iterations 20 --completion-promise DONE
   /ulw-loop \"TASK\"
   /cancel-ralph
   /do-it:ralph 30
   /do-it:cancel-ralph
`codex exec` needs no space: codex exec '/ralph-loop \"TASK\"'.

opencode:
opencode has plugins instead of such hooks; run swarm plugin install --agent opencode.";

/// Every verb of `swarm hooks`.
#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    /// Install session hooks
    Install(HookPlace),
    /// Remove session hooks
    Uninstall(HookPlace),
    /// Show where hooks are installed
    Status(HooksStatus),
}

/// The settings file.
#[derive(Debug, Args)]
pub struct HookPlace {
    /// Scope of the installation
    #[arg(long, value_enum, default_value_t, value_name = "SCOPE")]
    pub scope: HookScope,
    /// Agent to configure
    #[arg(long, value_enum, default_value_t, value_name = "AGENT")]
    pub agent: HookAgent,
}

/// `swarm hooks status`
#[derive(Debug, Args)]
pub struct HooksStatus {
    /// Scope to show [default: both]
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub scope: Option<HookScope>,
    /// Agent to show [default: all]
    #[arg(long, value_enum, value_name = "AGENT")]
    pub agent: Option<HookAgent>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// The sessions that hooks or plugins apply to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookScope {
    /// Sessions in the current directory
    #[default]
    Project,
    /// All your sessions
    User,
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

pub(super) const PLUGIN_LONG: &str = "\
Manage agent plugins that add loop commands.\n\n\
For Claude Code, install writes two plugins, swarm and do-it, into a directory that is a plugin marketplace. It names \
the marketplace in the settings file of the scope, enables both plugins, and puts the commands /ralph-loop, /ralph-plan, /ulw-loop \
and /cancel-ralph into .claude/commands. The plugins include the hooks. If a file of the same name exists that swarm \
did not write, nothing is installed. A running session does not see the plugins. The first new session may print \
'Unknown command' until it has loaded the marketplace.\n\n\
For opencode, install writes one plugin file, which does the same at the end of each turn.";

pub(super) const PLUGIN_AFTER: &str = "\
Commands in Claude Code:
  /ralph-loop \"TASK\" [--max-iterations N] [--completion-promise TEXT]
              [--min-tool-calls M] [--on-promise-no-work reject|warn|accept]
                     Start a loop
  /ulw-loop \"TASK\"   Start a loop with the ultrawork instructions in each turn
  /cancel-ralph      Cancel the loop
  /ralph-plan        Plan a task list for swarm spawn --ralph --ralph-dir
  /do-it:ralph [MAX_ITERATIONS]
                     Work through the specs of a do-it project
  /do-it:cancel-ralph
                     Cancel that loop

To install with Claude Code's own commands, run `swarm plugin install --dir DIR`, then:
  claude plugin marketplace add DIR
  claude plugin install swarm@swarm
  claude plugin install do-it@swarm";

/// Every verb of `swarm plugin`.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Install plugins and commands
    Install(PluginPlace),
    /// Remove plugins and commands
    Uninstall(PluginPlace),
}

/// The plugin's agent, scope and directory.
#[derive(Debug, Args)]
pub struct PluginPlace {
    /// Scope of the installation
    #[arg(long, value_enum, default_value_t, value_name = "SCOPE")]
    pub scope: HookScope,
    /// Agent to configure
    #[arg(long, value_enum, default_value_t, value_name = "AGENT")]
    pub agent: PluginAgent,
    /// Marketplace directory [default: claude-plugin in SWARM_DIR]
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
