//! The values of the sections `[tmux]` and `[daemon]`, and readers for those of `[limits]`.

use std::path::PathBuf;

use swarm_state::caps;
use toml::de::DeValue;

use super::read::{Fault, SettingEntry};

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

impl SettingEntry<'_> {
    /// A number of processes.
    pub(super) fn pids(&self) -> Result<u32, Fault> {
        let is_allowed = |pids: &u32| (caps::MIN_PIDS..=caps::MAX_PIDS).contains(pids);
        self.count().ok().filter(is_allowed).ok_or_else(|| self.must_be(caps::PIDS_FORM))
    }

    /// A size of memory, in bytes.
    pub(super) fn memory(&self) -> Result<u64, Fault> {
        let bytes = self.value.get_ref().as_str().and_then(|text| caps::parse_memory(text).ok());
        bytes.ok_or_else(|| self.must_be(&format!("{} in quotes", caps::MEMORY_FORM)))
    }

    /// A number of CPUs, in percent of one CPU.
    pub(super) fn cpus(&self) -> Result<u32, Fault> {
        let text = match self.value.get_ref() {
            DeValue::Integer(integer) => integer.as_str(),
            DeValue::Float(float) => float.as_str(),
            _ => "",
        };
        caps::parse_cpus(text).map_err(|_| self.must_be(caps::CPUS_FORM))
    }
}
