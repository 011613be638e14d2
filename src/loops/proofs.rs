//! Tests the gates that need a room, once all other gates hold: clean checks, the red replay and the held-out checks.
//!
//! Each gate has a room of its own, since a check may leave caches that hide a change from the next one. The first
//! gate that fails is the last one tested.

use std::sync::atomic::AtomicBool;

use swarm_state::gates::{CheckResult, TIME_OVER, Verdict};
use swarm_state::ledger::{Base, Iteration};
use swarm_state::notice::named;
use swarm_state::proof::{Layer, Proof, ProofOutcome};
use tokio::time::Instant;

use super::gates::FINAL_CHECK_TIME;
use super::hidden::hidden_fault;
use super::protect;
use super::room::Room;
use super::room_checks::{NotRun, RoomTrial, stem};
use super::run::{Finished, LoopRun, MAX_NAMED_FILES, long_over};
use super::test_replay::TestReplay;
use super::verdict::set;
use crate::checks::OnCheckStep;
use crate::checks::program::GateCommand;

impl LoopRun {
    /// Tests these gates, and adds their results to the verdict. When `hurry` is set, because the worker is being
    /// killed, the checks are canceled.
    pub(super) async fn try_rooms(
        &self,
        (base, finished): (&Base, &Finished<'_>),
        it: &mut Iteration,
        verdict: &mut Verdict,
        on_step: OnCheckStep<'_>,
        hurry: &AtomicBool,
    ) {
        if !verdict.is_complete() {
            return;
        }
        let tests = self.test_replay(base, verdict, it.commit.as_deref()).await;
        if self.gates.rooms.is_empty() && tests.is_none() {
            return;
        }
        let Some(snapshot) = it.commit.clone() else {
            verdict.trouble = Some("there is no snapshot to check out".into());
            return;
        };
        let start = Instant::now();
        let trial = RoomTrial {
            loop_run: self,
            base,
            iteration: it.iteration,
            snapshot,
            head: it.head.clone(),
            until: finished.until.map(|until| until.max(start + FINAL_CHECK_TIME)),
            on_step,
        };
        let end = tokio::select! {
            () = trial.run(tests, verdict, &mut it.warnings) => None,
            () = long_over(finished.until) => Some("the checks outside of the tree took longer than the loop's time"),
            () = set(hurry) => Some("it was killed"),
        };
        verdict.trouble = end.map(str::to_owned);
        it.check_seconds = it.check_seconds.map(|seconds| seconds + start.elapsed().as_secs_f64());
    }

    /// How often the held-out checks failed before this iteration.
    fn failed_tries(&self, iteration: u32) -> u32 {
        let verdicts = (1..iteration).filter_map(|n| self.read_iteration(n)?.verdict);
        let has_failed = |verdict: &Verdict| verdict.proofs.iter().any(is_failed_try);
        u32::try_from(verdicts.filter(has_failed).count()).unwrap_or(u32::MAX)
    }
}

/// Whether a held-out check ran to its end and failed. If it could not run, the finding is about all of them.
fn is_failed_try(proof: &Proof) -> bool {
    proof.layer == Layer::HeldOut && proof.fails() && proof.check.is_some()
}

impl RoomTrial<'_> {
    async fn run(&self, tests: Option<TestReplay>, verdict: &mut Verdict, warnings: &mut Vec<String>) {
        let gates = &self.loop_run.gates;
        if let Some((layer, why)) = self.obstacle().await {
            // The agent reads the finding, and not the reason.
            verdict.proofs.push(Proof::of_all(layer, ProofOutcome::Fails, "a check could not run"));
            warnings.push(why.clone());
            verdict.cannot_check = Some(why.into());
            return;
        }
        if let Some(tests) = tests {
            verdict.proofs.extend(self.replay_tests(&tests).await);
            if !verdict.is_complete() {
                return;
            }
        }
        let required: Vec<String> =
            gates.checks.iter().filter(|check| !verdict.excused.contains(check)).cloned().collect();
        let clean = if gates.rooms.clean_check || !gates.rooms.fix.is_empty() {
            self.clean(&required).await
        } else {
            vec![]
        };
        let is_clean = !clean.iter().any(Proof::fails);
        if gates.rooms.clean_check {
            verdict.proofs.extend(clean);
        }
        if !gates.rooms.fix.is_empty() && verdict.is_complete() {
            let replayed = if is_clean {
                self.replay(&required).await
            } else {
                let found =
                    "the checks fail in a fresh checkout, also with the fix; add --setup or --clean-check";
                Proof::of_all(Layer::RedReplay, ProofOutcome::Unproven, found)
            };
            verdict.proofs.push(replayed);
        }
        if !gates.rooms.final_checks.is_empty() && verdict.is_complete() {
            let held_out = self.held_out(warnings).await;
            let has_failed = held_out.iter().any(is_failed_try);
            verdict.proofs.extend(held_out);
            let failed_before = || self.loop_run.failed_tries(self.iteration);
            verdict.tries_spent = has_failed && gates.rooms.next_try(failed_before()).1;
        }
    }

