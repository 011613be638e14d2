//! The user's request: everything that is fixed when a worker is spawned.
//!
//! The client's request becomes a [`WorkerSpec`], which the daemon keeps in the worker's record. Not here: what
//! happens to the worker afterwards ([`crate::engine`]).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::budget::Budgets;
use crate::caps::Caps;
use crate::gates::Gates;
use crate::model::{
    PromptVia, QUESTION_TIMEOUT_SECONDS, RestartSpec, WorkerName, default_question_timeout, is_default,
};
use crate::profiles::Profile;
use crate::sandbox::{SandboxKind, SandboxSpec};

/// The worktree that the user requested with `--worktree`, `--branch`, `--worktree-dir`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeSpec {
    /// The branch; `swarm/NAME` when absent.
    pub branch: Option<String>,
    /// The directory of the worktree itself; `<repo>-worktrees/NAME` when absent.
    pub dir: Option<PathBuf>,
}

/// The source of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// There is none.
    #[default]
    None,
    /// This text.
    Text(String),
    /// This file (absolute), read again for each run.
    File(PathBuf),
}

/// Everything that was fixed when a worker was spawned.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpec {
    /// Its name.
    pub name: WorkerName,
    /// The agent's argv; never empty.
    pub cmd: Vec<String>,
    /// The directory it was spawned from, absolute. With a worktree, the agent runs in that instead.
    pub cwd: PathBuf,
    /// The agent's whole environment (stored 0600, never printed).
    pub env: BTreeMap<String, String>,
    /// The names of `env` that the user set on purpose (`--env`), in order.
    pub env_names: Vec<String>,
    /// Free labels.
    pub tags: Vec<String>,
    /// Wanted worktree.
    pub worktree: Option<WorktreeSpec>,
    /// The prompt for the agent.
    pub prompt: Prompt,
    /// The route of the prompt, with the profile applied: never `Auto`.
    pub prompt_via: PromptVia,
    /// The profile of this agent, settings merged in.
    pub profile: Profile,
    /// Wait for a ready screen even when no prompt must be pasted.
    pub ready_wait: bool,
    /// Seconds until a screen that is not ready makes the worker `waiting`.
    pub ready_timeout: u64,
    /// The pattern (Python's `re` syntax) whose match in new output ends the worker.
    pub done_pattern: Option<String>,
    /// Keep everything the pane prints, raw.
    pub record: bool,
    /// The tmux socket, if the user named one: a path, or a `-L` name.
    pub tmux_socket: Option<String>,
    /// Columns and rows of the window.
    #[serde(default = "default_size")]
    pub size: (u16, u16),
    /// Present for a loop.
    pub ralph: Option<LoopSpec>,
    /// Present for a plain worker that is started again after its end.
    #[serde(default)]
    pub restart: Option<RestartSpec>,
    /// The worker that coordinates this one. When it is killed, so is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<WorkerName>,
    /// The sandbox that it and its checks run in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSpec>,
    /// Its resource caps.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caps: Caps,
}

impl WorkerSpec {
    /// An empty spec: no command, no prompt.
    pub fn bare(name: WorkerName) -> Self {
        Self {
            name,
            cmd: vec![],
            cwd: "/".into(),
            env: [].into(),
            env_names: vec![],
            tags: vec![],
            worktree: None,
            prompt: Prompt::None,
            prompt_via: PromptVia::Stdin,
            profile: Profile::generic(),
            ready_wait: false,
            ready_timeout: 30,
            done_pattern: None,
            record: false,
            tmux_socket: None,
            size: DEFAULT_SIZE,
            ralph: None,
            restart: None,
            parent: None,
            sandbox: None,
            caps: Caps::default(),
        }
    }

    /// Whether the agent runs in a Docker sandbox.
    pub fn is_in_docker(&self) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| sandbox.kind == SandboxKind::Docker)
    }

    /// The route of its prompt. In a Docker sandbox, the agent's only standard input is the terminal.
    pub fn route(&self, wanted: PromptVia) -> PromptVia {
        let via = self.profile.route(&self.cmd, wanted, self.ralph.is_some());
        if via == PromptVia::Stdin && self.is_in_docker() { PromptVia::Arg } else { via }
    }

    /// Whether it is a loop with a gate, which is complete only if swarm itself sees the gate pass.
    pub fn is_gated(&self) -> bool {
        self.ralph.as_ref().is_some_and(|ralph| !ralph.gates.is_empty())
    }

    /// The spec with the agent that reviews stories; `None` if the worker's own agent does.
    pub fn of_reviewer(&self) -> Option<Self> {
        let ReviewerSpec { cmd, profile } = self.ralph.as_ref()?.reviewer.clone()?;
        let reviewer = Self { cmd, profile, ..self.clone() };
        Some(Self { prompt_via: reviewer.route(PromptVia::Auto), ..reviewer })
    }
}

impl fmt::Debug for WorkerSpec {
    /// Leaves the environment and the prompt's text out: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSpec")
            .field("name", &self.name)
            .field("cmd", &self.cmd)
            .field("cwd", &self.cwd)
            .field("ralph", &self.ralph)
            .finish_non_exhaustive()
    }
}

/// Default columns and rows of a window.
pub const DEFAULT_SIZE: (u16, u16) = (200, 50);

fn default_size() -> (u16, u16) {
    DEFAULT_SIZE
}

/// The agent of the iterations that review a story, if it is not the worker's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewerSpec {
    /// Its argv; never empty.
    pub cmd: Vec<String>,
    /// Its profile, settings merged in.
    pub profile: Profile,
}

/// The settings that make a worker a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopSpec {
    /// The prompt file, absolute.
    pub prompt_file: PathBuf,
    /// The most iterations; at least 1.
    pub max_iterations: u32,
    /// Seconds of an unchanged screen that end an iteration; at least 1.
    pub inactivity_timeout: u64,
    /// Seconds that a question during work may stay unanswered; 0: no limit.
    #[serde(default = "default_question_timeout")]
    pub question_timeout: u64,
    /// The task, if it was given as text: `prompt_file` is then swarm's own copy of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The gates that must hold before it is complete.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gates: Gates,
    /// Its limits other than the iterations.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budgets: Budgets,
    /// The agent that reviews stories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<ReviewerSpec>,
}

impl LoopSpec {
    /// A loop without gates, limited only by its iterations.
    pub fn new(prompt_file: PathBuf, max_iterations: u32, inactivity_timeout: u64) -> Self {
        let (gates, budgets) = (Gates::default(), Budgets::default());
        Self {
            prompt_file,
            max_iterations,
            inactivity_timeout,
            question_timeout: QUESTION_TIMEOUT_SECONDS,
            task: None,
            gates,
            budgets,
            reviewer: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_a_spec_has_no_secrets() {
        let spec = WorkerSpec {
            cmd: vec!["x".into()],
            env: [("KEY".to_owned(), "s3cr3t".to_owned())].into(),
            prompt: Prompt::Text("hush".into()),
            ..WorkerSpec::bare(WorkerName::new("a").unwrap())
        };
        let text = format!("{spec:?}");
        assert!(!text.contains("s3cr3t") && !text.contains("hush"), "{text}");
    }
}
