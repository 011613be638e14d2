//! How many tests ran: read from a runner's output or from its report, and compared with the baseline.
//!
//! An agent that deletes or skips a failing test has made the check pass without doing the work. The daemon reads the
//! counts after the checks; [`prove`] and [`prove_report`] compare them. Deliberately absent: files.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::notice::{counted, named};
use crate::proof::{Layer, Proof, ProofOutcome};
use crate::runners::{RunnerUse, SummaryFormat};
use crate::words::unique;

mod report;
mod summary;
#[cfg(test)]
mod tests;

pub use report::ReportFormat;
pub use summary::count;

/// How many tests a message names.
const MAX_NAMED_TESTS: usize = 3;

/// How many tests ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// Tests that ran and could fail.
    pub run: u64,
    /// Tests of these that failed.
    pub failed: u64,
    /// Tests that did not run, or were expected to fail.
    pub skipped: u64,
}

impl std::ops::AddAssign for TestCounts {
    fn add_assign(&mut self, other: Self) {
        self.run += other.run;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// The tests of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedTests {
    /// How many there are.
    pub counts: TestCounts,
    /// The names of those that ran.
    pub ran: BTreeSet<String>,
    /// The names of those that were skipped.
    pub skipped: BTreeSet<String>,
}

/// A report file of the loop, and its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KnownReport {
    /// Its path, as the user named it.
    pub path: String,
    /// Its tests; `None` if it could not be read.
    pub tests: Option<ReportedTests>,
    /// Why it could not be read.
    pub trouble: Option<String>,
    /// How many tests ran before the first iteration, if a person approved others since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_run: Option<u64>,
}

/// The tests of a check that an iteration is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownTests {
    /// Their numbers.
    pub counts: TestCounts,
    /// As [`KnownReport::first_run`].
    pub first_run: Option<u64>,
}

impl KnownTests {
    fn text(self) -> String {
        let run = self.counts.run;
        match self.first_run {
            Some(first) if first != run => format!("{first} at the baseline, approved now {run}"),
            Some(_) | None => format!("{run} at the baseline"),
        }
    }
}

/// The counts in the output of a check, for all runners that it starts; `None` if there are none. `is_shortened`: the
/// middle of the output is missing.
pub fn count_all(uses: &[RunnerUse], check: &str, output: &str, is_shortened: bool) -> Option<TestCounts> {
    let formats = uses.iter().filter(|used| used.check == check).map(|used| used.runner.summary);
    let formats = unique(formats);
    if is_shortened && formats.iter().any(|format| format.is_summed()) {
        return None;
    }
    let mut sum = None;
    for counts in formats.into_iter().filter_map(|format| count(format, output)) {
        *sum.get_or_insert_with(TestCounts::default) += counts;
    }
    sum
}

/// Compares the tests of a passing check with those of the baseline. `None` if the check runs no known runner. Some
/// runners stop at the first failure, so the counts of a failed check prove nothing. `is_cut`: the output was too
/// long to be kept.
pub fn prove(
    uses: &[RunnerUse],
    check: &str,
    before: Option<KnownTests>,
    now: Option<TestCounts>,
    is_cut: bool,
) -> Option<Proof> {
    let is_known = |used: &RunnerUse| used.check == check && used.runner.summary != SummaryFormat::None;
    if !uses.iter().any(is_known) {
        return None;
    }
    let proof = |outcome, found: String| Some(Proof::of_check(Layer::Inventory, check, outcome, found));
    match (before, now) {
        (None, Some(now)) => {
            let found = format!("{} ran; their number at the baseline is unknown", counted(now.run, "test"));
            proof(ProofOutcome::Unproven, found)
        }
        (None, None) => proof(
            ProofOutcome::Unproven,
            "the runner printed no count of tests, also not at the baseline".into(),
        ),
        (Some(_), None) if is_cut => {
            proof(ProofOutcome::Unproven, "the output is too long to count its tests".into())
        }
        (Some(before), None) => {
            let found = format!(
                "the runner printed no count of tests; at the baseline, {} ran",
                counted(before.counts.run, "test")
            );
            proof(ProofOutcome::Fails, found)
        }
        (Some(before), Some(now)) => match lost(before, now) {
            Some(found) => proof(ProofOutcome::Fails, found),
            None => proof(ProofOutcome::Holds, ran(before, now)),
        },
    }
}

/// Compares a report with the one of the baseline.
pub fn prove_report(base: Option<&KnownReport>, now: &KnownReport) -> Proof {
    let proof =
        |outcome, found: String| Proof::of_all(Layer::Inventory, outcome, format!("{}: {found}", now.path));
    let before = base.and_then(|base| base.tests.as_ref());
    let known = |before: &ReportedTests| KnownTests {
        counts: before.counts,
        first_run: base.and_then(|base| base.first_run),
    };
    match (before, &now.tests) {
        (None, Some(_)) => {
            let why = base.and_then(|base| base.trouble.as_deref()).unwrap_or("it is missing");
            proof(ProofOutcome::Unproven, format!("no report of the baseline to compare with: {why}"))
        }
        (_, None) => {
            let why = now.trouble.as_deref().unwrap_or("the report is missing");
            let outcome = if before.is_some() { ProofOutcome::Fails } else { ProofOutcome::Unproven };
            proof(outcome, why.to_owned())
        }
        (Some(before), Some(tests)) => {
            let skipped: Vec<String> = before.ran.intersection(&tests.skipped).cloned().collect();
            let is_missing = |name: &&String| !tests.ran.contains(*name) && !tests.skipped.contains(*name);
            // Of a report with more tests than swarm keeps, only the counts are known.
            let has_names = !tests.ran.is_empty() || !tests.skipped.is_empty();
            let is_known = has_names || tests.counts == TestCounts::default();
            let missing: Vec<String> =
                before.ran.iter().filter(|name| is_known && is_missing(name)).cloned().collect();
            let list = |tests: &[String]| named(tests, MAX_NAMED_TESTS);
            if !skipped.is_empty() {
                proof(ProofOutcome::Fails, format!("tests of the baseline are skipped: {}", list(&skipped)))
            } else if !missing.is_empty() {
                proof(ProofOutcome::Fails, format!("tests of the baseline did not run: {}", list(&missing)))
            } else if tests.counts.run < before.counts.run {
                proof(ProofOutcome::Fails, fewer(known(before), tests.counts))
            } else {
                proof(ProofOutcome::Holds, ran(known(before), tests.counts))
            }
        }
    }
}

fn lost(before: KnownTests, now: TestCounts) -> Option<String> {
    let KnownTests { counts, .. } = before;
    if now.run < counts.run {
        Some(fewer(before, now))
    } else if now.skipped > counts.skipped {
        let verb = if now.skipped == 1 { "is" } else { "are" };
        let tests = counted(now.skipped, "test");
        Some(format!("{tests} {verb} skipped, {} at the baseline", counts.skipped))
    } else {
        None
    }
}

fn fewer(before: KnownTests, now: TestCounts) -> String {
    let skipped = if now.skipped > before.counts.skipped {
        format!(" ({} skipped, {} at the baseline)", now.skipped, before.counts.skipped)
    } else {
        String::new()
    };
    format!("{}{skipped}", ran(before, now))
}

fn ran(before: KnownTests, now: TestCounts) -> String {
    format!("{} ran, {}", counted(now.run, "test"), before.text())
}