    /// Why the commands or the hidden files cannot be used, if the agent cannot fix it.
    async fn obstacle(&self) -> Option<(Layer, String)> {
        let loop_run = self.loop_run.clone();
        let find = move || {
            let gates = &loop_run.gates.rooms;
            let hidden = gates.hidden.as_deref();
            let fault = |what, hidden, command: &String| {
                let (cwd, env) = (&loop_run.cwd, &loop_run.env);
                let place = GateCommand { what, cwd, env, hidden, runs_apart: true, tree_may_differ: true };
                Some(place.check(command).err()?.message)
            };
            let layer = if gates.final_checks.is_empty() { Layer::CleanRoom } else { Layer::HeldOut };
            let directory = || {
                let dir = hidden?;
                let why = hidden_fault(dir)?;
                Some(format!("the hidden directory '{}' {why}", dir.display()))
            };
            let setup = gates.setup.iter().find_map(|setup| fault("setup command", None, setup));
            let found = setup.or_else(directory).or_else(|| {
                gates.final_checks.iter().find_map(|check| fault("held-out check", hidden, check))
            });
            found.map(|why| (layer, why))
        };
        tokio::task::spawn_blocking(find).await.ok().flatten()
    }

    /// Runs the checks in a fresh checkout.
    async fn clean(&self, required: &[String]) -> Vec<Proof> {
        let layer = Layer::CleanRoom;
        let step = Some("clean_room");
        let ran = match self.checked((layer, step), required, async |_: &mut Room| Ok(())).await {
            Ok(ran) => ran,
            Err(not_run) => {
                let found = format!("the clean room could not be made: {}", not_run.why);
                let proof = Proof::of_all(layer, ProofOutcome::Fails, found);
                return vec![Proof { output: not_run.output, ..proof }];
            }
        };
        if !ran.changed.is_empty() {
            let found = format!(
                "protected files were changed while the checks ran in a fresh checkout: {}",
                named(&ran.changed, MAX_NAMED_FILES)
            );
            return vec![Proof::of_all(layer, ProofOutcome::Fails, found)];
        }
        let proof = |(index, check): (usize, &CheckResult)| {
            let (outcome, found) = match (check.passed, &ran.leak) {
                (true, None) => (ProofOutcome::Holds, "it passes in a fresh checkout".to_owned()),
                (true, Some(leak)) => (ProofOutcome::Unproven, leaks(leak)),
                (false, _) if check.cut => (ProofOutcome::Fails, not_ended("it")),
                (false, _) => {
                    let found = "it fails in a fresh checkout, although it passes in the worker's directory";
                    (ProofOutcome::Fails, found.to_owned())
                }
            };
            Proof::of_check(layer, &check.name, outcome, found)
                .with_output(self.output_file(stem(layer), index))
        };
        ran.checks.iter().enumerate().map(proof).collect()
    }

