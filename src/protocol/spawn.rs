//! Starting a worker: the parameters of `spawn` and `respawn`, and their answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swarm_state::budget::Budgets;
use swarm_state::caps::Caps;
use swarm_state::gates::Gates;
use swarm_state::model::{
    PromptVia, QUESTION_TIMEOUT_SECONDS, RestartSpec, WorkerName, default_question_timeout, is_default,
};
use swarm_state::profiles::Profile;
use swarm_state::sandbox::SandboxSpec;
use swarm_state::spec::{Prompt, ReviewerSpec, WorktreeSpec};

use super::workers::WorkerView;

/// The parameters of `spawn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpawnParams {
    /// The requested name. If absent, a unique name is made from the directory.
    pub name: Option<String>,
    /// The agent's argv.
    pub cmd: Vec<String>,
    /// The directory, absolute.
    pub cwd: PathBuf,
    /// The agent's complete environment.
    pub env: BTreeMap<String, String>,
    /// The variables that the user set with `--env`.
    pub env_names: Vec<String>,
    /// Labels.
    pub tags: Vec<String>,
    /// Make a worktree for the worker.
    pub worktree: Option<WorktreeSpec>,
    /// The agent's prompt.
    pub prompt: Prompt,
    /// How to deliver the prompt; with `auto`, the profile decides.
    pub prompt_via: PromptVia,
    /// The agent's profile, with the settings merged in.
    pub profile: Profile,
    /// Answer only when the agent is ready.
    pub ready_wait: bool,
    /// How many seconds to wait for that.
    pub ready_timeout: u64,
    /// End the worker when this pattern matches.
    pub done_pattern: Option<String>,
    /// End a live worker of the same name first.
    pub replace: bool,
    /// Keep the pane's complete raw output.
    pub record: bool,
    /// The tmux socket: a path or a `-L` name.
    pub tmux_socket: Option<String>,
    /// Columns and rows of the window.
    pub size: Option<(u16, u16)>,
    /// Run the worker as a loop.
    pub ralph: Option<RalphParams>,
    /// Restart the command after it ends; not for a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartSpec>,
    /// An id that makes a repeated request idempotent: if its answer was lost, the same answer comes again and
    /// nothing is spawned twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The worker that coordinates this one. When it is killed, so is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<WorkerName>,
    /// Run it and its checks in this sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSpec>,
    /// The resource caps; absent for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caps: Caps,
}

/// The input of the coordinator of `--jobs`, on its standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoriesPlan {
    /// The loop of one story, without its name, its directory and its environment.
    pub child: SpawnParams,
    /// The most stories that run at the same time.
    pub jobs: u32,
    /// No new story starts while this many wait for a review.
    pub max_in_review: Option<u32>,
}

/// The settings of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RalphParams {
    /// The prompt file, absolute.
    pub prompt_file: PathBuf,
    /// At least 1.
    pub max_iterations: u32,
    /// Seconds, at least 1.
    pub inactivity_timeout: u64,
    /// Seconds that a question in the middle of the work may stay unanswered, 0 for no limit; absent for 600.
    #[serde(default = "default_question_timeout", skip_serializing_if = "is_usual_question_timeout")]
    pub question_timeout: u64,
    /// The task as text. The daemon writes it to a file and ignores `prompt_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The gates; absent for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gates: Gates,
    /// The limits other than the iterations; absent for the defaults.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budgets: Budgets,
    /// The agent that reviews the stories of a task list; absent for the worker's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<ReviewerSpec>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_usual_question_timeout(seconds: &u64) -> bool {
    *seconds == QUESTION_TIMEOUT_SECONDS
}

impl RalphParams {
    /// A loop without gates and without limits other than its iterations.
    pub fn new(prompt_file: PathBuf, max_iterations: u32, inactivity_timeout: u64) -> Self {
        Self {
            prompt_file,
            max_iterations,
            inactivity_timeout,
            question_timeout: QUESTION_TIMEOUT_SECONDS,
            task: None,
            gates: Gates::default(),
            budgets: Budgets::default(),
            reviewer: None,
        }
    }
}

/// The parameters of `respawn`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RespawnParams {
    /// The worker.
    pub name: String,
    /// Remove the worktree first, if nothing in it would be lost, and make it again.
    pub clean_first: bool,
    /// Remove the worktree even if it holds ignored files outside caches.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discard_ignored: bool,
    /// As in `spawn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// The answer to `spawn` and `respawn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spawned {
    /// The new worker.
    pub worker: WorkerView,
    /// The sequence number from which to subscribe to receive every notice of this worker.
    pub seq: u64,
    /// Messages for the user, on stderr.
    pub warnings: Vec<String>,
}
