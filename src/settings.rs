//! Stub.
use std::path::{Path, PathBuf};

use swarm_state::profiles::Profile;

use crate::error::Result;

/// Stub.
#[derive(Clone, Debug, Default)]
pub struct RalphDefaults {
    /// Stub.
    pub prompt_file: Option<PathBuf>,
    /// Stub.
    pub max_iterations: Option<u32>,
    /// Stub.
    pub inactivity_timeout: Option<u64>,
    /// Stub.
    pub done_pattern: Option<String>,
}

/// Stub.
#[derive(Clone, Debug, Default)]
pub struct TmuxSettings {
    /// Stub.
    pub source: Option<PathBuf>,
    /// Stub.
    pub size: Option<(u16, u16)>,
}

/// Stub.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Stub.
    pub command: Option<Vec<String>>,
    /// Stub.
    pub ralph: RalphDefaults,
    /// Stub.
    pub tmux: TmuxSettings,
    /// Stub.
    pub agents: Vec<Profile>,
}

impl Settings {
    /// Stub.
    pub fn load(_user: &Path, _local: Option<&Path>, _explicit: Option<&Path>) -> Result<Self> {
        Ok(Self::default())
    }
}
