//! The values of the sections `[ralph]`, `[ralph_loop]`, `[tmux]` and `[daemon]`.

use std::path::PathBuf;

/// `[ralph]`: defaults for the flags of `spawn --ralph`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RalphDefaults {
    /// Absolute.
    pub prompt_file: Option<PathBuf>,
    /// At least 1.
    pub max_iterations: Option<u32>,
    /// Seconds, at least 1.
    pub inactivity_timeout: Option<u64>,
    /// Seconds; 0: no limit.
    pub question_timeout: Option<u64>,
    /// A valid pattern.
    pub done_pattern: Option<String>,
    /// The command of the agent that reviews stories.
    pub reviewer: Option<Vec<String>>,
}

/// `[ralph_loop]`: defaults for the flags of `swarm loop`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopDefaults {
    /// 1 to [`MAX_ITERATIONS`].
    pub max_iterations: Option<u32>,
    /// Millionths of a US dollar.
    pub max_cost: Option<u64>,
    /// Seconds.
    pub max_time: Option<u64>,
    /// A valid promise.
    pub completion_tag: Option<String>,
    /// The name of one of [`super::Settings::agents`].
    pub agent: Option<String>,
}

/// The maximum for the iterations of a `swarm loop`.
pub const MAX_ITERATIONS: u32 = 100;

/// `[tmux]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TmuxSettings {
    /// A tmux configuration to read after swarm's own; absolute.
    pub source: Option<PathBuf>,
    /// Columns and rows of a window without a client.
    pub size: Option<(u16, u16)>,
}

/// `[daemon]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonSettings {
    /// Whether the daemon resumes at its start the loops that a shutdown paused.
    pub resume_after_shutdown: Option<bool>,
}
