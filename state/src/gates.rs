//! When a loop is complete.
//!
//! A gate is a condition that the user asked for. At the end of a run the engine asks for a verdict, the
//! edge tries every gate, and the verdict comes back as data. A gate that was not asked for has no say;
//! a loop without gates is never complete, it only runs out of iterations. Deliberately absent: how a
//! gate is tried (that is the edge's work), and the rule of a promise without work ([`crate::promise`]).

use serde::{Deserialize, Serialize};

use crate::outage::Outage;
use crate::promise::{Claim, OnNoWork, Promise, Source};

#[cfg(test)]
mod tests;

/// How long a check may take when nobody says, seconds.
pub const CHECK_TIMEOUT_SECONDS: u64 = 120;

/// What cuts a check short beside its own limit.
pub const TIME_OVER: &str = "the loop's time was over";

/// What keeps an iteration without an agent from being done, however well things stand.
pub fn not_started(why: &str) -> String {
    format!("the agent was not started: {why}")
}

/// Why a loop ends before its first iteration when its base line excuses everything.
pub const NO_GATE: &str =
    "no gate is left: every check failed before the first iteration, and --allow-preexisting excuses it";

/// The remark on a promise that was not given.
pub const NO_PROMISE: &str = "the promise was not given";

/// The remark on a promise that nobody could hear.
pub const TRANSCRIPT_LOST: &str =
    "the agent's transcript is gone or empty: what its screen shows is not taken for its words";

/// What has to hold before a loop is complete, as it was fixed at the start; beside it may stand the worker's
/// done pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gates {
    /// Shell commands that must exit with 0, in this order.
    pub checks: Vec<String>,
    /// Seconds each of them may take; at least 1.
    pub check_timeout: u64,
    /// How many run side by side; at least 1.
    pub check_jobs: u32,
    /// What the agent must say.
    pub promise: Option<Promise>,
    /// The tool calls that make a promise worth hearing; 0: any is.
    pub min_tool_calls: u64,
    /// What becomes of a promise with fewer.
    pub on_promise_no_work: OnNoWork,
    /// Ask only for the checks that passed before the first iteration.
    pub allow_preexisting: bool,
    /// Files that no iteration may change: globs relative to the worker's directory.
    pub protect: Vec<String>,
    /// Let iterations change the scripts that checks run, and protected files.
    pub allow_changed_checks: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            checks: vec![],
            check_timeout: CHECK_TIMEOUT_SECONDS,
            check_jobs: 1,
            promise: None,
            min_tool_calls: 1,
            on_promise_no_work: OnNoWork::default(),
            allow_preexisting: false,
            protect: vec![],
            allow_changed_checks: false,
        }
    }
}

impl Gates {
    /// True when nothing is asked for: the loop then ends by its done pattern or its limits.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.promise.is_none()
    }

    /// The checks that need not pass, of those that `failed` before the first iteration.
    pub fn excused(&self, failed: Vec<String>) -> Vec<String> {
        if self.allow_preexisting { failed } else { vec![] }
    }

    /// Whether all that was asked for is excused, so that nothing could ever show that the work is done. A done pattern
    /// beside the gates is one more of them.
    pub fn is_spent(&self, failed: Vec<String>, done_pattern: bool) -> bool {
        let excused = self.excused(failed);
        let has_check = self.checks.iter().any(|check| !excused.contains(check));
        !self.is_empty() && !has_check && self.promise.is_none() && !done_pattern
    }
}

/// What one check came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command.
    pub name: String,
    /// It exited with 0 in time.
    pub passed: bool,
    /// The last characters of what it printed, and how it ended when that was not well.
    pub output: String,
    /// How long it took, seconds.
    pub seconds: f64,
    /// The loop's time was over before it was through, or before it was run at all: that says nothing about the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl CheckResult {
    /// A check that was not run, since the loop's time was over.
    pub fn not_run(name: &str) -> Self {
        let output = format!("not run: {TIME_OVER}");
        Self { name: name.to_owned(), passed: false, output, seconds: 0.0, cut: true }
    }

    /// Why it did not pass, a sentence.
    fn remark(&self) -> String {
        let name = &self.name;
        if self.cut {
            format!("the check '{name}' did not end: {TIME_OVER}")
        } else {
            format!("the check '{name}' failed")
        }
    }
}

