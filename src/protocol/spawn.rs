//! How a worker comes to be: what `spawn` and `respawn` take, and their answer.
//!
//! Part of [the protocol](super), which says what may change.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swarm_state::budget::Budgets;
use swarm_state::gates::Gates;
use swarm_state::model::{PromptVia, QUESTION_TIMEOUT_SECONDS, RestartSpec};
use swarm_state::profiles::Profile;
use swarm_state::spec::{Prompt, WorktreeSpec};

use super::WorkerView;

/// What `spawn` takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpawnParams {
    /// The wanted name; made from the directory, and made unique, when absent.
    pub name: Option<String>,
    /// The agent's argv.
    pub cmd: Vec<String>,
    /// The directory, absolute.
    pub cwd: PathBuf,
    /// The whole environment of the agent.
    pub env: BTreeMap<String, String>,
    /// Which of it the user set on purpose.
    pub env_names: Vec<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// A worktree of its own.
    pub worktree: Option<WorktreeSpec>,
    /// What the agent is told.
    pub prompt: Prompt,
    /// How; `auto` lets the profile decide.
    pub prompt_via: PromptVia,
    /// What is known of the agent, settings merged in.
    pub profile: Profile,
    /// Answer only when the agent is ready.
    pub ready_wait: bool,
    /// Seconds to wait for that.
    pub ready_timeout: u64,
    /// Ends the worker when it matches.
    pub done_pattern: Option<String>,
    /// End a live worker of the same name first.
    pub replace: bool,
    /// Keep everything the pane prints.
    pub record: bool,
    /// The tmux socket: a path or a `-L` name.
    pub tmux_socket: Option<String>,
    /// Columns and rows of the window.
    pub size: Option<(u16, u16)>,
    /// Makes it a loop.
    pub ralph: Option<RalphParams>,
    /// Starts it again after its end; not for a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartSpec>,
    /// Names this request, so that it can be made again when its answer was lost: it is then answered alike, and nothing
    /// is spawned twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// What makes it a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RalphParams {
    /// The prompt file, absolute.
    pub prompt_file: PathBuf,
    /// At least 1.
    pub max_iterations: u32,
    /// Seconds, at least 1.
    pub inactivity_timeout: u64,
    /// Seconds that a question in mid-work may stay unanswered, 0 for no limit; absent for 600.
    #[serde(default = "question_timeout", skip_serializing_if = "is_usual_question_timeout")]
    pub question_timeout: u64,
    /// The task in words; the daemon keeps it in a file of its own, and `prompt_file` is of no account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What has to hold before it is complete; absent for nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gates: Gates,
    /// Its limits beside the iterations; absent for the usual ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budgets: Budgets,
}

/// For what is left out where it is as usual.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn question_timeout() -> u64 {
    QUESTION_TIMEOUT_SECONDS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_usual_question_timeout(seconds: &u64) -> bool {
    *seconds == QUESTION_TIMEOUT_SECONDS
}

impl RalphParams {
    /// A loop without gates and without limits beside its iterations.
    pub fn new(prompt_file: PathBuf, max_iterations: u32, inactivity_timeout: u64) -> Self {
        let (gates, budgets) = (Gates::default(), Budgets::default());
        let question_timeout = QUESTION_TIMEOUT_SECONDS;
        Self { prompt_file, max_iterations, inactivity_timeout, question_timeout, task: None, gates, budgets }
    }
}

/// What `respawn` takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RespawnParams {
    /// The worker.
    pub name: String,
    /// Remove its worktree first, if nothing in it would be lost, and make it again.
    pub clean_first: bool,
    /// Remove the worktree even if it holds ignored files outside caches.
    #[serde(default, skip_serializing_if = "super::is_no")]
    pub discard_ignored: bool,
    /// As for `spawn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// The answer to `spawn` and `respawn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spawned {
    /// The new worker.
    pub worker: WorkerView,
    /// The sequence number to subscribe from, so that no notice of this worker is missed.
    pub seq: u64,
    /// Things to tell the user on stderr.
    pub warnings: Vec<String>,
}
