//! The ledger: the result of each iteration of a loop, and the state before the first.
//!
//! Written next to an iteration's output, read for the next iteration's contract, the progress file, `swarm
//! report` and `swarm why`. The forms are on disk: fields are only added. Deliberately absent: files.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::canary::Canary;
use crate::gates::{CheckResult, Verdict};
use crate::inventory::KnownReport;
use crate::model::{Exit, is_default};
use crate::notice::{Counts, IterationExit};
use crate::quota::QuotaFigure;
use crate::runners::{CheckProgram, RunnerUse};

/// Before the name of each program among the watched files.
pub const PROGRAM_PREFIX: &str = "program ";

/// The state before the first iteration: the tree, the results of all checks, and the watched files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Base {
    /// Identifies the loop, since its name can be used again.
    pub id: String,
    /// The commit that was checked out; `None` outside of a repository and before its first commit.
    pub head: Option<String>,
    /// The snapshot of the tree; `None` outside of a repository.
    pub commit: Option<String>,
    /// Its tree.
    pub tree: Option<String>,
    /// The results of the checks before the first iteration.
    pub checks: Vec<CheckResult>,
    /// Watched files, relative to the worker's directory, with the hashes of their contents.
    pub protected: BTreeMap<String, String>,
    /// The scripts of checks and the task file, of the watched files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<String>,
    /// The known test runners that the checks start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runners: Vec<RunnerUse>,
    /// The programs that the checks start, as far as they exist. `first` is empty if there is no such directory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<CheckProgram>,
    /// Programs on the PATH in front of another program of the same name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_front: Vec<String>,
    /// Directories that a package manager fills, with a digest of the names, sizes and times of their files.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dependencies: BTreeMap<String, String>,
    /// When the watched files were read, seconds since 1970.
    #[serde(skip_serializing_if = "is_default")]
    pub taken: i64,
    /// The failing tests that prove that checks can fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub canaries: Vec<Canary>,
    /// How many tests of a check ran before the first iteration, if a person approved another number since.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub first_run: BTreeMap<String, u64>,
    /// The settings of git that change the contents of files when they are checked out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub checkout_settings: BTreeMap<String, String>,
    /// The reports of tests that the checks wrote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<KnownReport>,
    /// Files and directories (with a `/` at the end) that the checks wrote before any agent worked; not watched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<String>,
    /// The directories with ignore files of git, absolute, and the rules in them. Later changes to them have no effect.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ignore_rules: BTreeMap<String, String>,
    /// The last snapshot that a person approved. Later changes to test files are compared with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// Warnings about the start of the loop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Base {
    /// The checks that already failed. A check that was ended early may still pass and is left out.
    pub fn failed(&self) -> Vec<String> {
        let failed = self.checks.iter().filter(|check| !check.passed && !check.cut);
        failed.map(|check| check.name.clone()).collect()
    }

    /// The watched files that were changed, removed or added, sorted.
    pub fn changed(&self, now: &BTreeMap<String, String>) -> Vec<String> {
        let files: BTreeSet<&String> = self.protected.keys().chain(now.keys()).collect();
        let is_changed = |file: &&String| self.protected.get(*file) != now.get(*file);
        files.into_iter().filter(is_changed).cloned().collect()
    }

    /// Stops watching files that the checks wrote: `now` has the watched files after them. A directory that had no
    /// watched files is left out as a whole, since the next check may write other names there.
    pub fn leave_out_written(&mut self, now: &BTreeMap<String, String>) {
        let had_files = |dir: &str| self.protected.keys().any(|file| file.starts_with(dir));
        let written = self.changed(now).into_iter().map(|file| {
            if file.starts_with('/') || file.starts_with(PROGRAM_PREFIX) {
                return file;
            }
            let ends = file.match_indices('/').map(|(at, _)| at + 1);
            let new_dir = ends.map(|end| file.split_at(end).0.to_owned()).find(|dir| !had_files(dir));
            new_dir.unwrap_or(file)
        });
        let written: BTreeSet<String> = written.collect();
        self.written = written.into_iter().collect();
        let is_written = |file: &String| is_in(&self.written, file);
        self.protected =
            std::mem::take(&mut self.protected).into_iter().filter(|(file, _)| !is_written(file)).collect();
    }

    /// Whether the checks wrote this file before any agent worked.
    pub fn is_written(&self, file: &str) -> bool {
        is_in(&self.written, file)
    }
}

