//! Builds an iteration's contract from the loop's folder and git.

use swarm_state::contract::{Contract, Failed};
use swarm_state::gates::{CheckResult, Verdict};
use swarm_state::ledger::Base;
use swarm_state::proof::{Layer, Proof};
use swarm_state::words::unique;

use super::protect;
use super::run::LoopRun;
use crate::{checks, git};

impl LoopRun {
    /// The prompt of an iteration: the task byte for byte if the loop has no gates, otherwise the whole contract. If
    /// git cannot make the diff, its message takes the diff's place.
    pub(crate) async fn contract(&self, base: &Base, (iteration, max): (u32, u32), task: Vec<u8>) -> Vec<u8> {
        if self.gates.is_empty() {
            return task;
        }
        let last = self.last_worked(iteration);
        let verdict = last.as_ref().and_then(|last| last.verdict.as_ref());
        let checks: &[CheckResult] = verdict.map_or(&base.checks, |verdict| &verdict.checks);
        let failed = checks.iter().filter(|check| !check.passed);
        let failed = failed.map(|check| Failed { check: &check.name, output: &check.output });
        let failed_apart = verdict.map(failed_apart).unwrap_or_default();
        let apart = failed_apart.iter().map(|(check, output)| Failed { check, output });
        let failed: Vec<Failed<'_>> = failed.chain(apart).collect();
        let remarks = verdict.map(Verdict::other_remarks).unwrap_or_default();
        let to = last.as_ref().and_then(|last| last.commit.as_ref()).or(base.commit.as_ref());
        let diff = match (base.head.as_ref().or(base.commit.as_ref()), to) {
            (Some(from), Some(to)) => {
                Some(git::diff(&self.cwd, &[], from, to).await.unwrap_or_else(|e| e.to_string()))
            }
            _ => None,
        };
        let contract = Contract {
            task: &String::from_utf8_lossy(&task),
            iteration,
            max_iterations: max,
            checks: &self.gates.checks,
            protected: &self.protected(base),
            configured: &configured(base),
            tests: self.gates.protect_tests,
            rooms: &self.gates.rooms,
            promise: self.gates.promise.as_ref(),
            diff: diff.as_deref(),
            failed: &failed,
            failed_at_base: &base.failed(),
            excused: &self.gates.excused(base.failed()),
            remarks: &remarks,
            progress: &self.progress(iteration.saturating_sub(1)),
        };
        contract.text().into_bytes()
    }

    /// The watched files for the agent: each script of a check, and the globs of `--protect` instead of their files.
    fn protected(&self, base: &Base) -> Vec<String> {
        let globs = &self.gates.protect;
        let set = protect::globs(globs).unwrap_or_default();
        base.scripts.iter().filter(|file| !set.is_match(file)).chain(globs).cloned().collect()
    }
}

/// The output of checks that failed in a clean room only, and of a setup that failed. The output of a held-out check is
/// not for the agent; a finding about all held-out checks has the output of the setup, which runs without hidden files.
fn failed_apart(verdict: &Verdict) -> Vec<(String, String)> {
    let is_shown = |proof: &&Proof| match proof.layer {
        Layer::CleanRoom => proof.fails(),
        Layer::HeldOut => proof.fails() && proof.check.is_none(),
        _ => false,
    };
    let failed = verdict.proofs.iter().filter(is_shown);
    let output = |proof: &Proof| {
        let check = proof.check.as_deref().unwrap_or("setup");
        Some((format!("{check} (in a fresh checkout)"), checks::tail(proof.output.as_ref()?)))
    };
    failed.filter_map(output).collect()
}

/// The names of the runners whose configuration is watched, each once.
fn configured(base: &Base) -> Vec<String> {
    if base.protected.is_empty() {
        return vec![];
    }
    unique(base.runners.iter().map(|using| using.runner.name.clone()))
}
