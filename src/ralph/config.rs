//! The configuration of a library loop, and the gates and budgets that follow from it.

use std::path::PathBuf;

use swarm_state::budget::Budgets;
use swarm_state::gates::Gates;
use swarm_state::promise::Promise;

use crate::error::{Error, Result};

/// The task, its checks and its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct RalphConfig {
    /// The task.
    pub task: String,
    /// Shell commands that prove the work: all of them must exit with 0. At least one.
    pub checks: Vec<String>,
    /// A file with the task, used instead of `task` and read again for each iteration; relative to the loop's root.
    pub spec_file: Option<PathBuf>,
    /// The token that the agent prints when done, as `<promise>COMPLETE</promise>`; `None` requires no promise.
    pub completion_tag: Option<String>,
    /// The maximum number of iterations, 1 to 100.
    pub max_iterations: u32,
    /// US dollars. The iteration that exceeds the limit is the last one. An iteration without a reported cost then
    /// counts as failed.
    pub max_cost: Option<f64>,
    /// Seconds.
    pub max_time: Option<u64>,
    /// Passed to the agent's factory.
    pub agent: String,
    /// Passed to the agent's factory.
    pub model: Option<String>,
    /// Work in a worktree, `<repo>-worktrees/NAME` on branch `swarm/NAME`.
    pub use_worktree: bool,
}

impl Default for RalphConfig {
    fn default() -> Self {
        Self {
            task: String::new(),
            checks: vec![],
            spec_file: None,
            completion_tag: Some("COMPLETE".into()),
            max_iterations: 25,
            max_cost: None,
            max_time: None,
            agent: "build".into(),
            model: None,
            use_worktree: false,
        }
    }
}

impl RalphConfig {
    /// The gates; fails if the configuration is invalid.
    pub(super) fn gates(&self) -> Result<Gates> {
        if self.checks.is_empty() {
            return Err(Error::invalid("a loop needs at least one check, the command that proves its work"));
        }
        if self.task.trim().is_empty() && self.spec_file.is_none() {
            return Err(Error::invalid("a loop needs a task or a spec file"));
        }
        if !(1..=100).contains(&self.max_iterations) {
            return Err(Error::invalid(format!(
                "max_iterations must be 1 to 100, not {}",
                self.max_iterations
            )));
        }
        if self.max_cost.is_some_and(|cost| !(cost.is_finite() && (0.000_001..=1e9).contains(&cost))) {
            return Err(Error::invalid("max_cost must be more than 0 dollars"));
        }
        if self.max_time == Some(0) {
            return Err(Error::invalid("max_time must be at least 1 second"));
        }
        let promise = self.completion_tag.as_deref().map(Promise::new).transpose();
        let promise = promise.map_err(|e| Error::invalid(format!("completion_tag: {e}")))?;
        Gates { checks: self.checks.clone(), promise, ..Gates::default() }
            .validated()
            .map_err(Error::of_gates)
    }

    pub(super) fn budgets(&self) -> Budgets {
        let max_cost = self.max_cost.map(|dollars| (dollars * 1e6).round() as u64);
        Budgets { max_time: self.max_time, max_cost, ..Budgets::default() }
    }
}
