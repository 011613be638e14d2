//! Tests the gates of an iteration: the promise, the watched files and the checks.
//!
//! [`super::verdict`] calls this with the parts that it has collected. [`Claim::of`] decides whether a promise counts.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use swarm_state::gates::Verdict;
use swarm_state::ignored::{CACHE_DIRS, is_generated};
use swarm_state::ledger::Base;
use swarm_state::notice::counted;
use swarm_state::pattern::Pattern;
use swarm_state::promise::{Claim, Promise, Source, Work};
use swarm_state::proof::{Layer, Proof, ProofOutcome};
use swarm_state::screen::ScreenReader;
use swarm_state::tasks::gate::TaskGate;
use swarm_state::transcript::Account;
use tokio::time::Instant;
use walkdir::{DirEntry, WalkDir};

use super::run::{CONTRACT_FILE, Finished, LoopRun, long_over};
use super::task_list::Reviewed;
use super::{account, protect};
use crate::checks::OnCheckStep;
use crate::error::Error;
use crate::git;

/// How long the checks may run if the loop's time ended together with the agent. Finished work counts if seen quickly.
pub(super) const FINAL_CHECK_TIME: Duration = Duration::from_secs(5);

pub(super) struct Before {
    /// The checks that failed and must pass.
    pub(super) fails: Vec<String>,
    pub(super) tree: Option<String>,
    pub(super) head: Option<String>,
    pub(super) commit: Option<String>,
    /// [`Verdict::worked`] of the iteration before.
    pub(super) worked: bool,
}

impl LoopRun {
    /// Tests the gates. Returns the seconds that the checks took, also with their canaries.
    #[expect(clippy::too_many_arguments, reason = "the parts of a verdict; it has one caller")]
    pub(super) async fn try_gates(
        &self,
        base: &Base,
        (account, source): (&Account, Source),
        finished: &Finished<'_>,
        before: &Before,
        head: Option<String>,
        verdict: &mut Verdict,
        on_step: OnCheckStep<'_>,
    ) -> Option<f64> {
        let has_changed = verdict
            .tree
            .as_ref()
            .is_some_and(|tree| Some(tree) != before.tree.as_ref() || head != before.head);
        verdict.worked = before.worked || has_changed || account.tool_calls.is_some_and(|calls| calls > 0);
        if let Some(promise) = &self.gates.promise {
            let is_lost = source != Source::Transcript && account::is_lost(&self.env, finished);
            verdict.transcript_lost = is_lost && !account::was_cut_off(finished);
            let printed = !is_lost && self.is_printed(promise, (account, source), finished);
            verdict.promise_seen = printed.then_some(source);
            if printed
                && !verdict.worked
                && let Some(started) = finished.started
            {
                verdict.worked = has_changed_since(&self.cwd, started.into()).await;
            }
            verdict.promise = Some(self.claim(printed, account, base, verdict));
        }
        verdict.excused = self.gates.excused(base.failed());
        if self.gates.is_empty() {
            return None;
        }
        verdict.proofs.extend(self.end_survivors().await);
        if let Some(gate) = self.gates.tasks.as_ref().filter(|_| finished.never_started.is_none()) {
            let promised = self.is_printed(&gate.promise, (account, source), finished);
            let limits = (finished.iteration, finished.until);
            let reviewed = self.reviewed(gate, base, before, verdict).await;
            self.evaluate_tasks(gate, limits, (promised, reviewed), verdict, on_step).await;
        }
        // Before the checks, because they may write into the tree.
        verdict.changed = self.changed(base, finished, verdict).await;
        verdict.proofs.extend(self.prove_programs(base, finished, verdict).await);
        if verdict.outage.is_some() {
            // There is no work to check.
            verdict.trouble = Some("the agent could not work".into());
            return None;
        }
        if finished.never_started.is_some() {
            return None;
        }
        let until = finished.until.map(|until| until.max(Instant::now() + FINAL_CHECK_TIME));
        let start = Instant::now();
        let reports = self.report_stamps();
        match self.run_checks(base, finished.iteration, on_step, until).await {
            Ok(checks) => verdict.checks = checks,
            Err(error) => verdict.trouble = Some(error.to_string()),
        }
        verdict.proofs.extend(self.end_late_survivors().await);
        let failed = base.failed();
        verdict.worked |= verdict.checks.iter().any(|check| check.passed && failed.contains(&check.name));
        if let Some(claim) = verdict.promise {
            verdict.promise = Some(self.claim(claim.is_printed(), account, base, verdict));
        }
        // The code under test, or another check, may have replaced a file before it was read.
        let mut changed = self.changed(base, finished, verdict).await;
        changed.retain(|file| !verdict.changed.contains(file));
        verdict.changed_in_checks = changed;
        self.evaluate_tests(base, finished.iteration, &reports, verdict);
        self.try_canaries(base, (finished.iteration, until), verdict, on_step).await;
        (!self.gates.checks.is_empty()).then(|| start.elapsed().as_secs_f64())
    }