fn is_in(list: &[String], file: &str) -> bool {
    list.iter().any(|entry| file == entry || entry.ends_with('/') && file.starts_with(entry.as_str()))
}

/// The size of a change to the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffStat {
    /// Files.
    pub files: u64,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// The record of one iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Iteration {
    /// Its number, from 1.
    pub iteration: u32,
    /// Its run.
    pub run: u64,
    /// When it started: RFC 3339 with offset.
    pub started: Option<String>,
    /// When its agent ended: RFC 3339 with offset.
    pub ended: String,
    /// Seconds between the two.
    pub seconds: f64,
    /// Seconds that the checks took; `None` without checks, if they did not end, or in a record of an older release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_seconds: Option<f64>,
    /// How it ended; `None` in a record of an older release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<IterationExit>,
    /// Why it ended, as a phrase; empty in a record of an older release.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The used parts of the account's usage limits, as the agent recorded them. Not stored.
    #[serde(skip)]
    pub limits: Vec<QuotaFigure>,
    /// The last lines that its agent printed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// The agent's exit status; `None` when a signal ended it, or when unknown.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Tool calls; `None` when unknown.
    pub tool_calls: Option<u64>,
    /// The verdict on the gates; `None` before they were checked.
    pub verdict: Option<Verdict>,
    /// The commit that was checked out at its end.
    pub head: Option<String>,
    /// The snapshot of the tree at its end.
    pub commit: Option<String>,
    /// The tree after the checks, which may write reports: the tree that the next iteration starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// The changes that it made.
    pub diff: Option<DiffStat>,
    /// The steps that swarm could not carry out for this iteration.
    pub warnings: Vec<String>,
    /// True when the agent could not be started. The verdict has the error, and no change is the agent's work.
    #[serde(skip_serializing_if = "is_default")]
    pub no_agent: bool,
    /// How many of its processes the kernel killed because its memory reached the cap.
    #[serde(skip_serializing_if = "is_default")]
    pub oom_kills: u64,
}

impl Iteration {
    /// Whether every gate held.
    pub fn is_complete(&self) -> bool {
        self.verdict.as_ref().is_some_and(Verdict::is_complete)
    }

    /// Why the agent did not succeed, as a phrase; `None` when it did.
    pub fn trouble(&self) -> Option<String> {
        match (self.end, self.exit_code, self.signal) {
            (Some(IterationExit::Exit(exit @ Exit::OutOfMemory(_))), ..) => Some(exit.to_string()),
            (Some(IterationExit::Exit(_)) | None, _, Some(signal)) => {
                Some(format!("the agent was ended by signal {signal}"))
            }
            (Some(IterationExit::Exit(_)) | None, Some(code), None) if code != 0 => {
                Some(format!("the agent ended with exit status {code}"))
            }
            (Some(end), ..) if end.counts_as() != Counts::Success => Some(self.reason.clone()),
            (Some(_) | None, ..) => None,
        }
    }

    /// Whether its memory reached the cap.
    pub fn is_out_of_memory(&self) -> bool {
        self.oom_kills > 0 || matches!(self.end, Some(IterationExit::Exit(Exit::OutOfMemory(_))))
    }

    /// Whether it counts as failed.
    pub fn has_failed(&self) -> bool {
        self.end.map_or(self.no_agent || self.trouble().is_some(), |end| end.counts_as() == Counts::Failure)
    }

