//! `.ralph-active`: the file that shows hooks and the agent that a loop with a task list works here (§3).
//!
//! The daemon rewrites it before each iteration. Agents can edit it, so only the Stop hook trusts it; the daemon uses
//! its own records ([`super::enforce`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DEFAULT_REVIEW_CAP, IterationMode, ReviewStates};

/// The file's name, in the project's directory.
pub const MARKER_FILE: &str = ".ralph-active";

/// The content of the file. Every field has a default, since other programs write it too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RalphMarker {
    /// When it was written, RFC 3339.
    pub timestamp: String,
    /// The program that runs the loop: the daemon.
    pub pid: u32,
    /// The loop's maximum of iterations.
    pub max_iterations: u32,
    /// `sandbox` or `direct`.
    pub mode: String,
    /// No story is reviewed.
    #[serde(rename = "skipReview")]
    pub skip_review: bool,
    /// The maximum number of reviews of a story.
    #[serde(rename = "reviewCap")]
    pub review_cap: u64,
    /// The kind of work of the iteration; `None` from a program that does not write it.
    #[serde(rename = "iterationMode", skip_serializing_if = "Option::is_none")]
    pub iteration_mode: Option<IterationMode>,
    /// The review fields before the iteration.
    #[serde(rename = "preIterationSnapshot", skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<ReviewStates>,
    /// The iteration's number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The iteration's story.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
    /// The directory of the task list, relative to this file.
    #[serde(rename = "ralphDir", skip_serializing_if = "Option::is_none")]
    pub ralph_dir: Option<String>,
    /// The swarm worker whose agent the file binds. Without it, the file binds every session in the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The hash of the task list, prd.md and prompt.md at the start of the iteration, by their paths relative to this
    /// file. One that is not committed and still has this hash is not the agent's work: swarm restored it.
    #[serde(rename = "startHashes", skip_serializing_if = "BTreeMap::is_empty")]
    pub start_hashes: BTreeMap<String, String>,
    /// The directory of the swarm that the worker belongs to.
    #[serde(rename = "swarmDir", skip_serializing_if = "Option::is_none")]
    pub swarm_dir: Option<String>,
}

impl Default for RalphMarker {
    fn default() -> Self {
        Self {
            timestamp: String::new(),
            pid: 0,
            max_iterations: 0,
            mode: "direct".into(),
            skip_review: false,
            review_cap: DEFAULT_REVIEW_CAP,
            iteration_mode: None,
            snapshot: None,
            iteration: None,
            story: None,
            ralph_dir: None,
            worker: None,
            start_hashes: BTreeMap::new(),
            swarm_dir: None,
        }
    }
}

impl RalphMarker {
    /// Reads the file. A file that is not such an object reads as one without content, which binds every session.
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// Whether the file binds a session. `worker` and `swarm_dir` belong to the session's agent, if swarm started it.
    pub fn binds(&self, worker: Option<&str>, swarm_dir: Option<&str>) -> bool {
        let is_same_dir = self.swarm_dir.is_none() || self.swarm_dir.as_deref() == swarm_dir;
        self.worker.is_none() || (self.worker.as_deref() == worker && is_same_dir)
    }
}