    /// The files outside of the task list's directory that the iteration changed or removed.
    async fn reviewed(&self, gate: &TaskGate, base: &Base, before: &Before, verdict: &Verdict) -> Reviewed {
        let from = before.commit.as_ref().or(base.commit.as_ref());
        let (from, to) = match (from, &verdict.tree) {
            (Some(from), Some(to)) => (from, to),
            (Some(_), None) => return Reviewed::Unseen,
            (None, _) => return Reviewed::Changed(vec![]),
        };
        let mut files = git::changed_between(&self.cwd, from, to).await.unwrap_or_default();
        files.retain(|file| !file.starts_with(&format!("{}/", gate.dir)));
        Reviewed::Changed(files)
    }

    /// The watched files that changed. If they cannot be read in the loop's time, the gates cannot hold.
    async fn changed(&self, base: &Base, finished: &Finished<'_>, verdict: &mut Verdict) -> Vec<String> {
        let read = tokio::select! {
            read = protect::hashes(self, base) => read,
            () = long_over(finished.until) => {
                Err(Error::system("cannot read the watched files", "it took longer than the loop's time"))
            }
        };
        match read {
            Ok(now) => base.changed(&now),
            Err(error) => {
                verdict.trouble = Some(error.to_string());
                vec![]
            }
        }
    }

    /// The results for the programs of the checks, and for what they load. A changed program is a changed watched file.
    async fn prove_programs(&self, base: &Base, finished: &Finished<'_>, verdict: &Verdict) -> Vec<Proof> {
        if self.gates.allow_changed_checks || verdict.trouble.is_some() {
            return vec![];
        }
        if self.is_in_docker() {
            let found = "the programs in a Docker sandbox cannot be compared";
            return vec![Proof::of_all(Layer::Programs, ProofOutcome::Unproven, found)];
        }
        let count = base.programs.len() as u64;
        let is_same = count > 0 && !verdict.changed.iter().any(|file| protect::is_program(file));
        let same = is_same.then(|| {
            let found = format!("{} of the checks unchanged since the baseline", counted(count, "program"));
            Proof::of_all(Layer::Programs, ProofOutcome::Holds, found)
        });
        let changed = tokio::select! {
            changed = protect::changed_dependencies(self, base) => changed.unwrap_or_default(),
            () = long_over(finished.until) => vec![],
        };
        let changed = (!changed.is_empty()).then(|| {
            let found = format!("the installed dependencies changed: {}", changed.join(", "));
            Proof::of_all(Layer::Programs, ProofOutcome::Unproven, found)
        });
        same.into_iter().chain(changed).collect()
    }

    /// The promise as a gate. If the loop started in a repository that swarm can no longer read, there is no evidence
    /// of work left.
    fn claim(&self, printed: bool, account: &Account, base: &Base, verdict: &Verdict) -> Claim {
        let is_visible = verdict.worked || verdict.tree.is_some() || base.tree.is_some();
        let work =
            Work { tool_calls: account.tool_calls, tree_changed: is_visible.then_some(verdict.worked) };
        Claim::of(printed, work, self.gates.min_tool_calls, self.gates.on_promise_no_work)
    }

    /// Whether the agent printed a promise.
    fn is_printed(
        &self,
        promise: &Promise,
        (account, source): (&Account, Source),
        finished: &Finished<'_>,
    ) -> bool {
        match source {
            Source::Screen => self.is_promised_on_screen(promise, finished),
            Source::Transcript | Source::Result => promise.is_printed(account),
        }
    }

    /// The weaker source: the tag alone on a line of new output, without the echo of the prompt.
    fn is_promised_on_screen(&self, promise: &Promise, finished: &Finished<'_>) -> bool {
        let prompt = std::fs::read(self.iteration_dir(finished.iteration).join(CONTRACT_FILE));
        let prompt = prompt.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let pattern = Pattern::compile(&promise.pattern()).ok();
        ScreenReader::new(&self.profile, pattern, Some(prompt))
            .is_ok_and(|reader| reader.done_in(finished.output))
    }
}

/// Whether a file below `root` changed since then, also in a nested repository or ignored by git: a snapshot does not
/// contain these. Reads the whole tree. Caches do not count, and neither do hidden files, where agents keep their data.
async fn has_changed_since(root: &Path, since: SystemTime) -> bool {
    let root: PathBuf = root.to_owned();
    let walk = tokio::task::spawn_blocking(move || is_newer_in(&root, since));
    walk.await.unwrap_or(false)
}

fn is_newer_in(root: &Path, since: SystemTime) -> bool {
    let may_enter = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !name.starts_with('.') && !CACHE_DIRS.contains(&&*name)
    };
    WalkDir::new(root).into_iter().filter_entry(may_enter).flatten().any(|entry| {
        let is_newer = || entry.metadata().ok()?.modified().ok().map(|at| at >= since);
        entry.file_type().is_file()
            && !is_generated(&entry.file_name().to_string_lossy())
            && is_newer().unwrap_or(false)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_changed_work_files_count() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let start = SystemTime::now() - Duration::from_secs(60);
        let later = SystemTime::now() + Duration::from_secs(60);
        for (file, counts) in [
            (".agent/history", false),
            (".git/index", false),
            ("target/x", false),
            ("src/__pycache__/a.pyc", false),
            ("data/app.db", true),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
            assert_eq!(is_newer_in(root, start), counts, "{file}");
        }
        assert!(!is_newer_in(root, later));
    }
}
