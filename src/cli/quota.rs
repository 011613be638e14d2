//! `swarm quota`

use clap::Args;

use super::format::Format;

pub(super) const QUOTA_LONG: &str = "\
Show the usage limits of agents' accounts, and which loops wait for a reset.

An account is an agent with its configuration directory: CLAUDE_CONFIG_DIR or ~/.claude, CODEX_HOME or ~/.codex. Claude \
Code reports the used part of its limits while it runs in a window, and with -p --output-format stream-json. Codex \
records it in its transcript. An API key has no limits to report.

With park_at in [quota.claude] or [quota.codex] of your settings, swarm starts no further iteration on an account that \
has used this percentage of a limit, until the limit is reset. A running iteration goes on, and the wait uses up no iteration. If an \
agent runs into a limit whose reset time it names, the other loops of the account wait too, also without park_at.

To go on before the reset: swarm ralph resume --all --now.";

/// `swarm quota`
#[derive(Debug, Args)]
#[command(after_help = "\
Settings, in ~/.config/swarm/config.toml:
  [quota.claude]
  park_at = 90")]
pub struct QuotaArgs {
    /// Output format; names prints the parked loops
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}
