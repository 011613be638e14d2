//! The result of one check, as verdicts and the ledger store it.

use serde::{Deserialize, Serialize};

use crate::inventory::TestCounts;

/// Why a check was ended before its own time limit.
pub const TIME_OVER: &str = "the loop's time was over";

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command.
    pub name: String,
    /// True when it exited with 0 in time.
    pub passed: bool,
    /// The end of its output, then how it ended when it did not pass.
    pub output: String,
    /// Its duration, seconds.
    pub seconds: f64,
    /// True when the loop's time limit ended or prevented the check. Its result then proves nothing about the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The tests that ran, from the summary of a known runner; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
}

impl CheckResult {
    /// The result of a check that did not run because the loop's time limit was reached.
    pub fn not_run(name: &str) -> Self {
        let output = format!("not run: {TIME_OVER}");
        Self { name: name.to_owned(), passed: false, output, seconds: 0.0, cut: true, tests: None }
    }

    /// Why it did not pass.
    pub fn remark(&self) -> String {
        let name = &self.name;
        if self.cut {
            format!("the check '{name}' did not end: {TIME_OVER}")
        } else {
            format!("the check '{name}' failed")
        }
    }
}
