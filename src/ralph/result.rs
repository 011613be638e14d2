//! The result of a loop, with the field names that scripts and programs read.
//!
//! `swarm loop --format json` prints a [`RalphLoopResult`], and the library returns one. The field names are
//! documented and never change.

use serde::{Deserialize, Serialize};
use swarm_state::ledger::Iteration;

/// The result of a loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RalphLoopResult {
    /// All iterations, in order.
    pub iterations: Vec<LoopIteration>,
    /// Their number.
    pub total_iterations: usize,
    /// US dollars, as far as costs were reported; null if no iteration reported one.
    pub total_cost: Option<f64>,
    /// Seconds, without pauses.
    pub total_duration: f64,
    /// All gates hold.
    pub success: bool,
    /// How it ended: a word of [`swarm_state::ends::LoopEnd`], or `paused` while it has not.
    pub stop_reason: String,
    /// The worktree's path; empty without one.
    pub worktree_path: String,
    /// The checks before the first iteration.
    pub baseline: Vec<CheckResult>,
}

/// The result of one iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopIteration {
    /// The iteration, from 1.
    pub iteration: u32,
    /// The number of tool calls; null if unknown.
    pub steps_taken: Option<u64>,
    /// US dollars; null if not reported.
    pub cost: Option<f64>,
    /// Seconds.
    pub duration: f64,
    /// The checks.
    pub check_results: Vec<CheckResult>,
    /// All checks passed that have to.
    pub all_checks_passed: bool,
    /// The agent printed its promise.
    pub completion_tag_found: bool,
    /// Errors other than failed checks; null if there are none.
    pub error: Option<String>,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command.
    pub name: String,
    /// The command exited with 0 in time.
    pub passed: bool,
    /// The last 2,000 characters of its output.
    pub output: String,
}

impl From<&swarm_state::gates::CheckResult> for CheckResult {
    fn from(check: &swarm_state::gates::CheckResult) -> Self {
        Self { name: check.name.clone(), passed: check.passed, output: check.output.clone() }
    }
}

impl From<&Iteration> for LoopIteration {
    fn from(it: &Iteration) -> Self {
        let verdict = it.verdict.as_ref();
        let claim = verdict.and_then(|verdict| verdict.promise);
        let mut errors = verdict.map(swarm_state::gates::Verdict::other_remarks).unwrap_or_default();
        // Checks and tag have fields of their own.
        errors.retain(|remark| remark != swarm_state::gates::NO_PROMISE);
        // Do not repeat what the gates report.
        errors.extend(it.trouble().filter(|trouble| !errors.iter().any(|known| known.contains(trouble))));
        Self {
            iteration: it.iteration,
            steps_taken: it.tool_calls,
            cost: it.cost(),
            duration: it.seconds,
            check_results: verdict
                .map(|v| v.checks.iter().map(CheckResult::from).collect())
                .unwrap_or_default(),
            all_checks_passed: verdict.is_some_and(|v| v.trouble.is_none() && v.checks_hold()),
            completion_tag_found: claim.is_some_and(swarm_state::promise::Claim::is_printed),
            error: (!errors.is_empty()).then(|| errors.join("; ")),
        }
    }
}

impl LoopIteration {
    /// The same, for a caller with a better error than an exit status.
    #[must_use]
    pub(super) fn of(it: &Iteration, agent_error: Option<&String>) -> Self {
        let Some(why) = agent_error else { return Self::from(it) };
        let mut own = Self::from(&Iteration { exit_code: Some(0), signal: None, end: None, ..it.clone() });
        own.error = Some(own.error.map_or_else(|| why.clone(), |more| format!("{why}; {more}")));
        own
    }
}
