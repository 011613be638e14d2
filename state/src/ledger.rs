//! The ledger: what each iteration of a loop came to, and what was there before the first.
//!
//! Written beside an iteration's output, read for the next iteration's contract, the progress file, `swarm
//! report` and `swarm why`. The forms are on disk: fields are only added. Deliberately absent: files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::gates::{CheckResult, Verdict};
use crate::notice::{Counts, IterationExit};

/// What was there before the first iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Base {
    /// Which loop: a name used again starts another.
    pub id: String,
    /// The commit that was checked out; `None` outside of a repository and before its first commit.
    pub head: Option<String>,
    /// The snapshot of the tree as it was; `None` outside of a repository.
    pub commit: Option<String>,
    /// Its tree.
    pub tree: Option<String>,
    /// The checks, as they came out before any agent worked.
    pub checks: Vec<CheckResult>,
    /// Files that no iteration may change, relative to the worker's directory, by the hash of their content.
    pub protected: BTreeMap<String, String>,
    /// What a person should know of a loop that begins so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Base {
    /// The checks that failed already; one that was cut short may still pass.
    pub fn failed(&self) -> Vec<String> {
        self.checks
            .iter()
            .filter(|check| !check.passed && !check.cut)
            .map(|check| check.name.clone())
            .collect()
    }

    /// The protected files that are no longer as they were, in order: changed, removed or new.
    pub fn changed(&self, now: &BTreeMap<String, String>) -> Vec<String> {
        let mut changed: Vec<String> = self
            .protected
            .iter()
            .filter(|(file, hash)| now.get(*file) != Some(*hash))
            .map(|(file, _)| file.clone())
            .collect();
        changed.extend(now.keys().filter(|file| !self.protected.contains_key(*file)).cloned());
        changed.sort();
        changed
    }
}

/// What changed in the tree, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffStat {
    /// Files.
    pub files: u64,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// What one iteration came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Iteration {
    /// Its number, from 1.
    pub iteration: u32,
    /// The run that it was.
    pub run: u64,
    /// When it started: RFC 3339 with offset.
    pub started: Option<String>,
    /// When its agent had ended.
    pub ended: String,
    /// Seconds between the two.
    pub seconds: f64,
    /// How it ended; `None` in a record of an older release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<IterationExit>,
    /// Why it ended, as a phrase; empty in a record of an older release.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The last lines that its agent printed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// The agent's exit status; `None` when a signal ended it or nobody knows.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Tools called; `None` where they cannot be counted.
    pub tool_calls: Option<u64>,
    /// What the gates said; `None` while they have not.
    pub verdict: Option<Verdict>,
    /// The commit that was checked out at its end.
    pub head: Option<String>,
    /// The snapshot of the tree at its end.
    pub commit: Option<String>,
    /// The tree as its checks left it, which is how the next iteration finds it: they may write reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// What it changed.
    pub diff: Option<DiffStat>,
    /// Things that could not be done.
    pub warnings: Vec<String>,
    /// It had no agent, since none could be started: the verdict says why, and nothing of it is anybody's work.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_agent: bool,
}

impl Iteration {
    /// Whether every gate held.
    pub fn is_complete(&self) -> bool {
        self.verdict.as_ref().is_some_and(Verdict::is_complete)
    }

    /// Why it is no success, as a phrase; `None` when its agent did what it was started for.
    pub fn trouble(&self) -> Option<String> {
        match (self.end, self.exit_code, self.signal) {
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

    /// Whether it counts as failed.
    pub fn has_failed(&self) -> bool {
        self.end.map_or(self.no_agent || self.trouble().is_some(), |end| end.counts_as() == Counts::Failure)
    }

    /// What it cost, US dollars.
    pub fn cost(&self) -> Option<f64> {
        self.verdict.as_ref()?.cost.map(|millionths| millionths as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protected_file_may_not_change_go_or_come() {
        let files = |list: &[(&str, &str)]| list.iter().map(|(f, h)| ((*f).into(), (*h).into())).collect();
        let base = Base { protected: files(&[("a", "1"), ("b", "2")]), ..Base::default() };
        assert_eq!(base.changed(&files(&[("a", "1"), ("b", "2")])), Vec::<String>::new());
        assert_eq!(base.changed(&files(&[("b", "3"), ("c", "4")])), ["a", "b", "c"]);
    }

    #[test]
    fn the_end_that_swarm_brought_about_is_told_by_its_reason_and_not_by_its_signal() {
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
    fn a_ledger_of_an_older_release_is_read() {
        let old =
            r#"{"iteration":3,"run":4,"exit_code":0,"signal":null,"ended":"2026-01-15T10:35:00+01:00"}"#;
        let read: Iteration = serde_json::from_str(old).unwrap();
        assert_eq!((read.iteration, read.run, read.exit_code, read.is_complete()), (3, 4, Some(0), false));
    }
}
