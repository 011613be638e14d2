//! Reads how many tests ran. [`swarm_state::inventory`] evaluates it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use swarm_state::gates::{CheckResult, Verdict};
use swarm_state::inventory::{KnownReport, KnownTests, ReportedTests, count_all, prove, prove_report};
use swarm_state::ledger::Base;
use swarm_state::proof::{Layer, Proof};
use swarm_state::replay::refuses_tests;
use swarm_state::runners::RunnerUse;
use swarm_state::test_gates::ReportFile;

use super::run::LoopRun;
use crate::checks::KEPT_OUTPUT_BYTES;
use crate::error::{Error, ErrorCode, Result};
use crate::files::read_bounded;

const MAX_REPORT_BYTES: u64 = 64 << 20;

/// The remark on a report that the check did not write.
const STALE: &str = "the report is older than the check";

/// Identifies the content of files: inode, time of the last change, size. A time that a program set does not matter.
pub(super) type Stamps = BTreeMap<PathBuf, (u64, i64, i64, u64)>;

/// The output of a check, and whether its middle is missing.
pub(super) fn output(path: &Path) -> (String, bool) {
    let bytes = read_bounded(path, 2 * KEPT_OUTPUT_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let is_shortened = text.contains("\n[swarm: ") && text.contains(" bytes omitted]\n");
    (text, is_shortened)
}

/// The report files that exist now.
pub(super) fn report_files(loop_run: &LoopRun) -> Vec<PathBuf> {
    loop_run.gates.tests.reports.iter().flat_map(|report| files_of(&loop_run.cwd, report)).collect()
}

/// The files of a report: itself, or all files `*.xml` in it.
fn files_of(cwd: &Path, report: &ReportFile) -> Vec<PathBuf> {
    let path = cwd.join(&report.path);
    if !path.is_dir() {
        return vec![path];
    }
    let entries = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "xml")).collect();
    files.sort();
    files
}

fn stamp(path: &Path) -> Option<(u64, i64, i64, u64)> {
    let data = fs::metadata(path).ok()?;
    Some((data.ino(), data.ctime(), data.ctime_nsec(), data.size()))
}

impl LoopRun {
    pub(super) fn report_stamps(&self) -> Stamps {
        report_files(self).into_iter().filter_map(|path| Some((path.clone(), stamp(&path)?))).collect()
    }

    /// Counts the tests of each check. Returns the checks whose output was too long.
    pub(super) fn count_tests(
        &self,
        uses: &[RunnerUse],
        iteration: u32,
        checks: &mut [CheckResult],
    ) -> Vec<String> {
        let mut shortened = vec![];
        for (at, check) in checks.iter_mut().enumerate().filter(|(_, check)| !check.cut) {
            if !uses.iter().any(|used| used.check == check.name) {
                continue;
            }
            let file = self.iteration_dir(iteration).join(format!("check-{}.txt", at + 1));
            let (text, is_shortened) = output(&file);
            check.tests = count_all(uses, &check.name, &text, is_shortened);
            shortened.extend(is_shortened.then(|| check.name.clone()));
        }
        shortened
    }

    /// Reads the reports that the checks wrote since `before`.
    pub(super) fn read_reports(&self, before: &Stamps) -> Vec<KnownReport> {
        let read = |report: &ReportFile| {
            let tests = self.read_report(report, before);
            let trouble = tests.as_ref().err().cloned();
            KnownReport { path: report.path.clone(), tests: tests.ok(), trouble, first_run: None }
        };
        self.gates.tests.reports.iter().map(read).collect()
    }

    fn read_report(&self, report: &ReportFile, before: &Stamps) -> Result<ReportedTests, String> {
        let files = files_of(&self.cwd, report);
        let is_there = files.iter().any(|file| file.exists());
        let is_new = |file: &&PathBuf| stamp(file).is_some_and(|now| before.get(*file) != Some(&now));
        let mut all: Option<ReportedTests> = None;
        for file in files.iter().filter(is_new) {
            let bytes = read_bounded(file, MAX_REPORT_BYTES).map_err(|e| format!("cannot be read: {e}"))?;
            let tests = report.format.read(&String::from_utf8_lossy(&bytes)).map_err(|e| e.to_string())?;
            all.get_or_insert_with(ReportedTests::default).extend(tests);
        }
        all.ok_or_else(|| if is_there { STALE } else { "the check wrote no report" }.to_owned())
    }

