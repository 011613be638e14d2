//! Starting a worker: the parameters of `spawn` and `respawn`, and their answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};
use swarm_state::caps::Caps;
use swarm_state::model::{PromptVia, QUESTION_TIMEOUT_SECONDS, RestartSpec, WorkerName, is_default};
use swarm_state::profiles::Profile;
use swarm_state::sandbox::SandboxSpec;
use swarm_state::spec::{LoopSpec, Prompt, WorktreeSpec};

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
    /// Run the worker as a loop. With a task as text, the daemon writes it to a file and ignores `prompt_file`.
    #[serde(serialize_with = "loop_in_line")]
    pub ralph: Option<LoopSpec>,
    /// Restart the command after it ends; not for a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartSpec>,
    /// An id of the request. If its answer was lost, a repeated request with the same id gets that answer, and nothing
    /// is spawned twice.
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

/// Leaves the usual `question_timeout` out.
fn loop_in_line<S: Serializer>(ralph: &Option<LoopSpec>, to: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(ralph).map_err(S::Error::custom)?;
    if let Some(object) = value.as_object_mut()
        && object["question_timeout"] == QUESTION_TIMEOUT_SECONDS
    {
        object.shift_remove("question_timeout");
    }
    value.serialize(to)
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
