//! The values of the sections `[tmux]` and `[daemon]`.

use std::path::PathBuf;

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