    /// Refuses reports of the baseline that exist and are not in their format. The error names the report.
    pub(super) fn refuse_bad_reports(&self, reports: &[KnownReport]) -> Result<()> {
        for (report, known) in self.gates.tests.reports.iter().zip(reports) {
            if let Some(trouble) = known.trouble.as_ref().filter(|trouble| trouble.starts_with("it is not")) {
                let word = report.format.word();
                let message = format!("--report {word}={}: {trouble}", report.path);
                let hint = "name the file that the check writes, and its format: junit, tap or libtest";
                return Err(Error::new(ErrorCode::Invalid, message).hint(hint));
            }
        }
        Ok(())
    }

    /// Compares the tests that ran with those of the baseline. `before` has the reports before the checks.
    pub(super) fn evaluate_tests(&self, base: &Base, iteration: u32, before: &Stamps, verdict: &mut Verdict) {
        let shortened = self.count_tests(&base.runners, iteration, &mut verdict.checks);
        let mut proofs: Vec<Proof> = vec![];
        let is_required = |check: &&CheckResult| check.passed && !verdict.excused.contains(&check.name);
        for CheckResult { name, tests, .. } in verdict.checks.iter().filter(is_required) {
            let known = base.checks.iter().find(|check| check.name == *name).and_then(|check| check.tests);
            let first_run = base.first_run.get(name).copied();
            let before = known.map(|counts| KnownTests { counts, first_run });
            proofs.extend(prove(&base.runners, name, before, *tests, shortened.contains(name)));
        }
        if verdict.checks_hold() && !self.gates.tests.reports.is_empty() {
            let reports = self.read_reports(before);
            let known = |path: &str| base.reports.iter().find(|report| report.path == path);
            proofs.extend(reports.iter().map(|now| prove_report(known(&now.path), now)));
            if let Err(error) = self.write_reports(reports) {
                verdict.trouble = Some(error.to_string());
            }
        }
        verdict.proofs.extend(proofs);
    }

    /// Accepts the tests of an iteration as those of the baseline: those that ran, if it was refused because of them,
    /// and its test files. Returns what was refused, as phrases.
    pub(super) fn approve_tests(&self, base: &mut Base, iteration: u32) -> Vec<String> {
        let Some(last) = self.last_worked(iteration.saturating_add(1)) else { return vec![] };
        let verdict = last.verdict.unwrap_or_default();
        let mut refused: Vec<String> = vec![];
        if base.approved != last.commit {
            let replayed = verdict.proofs.iter().filter(|proof| refuses_tests(proof));
            refused.extend(replayed.map(Proof::remark));
            base.approved = last.commit;
        }
        let is_refused = |proof: &&Proof| proof.fails() && proof.layer == Layer::Inventory;
        for proof in verdict.proofs.iter().filter(is_refused) {
            let before = base.clone();
            match &proof.check {
                Some(name) => {
                    let now = verdict.checks.iter().find(|check| check.name == *name);
                    for check in base.checks.iter_mut().filter(|check| check.name == *name) {
                        if let Some(tests) = check.tests {
                            base.first_run.entry(name.clone()).or_insert(tests.run);
                        }
                        check.tests = now.and_then(|now| now.tests);
                    }
                }
                None => {
                    let first = |of: &KnownReport| of.first_run.or(Some(of.tests.as_ref()?.counts.run));
                    let first = |path: &str| base.reports.iter().find(|of| of.path == path).and_then(first);
                    let mut reports = self.last_reports();
                    reports.iter_mut().for_each(|report| report.first_run = first(&report.path));
                    base.reports = reports;
                }
            }
            refused.extend((*base != before).then(|| proof.remark()));
        }
        refused
    }
}
