//! Runs checks with a test that must fail. [`swarm_state::canary`] chooses its place and evaluates the result.
//!
//! The test is in the agent's tree only while its check runs; see [`planted`].

use std::path::Path;

use globset::{Glob, GlobSetBuilder};
use swarm_state::canary::{self, Canary, CanaryEffect, CanaryRun};
use swarm_state::gates::{CheckResult, Gates, Verdict};
use swarm_state::ignored::{CACHE_DIRS, CACHE_MARKERS};
use swarm_state::inventory::count_all;
use swarm_state::ledger::Base;
use swarm_state::proof::{Layer, Proof, ProofOutcome};
use swarm_state::runners::RunnerUse;
use tokio::time::Instant;
use walkdir::{DirEntry, WalkDir};

use super::gates::FINAL_CHECK_TIME;
use super::inventory;
use super::run::LoopRun;
use crate::checks::{CheckPlan, OnCheckStep, Step};
use crate::error::{Error, Result};

mod planted;
mod traces;

use planted::{Planted, fresh_token};
pub(crate) use planted::{undo as undo_canary, undo_all as undo_canaries};

/// A name that occurs nowhere else. Fails when the system has no random numbers.
pub(super) fn random_name() -> Result<String> {
    Ok(format!("swarm-{}", fresh_token()?))
}

/// The beginning of the output file of a running canary.
const STEM: &str = "canary-run";

struct CanaryPlan<'a> {
    uses: &'a [RunnerUse],
    iteration: u32,
    until: Option<Instant>,
    on_step: OnCheckStep<'a>,
}

impl LoopRun {
    /// Finds the canary of each check for a new baseline. Fails when a check cannot be run or the
    /// user's canary cannot be written.
    pub(super) async fn begin_canaries(
        &self,
        base: &mut Base,
        on_step: OnCheckStep<'_>,
        until: Option<Instant>,
    ) -> Result<()> {
        let plan = CanaryPlan { uses: &base.runners, iteration: 0, until, on_step };
        let mut canaries = vec![];
        for check in base.checks.iter().filter(|check| !check.cut) {
            let (mut found, mut ignored) = (vec![], None);
            for (used, canary) in canary::candidates(&self.gates, &check.name, &base.runners) {
                if used.is_none() && !found.is_empty() {
                    break;
                }
                let number = canaries.len() + found.len() + 1;
                let canary = self.try_at_base(used.as_ref(), canary, check, number, &plan).await?;
                match canary.effect {
                    CanaryEffect::Ignored(_) => ignored = ignored.or(Some(canary)),
                    CanaryEffect::Applies | CanaryEffect::Undecided => found.push(canary),
                }
            }
            if found.is_empty() {
                found.extend(ignored);
            }
            canaries.extend(found);
        }
        base.canaries = canaries;
        Ok(())
    }

    /// Tries the places for a canary, until it applies in one.
    async fn try_at_base(
        &self,
        used: Option<&RunnerUse>,
        mut canary: Canary,
        check: &CheckResult,
        number: usize,
        plan: &CanaryPlan<'_>,
    ) -> Result<Canary> {
        if let Some(used) = used {
            canary.files = self.places(used);
        }
        let files = canary.files.clone();
        for (at, file) in files.iter().enumerate() {
            let ran = match self.run_canary(&canary, file, number, plan).await {
                Ok(ran) => ran,
                Err(error) if used.is_some() => {
                    canary.effect = CanaryEffect::Ignored(error.message);
                    return Ok(canary);
                }
                Err(error) => {
                    return Err(error.hint("choose another file with --canary PATH=TEXT, or omit --canary"));
                }
            };
            if let Some(effect) = canary::at_base(used, check, &ran) {
                canary.effect = effect;
                canary.files.rotate_left(at);
                return Ok(canary);
            }
        }
        canary.effect = CanaryEffect::Ignored(canary::ignored(&canary.runner, &files));
        Ok(canary)
    }

    /// The places for a runner's canary in the tree as it is now.
    fn places(&self, used: &RunnerUse) -> Vec<String> {
        let Some(template) = &used.runner.canary else { return vec![] };
        let is_dir = |dir: &str| self.cwd.join(dir).is_dir();
        let is_file = |file: &str| self.cwd.join(file).is_file();
        let tests = test_files(&self.cwd, &used.dir, &used.runner.tests);
        let dirs = canary::placements(used, template, &tests, &is_dir, &is_file);
        dirs.iter().map(|dir| format!("{dir}{}", template.file)).collect()
    }

    /// Proves that each required check can fail. Does nothing unless all gates hold.
    pub(super) async fn try_canaries(
        &self,
        base: &Base,
        (iteration, until): (u32, Option<Instant>),
        verdict: &mut Verdict,
        on_step: OnCheckStep<'_>,
    ) {
        if !verdict.is_complete() {
            return;
        }
        let until = until.map(|until| until.max(Instant::now() + FINAL_CHECK_TIME));
        let plan = CanaryPlan { uses: &base.runners, iteration, until, on_step };
        let required = |canary: &&Canary| !verdict.excused.contains(&canary.check);
        let mut proofs = vec![];
        for (at, canary) in base.canaries.iter().filter(required).enumerate() {
            match self.try_canary(canary, at + 1, &plan).await {
                Ok(proof) => proofs.push(proof),
                Err(error) => verdict.trouble = Some(error.to_string()),
            }
        }
        verdict.proofs.extend(proofs);
    }

