//! The needs of an agent CLI in a sandbox: its own files in the home directory, and its own sandbox, which has to be
//! off because one cannot be built inside another.
//!
//! Paths start with `~/`, or with a variable as in `$CODEX_HOME`; without that variable they do not count.

use serde::{Deserialize, Serialize};

use crate::words::words;

/// The part of a profile for sandboxes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxProfile {
    /// Directories that the agent writes in each session: its login, its transcripts, its locks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state_dirs: Vec<String>,
    /// Entries of each of these that make the CLI run programs, also outside a sandbox later. The agent may not write
    /// them. A `/` at the end means a directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state_locked: Vec<String>,
    /// Files and directories that the agent may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state_readable: Vec<String>,
    /// Files of which the agent gets a copy: it may change the copy, which is forgotten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state_copies: Vec<String>,
    /// Hosts that the agent needs, for `--net allow`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Options of the CLI for its own sandbox, which are removed: one that ends in `=` has a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sandbox_flags: Vec<String>,
    /// Options that turn it off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sandbox_args: Vec<String>,
    /// The agent's name for Docker Sandbox; `None` without a template for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker_template: Option<String>,
    /// The entries of its home directory that Docker sandboxes share, so that one login is enough. A name that ends in
    /// `.json` is a file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub docker_state: Vec<String>,
}

pub(super) fn claude() -> SandboxProfile {
    SandboxProfile {
        hosts: words(&["api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"]),
        state_dirs: words(&["~/.claude", "$CLAUDE_CONFIG_DIR"]),
        state_locked: words(&[
            "settings.json",
            "settings.local.json",
            "CLAUDE.md",
            "agents/",
            "commands/",
            "hooks/",
            "plugins/",
            "skills/",
        ]),
        state_copies: words(&["~/.claude.json"]),
        docker_template: Some("claude".into()),
        docker_state: words(&[".claude", ".claude.json"]),
        ..SandboxProfile::default()
    }
}

pub(super) fn codex() -> SandboxProfile {
    SandboxProfile {
        hosts: words(&["api.openai.com", "chatgpt.com", "auth.openai.com"]),
        state_dirs: words(&["~/.codex", "$CODEX_HOME"]),
        state_locked: words(&["config.toml", "AGENTS.md", "hooks.json", "prompts/", "rules/", "skills/"]),
        sandbox_flags: words(&["--sandbox=", "-s=", "--full-auto"]),
        sandbox_args: words(&["-c", "sandbox_mode=\"danger-full-access\""]),
        docker_template: Some("codex".into()),
        ..SandboxProfile::default()
    }
}

pub(super) fn opencode() -> SandboxProfile {
    SandboxProfile {
        hosts: words(&["opencode.ai", "models.dev", "api.anthropic.com", "api.openai.com"]),
        state_dirs: words(&["~/.local/share/opencode", "~/.local/state/opencode"]),
        state_locked: words(&["bin/"]),
        state_readable: words(&["~/.config/opencode", "~/.opencode"]),
        ..SandboxProfile::default()
    }
}

/// Gemini CLI and its relatives.
pub(super) fn gemini(dir: &str) -> SandboxProfile {
    SandboxProfile {
        hosts: words(&["*.googleapis.com", "accounts.google.com"]),
        state_dirs: words(&[dir]),
        state_locked: words(&["settings.json", "GEMINI.md", "QWEN.md", "commands/", "extensions/"]),
        sandbox_flags: words(&["--sandbox", "-s"]),
        docker_template: (dir == "~/.gemini").then(|| "gemini".into()),
        ..SandboxProfile::default()
    }
}

pub(super) fn aider() -> SandboxProfile {
    SandboxProfile {
        hosts: words(&["api.anthropic.com", "api.openai.com", "openrouter.ai"]),
        state_dirs: words(&["~/.aider"]),
        state_readable: words(&["~/.aider.conf.yml", "~/.aider.model.settings.yml"]),
        ..SandboxProfile::default()
    }
}
