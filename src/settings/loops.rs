//! The settings of loops: `[ralph]` and `[ralph_loop]`.

use std::path::PathBuf;

use swarm_state::promise::Promise;

use super::read::{Fault, SettingEntry};
use super::{Key, set};

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
    /// Percent of the agent's context, 1 to 100.
    pub max_context: Option<u8>,
    /// A valid promise.
    pub completion_tag: Option<String>,
    /// The name of one of [`super::Settings::agents`].
    pub agent: Option<String>,
}

/// The maximum for the iterations of a `swarm loop`.
pub const MAX_ITERATIONS: u32 = 100;

pub(super) const RALPH_KEYS: &[Key<RalphDefaults>] = &[
    ("prompt_file", "", |to, entry| set(&mut to.prompt_file, entry.path())),
    ("max_iterations", "", |to, entry| set(&mut to.max_iterations, entry.count())),
    ("inactivity_timeout", "\"60s\"", |to, entry| set(&mut to.inactivity_timeout, entry.duration())),
    ("question_timeout", "\"10m\"", |to, entry| set(&mut to.question_timeout, entry.duration_or_zero())),
    ("done_pattern", "", |to, entry| set(&mut to.done_pattern, entry.pattern())),
    ("reviewer", "", |to, entry| set(&mut to.reviewer, entry.command())),
];

/// The keys of `[ralph_loop]`.
pub(super) const LOOP_KEYS: &[Key<LoopDefaults>] = &[
    ("max_iterations", "25", |to, entry| set(&mut to.max_iterations, entry.count_to(MAX_ITERATIONS))),
    ("max_cost", "", |to, entry| set(&mut to.max_cost, entry.dollars())),
    ("max_time", "", |to, entry| set(&mut to.max_time, entry.duration())),
    ("max_context", "", |to, entry| set(&mut to.max_context, entry.percent())),
    ("completion_tag", "\"COMPLETE\"", |to, entry| set(&mut to.completion_tag, tag(entry))),
    ("agent", "", |to, entry| set(&mut to.agent, entry.text())),
];

/// A valid promise.
fn tag(entry: &SettingEntry<'_>) -> Result<String, Fault> {
    let text = entry.text()?;
    match Promise::new(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(entry.fault(&format!("is not a valid promise: {error}"))),
    }
}