    /// Seconds that the checks took, also in a record of an older release; `None` when unknown.
    pub fn check_seconds(&self) -> Option<f64> {
        let checks = self.verdict.as_ref().map_or(&[][..], |verdict| &verdict.checks);
        let sum = || checks.iter().map(|check| check.seconds).sum();
        self.check_seconds.or_else(|| (!checks.is_empty()).then(sum))
    }

    /// The cost, US dollars.
    pub fn cost(&self) -> Option<f64> {
        self.verdict.as_ref()?.cost.map(|millionths| millionths as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_removed_and_added_protected_files_are_reported() {
        let files = |list: &[(&str, &str)]| list.iter().map(|(f, h)| ((*f).into(), (*h).into())).collect();
        let base = Base { protected: files(&[("a", "1"), ("b", "2")]), ..Base::default() };
        assert_eq!(base.changed(&files(&[("a", "1"), ("b", "2")])), Vec::<String>::new());
        assert_eq!(base.changed(&files(&[("b", "3"), ("c", "4")])), ["a", "b", "c"]);
    }

    #[test]
    fn only_programs_changed_by_the_checks_are_left_out() {
        let files = |list: &[(&str, &str)]| list.iter().map(|(f, h)| ((*f).into(), (*h).into())).collect();
        let mut base = Base { protected: files(&[("program x: /a/x", "1")]), ..Base::default() };
        base.leave_out_written(&files(&[("program x: /b/x", "1"), ("/home/u/.rc", "2")]));
        assert_eq!(base.written, ["/home/u/.rc", "program x: /a/x", "program x: /b/x"]);
    }

    #[test]
    fn files_that_the_checks_write_are_left_out() {
        let files = |list: &[(&str, &str)]| list.iter().map(|(f, h)| ((*f).into(), (*h).into())).collect();
        let mut base = Base {
            protected: files(&[("t/a.py", "1"), ("t/b.snap", "2"), ("check.sh", "3")]),
            ..Base::default()
        };
        base.leave_out_written(&files(&[
            ("t/a.py", "1"),
            ("t/b.snap", "9"),
            ("t/out/x/1.xml", "5"),
            ("t/log", "6"),
            ("check.sh", "3"),
        ]));
        assert_eq!(base.written, ["t/b.snap", "t/log", "t/out/"]);
        assert_eq!(base.protected.keys().collect::<Vec<_>>(), ["check.sh", "t/a.py"]);
        for (file, written) in [("t/out/2.xml", true), ("t/log", true), ("t/log2", false), ("t/a.py", false)]
        {
            assert_eq!(base.is_written(file), written, "{file}");
        }
    }

    #[test]
    fn end_caused_by_swarm_is_described_by_its_reason_not_its_signal() {
        use crate::model::Exit;
        let ended = |end, exit_code| Iteration {
            end: Some(end),
            reason: "because".into(),
            exit_code: Some(exit_code),
            ..Iteration::default()
        };
        for (end, code, trouble, failed) in [
            (IterationExit::TurnOver, 143, None, false),
            (IterationExit::Done, 143, None, false),
            (IterationExit::Silent, 143, Some("because"), true),
            (IterationExit::Timeout, 143, Some("because"), false),
            (IterationExit::Exit(Exit::Code(3)), 3, Some("the agent ended with exit status 3"), true),
            (IterationExit::Exit(Exit::Code(0)), 0, None, false),
        ] {
            let it = ended(end, code);
            assert_eq!((it.trouble().as_deref(), it.has_failed()), (trouble, failed), "{end:?}");
        }
    }

    #[test]
    fn report_data_of_an_older_release_is_read() {
        let old =
            r#"{"iteration":3,"run":4,"exit_code":0,"signal":null,"ended":"2026-01-15T10:35:00+01:00"}"#;
        let read: Iteration = serde_json::from_str(old).unwrap();
        assert_eq!((read.iteration, read.run, read.exit_code, read.is_complete()), (3, 4, Some(0), false));
    }
}
