//! Decides when a loop is complete.
//!
//! A gate is a condition that the user requested. At the end of a run the engine requests a [`Verdict`]; the daemon
//! checks every gate and returns the verdict as data. A loop without gates is never complete: it only runs out of
//! iterations. Deliberately absent: running checks (`checks` and `loops` in the binary), and the rule for a promise
//! without work ([`crate::promise`]).

use serde::{Deserialize, Serialize};

use crate::model::has_twice;
use crate::notice::named;
use crate::outage::Outage;
use crate::promise::{Claim, OnNoWork, Promise, Source};
use crate::proof::{Proof, ProofOutcome};
use crate::rooms::RoomGates;
use crate::runners::Runner;
use crate::tasks::gate::{TaskGate, TaskVerdict};
use crate::test_gates::TestGates;

pub use crate::check_result::{CheckResult, TIME_OVER};
pub use error::GatesError;
use error::OMIT_ONE;

pub(crate) mod error;

#[cfg(test)]
mod tests;

/// Default time limit of a check, seconds.
pub(crate) const CHECK_TIMEOUT_SECONDS: u64 = 120;

/// How many changed test files a note names.
const MAX_NOTE_FILES: usize = 10;

/// The remark on an iteration whose agent never started. Passing gates prove nothing then.
pub fn not_started(why: &str) -> String {
    format!("the agent was not started: {why}")
}

/// Why a loop ends before its first iteration: the baseline excuses every check, and no other gate was requested.
pub(crate) const NO_GATE: &str =
    "no gate is left: every check failed before the first iteration, and --allow-preexisting excuses it";

/// The remark on a missing promise.
pub const NO_PROMISE: &str = "the promise was not given";

/// The remark on a promise that could not be read, because the agent's transcript is missing.
pub(crate) const TRANSCRIPT_LOST: &str =
    "the agent's transcript is gone or empty: what its screen shows is not taken for its words";

/// The gates of a loop, fixed when it was started. The worker's done pattern is one more gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gates {
    /// Shell commands that must exit with 0, in order.
    pub checks: Vec<String>,
    /// Time limit of each check, seconds; at least 1.
    pub check_timeout: u64,
    /// How many checks run at the same time; at least 1.
    pub check_jobs: u32,
    /// The promise that the agent must print.
    pub promise: Option<Promise>,
    /// Tool calls without which a promise counts as given without work; 0: none required.
    pub min_tool_calls: u64,
    /// The treatment of a promise after fewer tool calls.
    pub on_promise_no_work: OnNoWork,
    /// Require only the checks that passed before the first iteration.
    pub allow_preexisting: bool,
    /// Watched files that an iteration may not change: globs relative to the worker's directory.
    pub protect: Vec<String>,
    /// Allow iterations to change watched files.
    pub allow_changed_checks: bool,
    /// The gates that are tested outside of the agent's tree.
    #[serde(flatten)]
    pub rooms: RoomGates,
    /// Watch the test files of known runners that exist before the loop.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protect_tests: bool,
    /// Runners that the settings change or add.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runners: Vec<Runner>,
    /// The options for the tests of the checks.
    #[serde(flatten)]
    pub tests: TestGates,
    /// The task list whose stories must all be approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskGate>,
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
            rooms: RoomGates::default(),
            protect_tests: false,
            runners: vec![],
            tests: TestGates::default(),
            tasks: None,
        }
    }
}

impl Gates {
    /// Returns the gates if they are valid, or the first fault. The client, the daemon and the library all call this,
    /// so that none accepts what another refuses.
    pub fn validated(self) -> Result<Self, GatesError> {
        const CHECK_EXAMPLE: &str = "example: --check 'cargo test'";
        let has = |fault: fn(&str) -> bool| self.checks.iter().any(|check| fault(check));
        GatesError::first([
            (has(|check| check.trim().is_empty()), "a check cannot be empty", CHECK_EXAMPLE),
            (has(|check| check.contains('\0')), "a check cannot contain a NUL byte", CHECK_EXAMPLE),
            (
                // Results are stored by command.
                has_twice(self.checks.iter().map(|check| check.trim())),
                "the same --check is given twice",
                OMIT_ONE,
            ),
            (
                self.check_timeout == 0 || self.check_jobs == 0,
                "--check-timeout and --check-jobs must be at least 1",
                "omit the option to use its default",
            ),
            (
                self.is_empty() && !self.protect.is_empty(),
                "--protect has no effect without a --check or a --promise",
                "add the condition for a complete loop: --check COMMAND",
            ),
            (
                self.checks.is_empty() && self.protect_tests,
                "--protect-tests has no effect without a --check that runs the tests",
                "add the check that runs the tests, or protect files: --protect GLOB",
            ),
            (
                self.protect_tests && self.allow_changed_checks,
                "--protect-tests cannot be used with --allow-changed-checks",
                OMIT_ONE,
            ),
        ])?;
        self.rooms.validate(&self.checks, !self.is_empty())?;
        self.tests.validate(!self.checks.is_empty())?;
        Ok(self)
    }

    /// True when no check, promise or task list is required: the loop then ends by its done pattern or its limits.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.promise.is_none() && self.tasks.is_none()
    }

    /// The checks that need not pass, out of those that `failed` before the first iteration.
    pub fn excused(&self, failed: Vec<String>) -> Vec<String> {
        if self.allow_preexisting { failed } else { vec![] }
    }

    /// True when every requested gate is excused: nothing could prove the work. A done pattern is one more gate.
    pub fn is_spent(&self, failed: Vec<String>, done_pattern: bool) -> bool {
        let excused = self.excused(failed);
        let has_check = self.checks.iter().any(|check| !excused.contains(check));
        let has_other = self.promise.is_some() || self.tasks.is_some() || done_pattern;
        !self.is_empty() && !has_check && !has_other
    }
}