    /// Runs a check with its canary, in another place too if it stays green: the agent may have moved the tests.
    async fn try_canary(&self, canary: &Canary, number: usize, plan: &CanaryPlan<'_>) -> Result<Proof> {
        if let CanaryEffect::Ignored(why) = &canary.effect {
            return Ok(Proof::of_check(Layer::Canary, &canary.check, ProofOutcome::Unproven, why));
        }
        let mut tried: Vec<String> = vec![];
        let mut next = canary.files.first().cloned();
        let mut ran = None;
        while let Some(file) = next.take_if(|_| tried.len() < canary::MAX_PLACEMENTS) {
            let run = match self.run_canary(canary, &file, number, plan).await {
                Ok(run) => ran.insert(run),
                // The first place decides if the canary cannot be in another one.
                Err(_) if ran.is_some() => break,
                Err(error) => return Err(error),
            };
            if !run.result.passed {
                break;
            }
            tried.push(file);
            let same = |used: &&RunnerUse| used.check == canary.check && used.runner.name == canary.runner;
            let now = plan.uses.iter().find(same).map(|used| self.places(used)).unwrap_or_default();
            next = now.into_iter().chain(canary.files.iter().cloned()).find(|file| !tried.contains(file));
        }
        let ran = ran.ok_or_else(|| Error::system("a canary has no place", &canary.check))?;
        Ok(canary::prove(canary, &ran))
    }

    async fn run_canary(
        &self,
        canary: &Canary,
        file: &str,
        number: usize,
        plan: &CanaryPlan<'_>,
    ) -> Result<CanaryRun> {
        let token = fresh_token()?;
        let planted = Planted::plant(self, canary, file, &token, plan.on_step)?;
        let folder = self.make_iteration_dir(plan.iteration)?;
        let label = if canary.runner.is_empty() { &canary.check } else { &canary.runner };
        let label = format!("canary: {label}");
        // Python would keep a compiled copy of the test.
        let mut env = (*self.env).clone();
        env.insert("PYTHONDONTWRITEBYTECODE".into(), "1".into());
        let on_step = |step: Step<'_>| {
            if let Step::Started(_) = step {
                (plan.on_step)(Step::Started(&label));
            }
        };
        let command = std::slice::from_ref(&canary.check);
        let checks = self.check_plan(command, &folder, plan.until, &on_step);
        let checks = CheckPlan { env: &env, stem: STEM, jobs: 1, ..checks };
        let limit = checks.limit;
        let result = checks.run().await?.pop().ok_or_else(|| Error::system("no result", &canary.check))?;
        (plan.on_step)(Step::Reached("canary_run"));
        planted.remove(plan.on_step)?;
        let output = folder.join(format!("canary-{number}.txt"));
        // The file is missing if the check could not start in the loop's time.
        let _ = std::fs::rename(folder.join(format!("{STEM}-1.txt")), &output);
        let (text, is_shortened) = inventory::output(&output);
        let shown = CheckResult { name: label, passed: !result.passed, ..result.clone() };
        (plan.on_step)(Step::Ended(&shown));
        Ok(CanaryRun {
            has_token: text.contains(&token),
            tests: count_all(plan.uses, &canary.check, &text, is_shortened),
            timed_out: !result.passed && !result.cut && result.seconds >= limit.as_secs_f64(),
            result,
        })
    }
}

/// The files in a directory below `cwd` that match, relative to `cwd`. Hidden directories and caches are left out.
fn test_files(cwd: &Path, dir: &str, texts: &[String]) -> Vec<String> {
    let mut set = GlobSetBuilder::new();
    for glob in texts.iter().filter_map(|text| Glob::new(text).ok()) {
        set.add(glob);
    }
    let (Ok(set), root) = (set.build(), cwd.join(dir)) else { return vec![] };
    let relative = |entry: &DirEntry| Some(entry.path().strip_prefix(&root).ok()?.to_str()?.to_owned());
    let is_source = |entry: &DirEntry| {
        let is_hidden = entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
        let marks = CACHE_MARKERS.iter().any(|(file, _)| entry.path().join(file).exists());
        !is_hidden
            && !(entry.file_type().is_dir()
                && (marks || CACHE_DIRS.map(Some).contains(&entry.file_name().to_str())))
    };
    let walk = WalkDir::new(&root).into_iter().filter_entry(is_source).flatten();
    let files = walk.filter(|entry| entry.file_type().is_file()).filter_map(|entry| relative(&entry));
    files.filter(|path| set.is_match(path)).map(|path| format!("{dir}{path}")).collect()
}

/// Refuses a canary of the user's that cannot be written in this directory. Fails when the file exists.
pub(crate) fn check(cwd: &Path, gates: &Gates) -> Result<()> {
    let taken = gates.tests.canaries.iter().find(|own| cwd.join(&own.path).symlink_metadata().is_ok());
    taken.map_or(Ok(()), |own| {
        let message = format!("--canary: the file '{}' exists already", own.path);
        Err(Error::usage(message).hint("name a new file: swarm adds and removes it"))
    })
}
