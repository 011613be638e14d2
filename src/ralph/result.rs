//! What a loop came to, field by field as scripts and programs read it.
//!
//! `swarm loop --format json` prints a [`RalphLoopResult`], the library returns one. The field names are those of the
//! documented interface; they never change.

use serde::{Deserialize, Serialize};
use swarm_state::ledger::Iteration;

/// What a loop came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RalphLoopResult {
    /// All iterations, in order.
    pub iterations: Vec<LoopIteration>,
    /// How many they are.
    pub total_iterations: usize,
    /// US dollars, as far as anybody told them.
    pub total_cost: f64,
    /// Seconds, pauses left out.
    pub total_duration: f64,
    /// Every gate holds.
    pub success: bool,
    /// How it ended: a word of [`swarm_state::ends::LoopEnd`], or `paused` while it has not.
    pub stop_reason: String,
    /// Where the work is, when it has a worktree; empty otherwise.
    pub worktree_path: String,
    /// The checks before the first iteration.
    pub baseline: Vec<CheckResult>,
}

/// What one iteration came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopIteration {
    /// Its number, from 1.
    pub iteration: u32,
    /// Tools that the agent called; null where they cannot be counted.
    pub steps_taken: Option<u64>,
    /// US dollars; null where nobody told.
    pub cost: Option<f64>,
    /// Seconds.
    pub duration: f64,
    /// Each check.
    pub check_results: Vec<CheckResult>,
    /// All of them passed, those left out that may fail.
    pub all_checks_passed: bool,
    /// The agent said what it was to say.
    pub completion_tag_found: bool,
    /// What went wrong beside the checks; null when nothing did.
    pub error: Option<String>,
}

/// What a check came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command.
    pub name: String,
    /// It exited with 0 in time.
    pub passed: bool,
    /// The last 2,000 characters of what it printed.
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
        // The checks and the tag have fields of their own.
        errors.retain(|remark| remark != swarm_state::gates::NO_PROMISE);
        // What the gates say already is not repeated.
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
            completion_tag_found: claim.is_some_and(swarm_state::promise::Claim::is_given),
            error: (!errors.is_empty()).then(|| errors.join("; ")),
        }
    }
}

impl LoopIteration {
    /// The same, where somebody knows better than an exit status what went wrong with the agent.
    #[must_use]
    pub(super) fn of(it: &Iteration, agent_error: Option<&String>) -> Self {
        let Some(why) = agent_error else { return Self::from(it) };
        let mut own = Self::from(&Iteration { exit_code: Some(0), signal: None, end: None, ..it.clone() });
        own.error = Some(own.error.map_or_else(|| why.clone(), |more| format!("{why}; {more}")));
        own
    }
}