    /// Runs the checks that failed before the first iteration with the old files: they must fail again.
    async fn replay(&self, required: &[String]) -> Proof {
        let layer = Layer::RedReplay;
        let proof = |outcome, found: &str| Proof::of_all(layer, outcome, found);
        let failed = self.base.failed();
        let red: Vec<String> = required.iter().filter(|check| failed.contains(check)).cloned().collect();
        if red.is_empty() {
            return proof(ProofOutcome::Unproven, "no check failed before the first iteration");
        }
        let Some(old) = &self.base.commit else {
            return proof(ProofOutcome::Unproven, "there is no snapshot from before the first iteration");
        };
        let fix = match protect::globs(&self.loop_run.gates.rooms.fix) {
            Ok(fix) => fix,
            Err(error) => return proof(ProofOutcome::Fails, &error.message),
        };
        let mut replaced = 0;
        let put_back = async |room: &mut Room| {
            replaced = room.put_back((old, &self.snapshot), |path| fix.is_match(path)).await?;
            Ok(())
        };
        let ran = match self.checked((layer, Some("red_replay")), &red, put_back).await {
            Ok(ran) => ran,
            Err(NotRun { why, output: Some(_) }) => {
                return proof(ProofOutcome::Holds, &format!("without the fix, {why}"));
            }
            Err(not_run) => {
                let found = format!("the room for the replay could not be made: {}", not_run.why);
                return proof(ProofOutcome::Fails, &found);
            }
        };
        let fails = ran.checks.iter().any(|check| !check.passed && !check.cut);
        match &ran.leak {
            _ if fails => proof(ProofOutcome::Holds, "without the fix, the checks fail"),
            _ if ran.checks.iter().any(|check| check.cut) => {
                proof(ProofOutcome::Fails, &not_ended("the replay without the fix"))
            }
            Some(leak) => proof(ProofOutcome::Unproven, &leaks(leak)),
            None if replaced == 0 => {
                proof(ProofOutcome::Fails, "no file of the fix was changed, but the checks pass now")
            }
            None => proof(
                ProofOutcome::Fails,
                "the checks also pass with the old files of the fix, so another change made them pass",
            ),
        }
    }

    /// Runs the held-out checks with the hidden files. A finding names neither, since the agent reads it.
    async fn held_out(&self, warnings: &mut Vec<String>) -> Vec<Proof> {
        let layer = Layer::HeldOut;
        let gates = &self.loop_run.gates.rooms;
        let lay = async |room: &mut Room| match &gates.hidden {
            Some(hidden) => room.lay_over(hidden).await,
            None => Ok(()),
        };
        let ran = match self.checked((layer, Some("held_out")), &gates.final_checks, lay).await {
            Ok(ran) => ran,
            Err(not_run) => {
                warnings.push(format!("the held-out check could not run: {}", not_run.why));
                // The agent may read of the setup, which runs without the hidden files.
                let setup = not_run.output.as_ref().map(|_| format!(": {}", not_run.why)).unwrap_or_default();
                let found = format!("the held-out check could not run{setup}");
                let proof = Proof::of_all(layer, ProofOutcome::Fails, found);
                return vec![Proof { output: not_run.output, ..proof }];
            }
        };
        if ran.checks.iter().any(|check| check.cut) {
            return vec![Proof::of_all(layer, ProofOutcome::Fails, not_ended("the held-out check"))];
        }
        if !ran.changed.is_empty() {
            let files = named(&ran.changed, MAX_NAMED_FILES);
            warnings.push(format!("files of the held-out check were changed while it ran: {files}"));
        }
        let (number, _) = gates.next_try(self.loop_run.failed_tries(self.iteration));
        let failed = format!("the held-out check failed (try {number} of {})", gates.final_tries);
        let proof = |(index, check): (usize, &CheckResult)| {
            let (outcome, found) = if check.passed && ran.changed.is_empty() {
                (ProofOutcome::Holds, "the held-out check passes")
            } else {
                (ProofOutcome::Fails, failed.as_str())
            };
            Proof::of_check(layer, &check.name, outcome, found)
                .with_output(self.output_file(stem(layer), index))
        };
        ran.checks.iter().enumerate().map(proof).collect()
    }
}

fn not_ended(what: &str) -> String {
    format!("{what} did not end: {TIME_OVER}")
}

fn leaks(folder: &str) -> String {
    format!(
        "'{folder}' refers to the worker's directory, so a fresh checkout was not tested alone; add --setup"
    )
}