/// The state of all gates at the end of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdict {
    /// Whether the done pattern matched in new output; `None` when none was requested.
    pub done_pattern: Option<bool>,
    /// Whether the promise counts; `None` when none was requested.
    pub promise: Option<Claim>,
    /// The agent's transcript existed and is now missing, so the screen is not accepted instead.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub transcript_lost: bool,
    /// The source in which the promise was read; `None` when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise_seen: Option<Source>,
    /// The results of the checks, in the order of [`Gates::checks`].
    pub checks: Vec<CheckResult>,
    /// Checks that need not pass: they failed in the baseline, and the user allowed that.
    pub excused: Vec<String>,
    /// Watched files that were changed, relative to the worker's directory.
    pub changed: Vec<String>,
    /// Test files of the baseline that were changed although nobody protects them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_tests: Vec<String>,
    /// Watched files that changed while the checks ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_in_checks: Vec<String>,
    /// The results of the other layers of evidence, in the order in which they were tested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
    /// The held-out checks failed as often as `--final-tries` permits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tries_spent: bool,
    /// Why a check could not run, if the agent cannot fix it: the loop pauses. The agent may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_check: Option<Box<str>>,
    /// The outage that ended the run, if any.
    pub outage: Option<Outage>,
    /// The API error that the agent's screen shows at the end of its turn. Without an outage it fails the iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_error: Option<Box<str>>,
    /// Cost of the iteration, millionths of a US dollar; `None` when unknown.
    pub cost: Option<u64>,
    /// Tokens used; `None` when unknown.
    pub tokens: Option<u64>,
    /// The budget that cannot be enforced, because the iteration did not report its usage: a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// Identifies the files of the tree: equal ids mean equal files. `None` outside of a repository.
    pub tree: Option<String>,
    /// Whether the tree or the set of failing checks changed; `None` when unknown.
    pub moved: Option<bool>,
    /// This iteration or an earlier one changed the tree, made a commit, called a tool, or made a check pass.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub worked: bool,
    /// Why the gates could not be checked. Then no gate holds.
    pub trouble: Option<String>,
    /// The state of the task list; `None` when none was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Box<TaskVerdict>>,
    /// The agent exited with 0, but printed and changed nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_empty_answer: bool,
}

impl Verdict {
    /// True when at least one gate was requested and all requested gates hold.
    pub fn is_complete(&self) -> bool {
        self.is_asked() && self.remarks().is_empty()
    }

    fn is_asked(&self) -> bool {
        let has_other = self.done_pattern.is_some() || self.promise.is_some() || self.tasks.is_some();
        has_other || self.asks_for_checks()
    }

    /// True when at least one check must pass. An excused check proves nothing.
    pub(crate) fn asks_for_checks(&self) -> bool {
        self.checks.iter().any(|check| !self.excused.contains(&check.name))
    }

    /// True when every required check passed.
    pub fn checks_hold(&self) -> bool {
        self.failed_checks().next().is_none()
    }

    /// The required checks that did not pass.
    pub fn failed_checks(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| !check.passed && !self.excused.contains(&check.name))
    }

    /// Findings that do not keep the loop from being complete: changed tests, and what could not be proven.
    pub fn notes(&self) -> Vec<String> {
        let tests = (!self.changed_tests.is_empty())
            .then(|| format!("changed test files: {}", named(&self.changed_tests, MAX_NOTE_FILES)));
        let unproven = self.proofs.iter().filter(|proof| proof.outcome == ProofOutcome::Unproven);
        let complete = self.tasks.iter().filter(|tasks| tasks.is_complete());
        let undone = complete.flat_map(|tasks| tasks.undone.iter().cloned());
        let undone = undone.chain(self.tasks.iter().flat_map(|tasks| tasks.noted.iter().cloned()));
        tests.into_iter().chain(unproven.map(Proof::remark)).chain(undone).collect()
    }

    /// Why the loop is not complete, one sentence for each gate; empty when every requested gate holds.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.other_remarks();
        remarks.extend(self.failed_checks().map(CheckResult::remark));
        remarks
    }

    /// The same without the checks, for callers that print each check on its own.
    pub fn other_remarks(&self) -> Vec<String> {
        let count = self.tasks.iter().filter_map(|tasks| tasks.left()).collect::<Vec<_>>();
        [count, self.faults()].concat()
    }

    /// The same without the number of stories that are left.
    pub fn faults(&self) -> Vec<String> {
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
            None | Some(Claim::Valid | Claim::Doubtful) => {}
        }
        remarks
            .extend(self.tasks.iter().filter(|tasks| !tasks.is_complete()).flat_map(|tasks| tasks.faults()));
        if !self.changed.is_empty() {
            remarks.push(format!("protected files were changed: {}", self.changed.join(", ")));
        }
        if !self.changed_in_checks.is_empty() {
            let files = self.changed_in_checks.join(", ");
            remarks.push(format!("protected files were changed while the checks ran: {files}"));
        }
        remarks.extend(self.proofs.iter().filter(|proof| proof.fails()).map(Proof::remark));
        // The held-out checks have the same remark.
        remarks.dedup();
        if !self.checks.is_empty() && !self.is_asked() {
            remarks.push(NO_GATE.into());
        }
        remarks
    }
}