/// What became of the gates at the end of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdict {
    /// Whether the done pattern stands in new output; `None` when none was asked for.
    pub done_pattern: Option<bool>,
    /// What the promise came to; `None` when none was asked for.
    pub promise: Option<Claim>,
    /// The record of the agent's words was there and is gone, so nothing else is taken for them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub transcript_lost: bool,
    /// Where it was read; `None` when it was not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise_seen: Option<Source>,
    /// Each check, in the order in which they were asked for.
    pub checks: Vec<CheckResult>,
    /// Checks that need not pass, because they failed before any agent worked and the user allowed that.
    pub excused: Vec<String>,
    /// Files that no iteration may change and that were changed, relative to the worker's directory.
    pub changed: Vec<String>,
    /// What keeps the agent from working, where that is why it ended as it did.
    pub outage: Option<Outage>,
    /// The error that the agent's screen shows as the end of its turn. Without an outage it fails the iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_error: Option<String>,
    /// What the iteration cost, millionths of a US dollar; `None` where nobody says.
    pub cost: Option<u64>,
    /// The tokens it used; `None` where nobody says.
    pub tokens: Option<u64>,
    /// A limit that is not held, since the iteration did not tell what it used: a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Names the state of the tree: equal names are equal files. `None` where there is no repository.
    pub tree: Option<String>,
    /// Whether the tree or the checks that fail are others than before; `None` where that cannot be seen.
    pub moved: Option<bool>,
    /// The gates could not be tried: why. That is no word about the work, but nothing holds.
    pub trouble: Option<String>,
}

impl Verdict {
    /// True when at least one gate was asked for and all that were asked for hold.
    pub fn is_complete(&self) -> bool {
        self.is_asked() && self.remarks().is_empty()
    }

    /// Whether anything has to hold.
    fn is_asked(&self) -> bool {
        self.done_pattern.is_some() || self.promise.is_some() || self.asks_for_checks()
    }

    /// Whether at least one check has to pass: one that is excused proves nothing.
    pub fn asks_for_checks(&self) -> bool {
        self.checks.iter().any(|check| !self.excused.contains(&check.name))
    }

    /// Whether every check that has to pass did.
    pub fn checks_hold(&self) -> bool {
        self.failed_checks().next().is_none()
    }

    /// The checks that had to pass and did not.
    pub fn failed_checks(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| !check.passed && !self.excused.contains(&check.name))
    }

    /// Why it is not complete, a sentence a gate; empty when nothing that was asked for is missing.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.other_remarks();
        remarks.extend(self.failed_checks().map(CheckResult::remark));
        remarks
    }

    /// The same without the checks, for those who tell these one by one.
    pub fn other_remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.trouble.iter().cloned().collect();
        if self.done_pattern == Some(false) {
            remarks.push("the done pattern did not appear".into());
        }
        match self.promise {
            Some(Claim::Missing) => {
                remarks.push(NO_PROMISE.into());
                remarks.extend(self.transcript_lost.then(|| TRANSCRIPT_LOST.to_owned()));
            }
            Some(Claim::Rejected) => remarks.push("promise without work: nothing was done before it".into()),
            None | Some(Claim::Given | Claim::Doubtful) => {}
        }
        if !self.changed.is_empty() {
            remarks.push(format!("protected files were changed: {}", self.changed.join(", ")));
        }
        if !self.checks.is_empty() && !self.is_asked() {
            remarks.push(NO_GATE.into());
        }
        remarks
    }
}
