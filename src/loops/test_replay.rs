//! Runs checks whose tests were changed in a room with the old versions of all other files.
//! [`swarm_state::replay`] chooses the checks and files, and evaluates the result.
//!
//! Runs only if existing test files changed and the check failed because of tests before the first iteration. A second
//! run, with the old tests too, shows whether the room is a fair copy of the tree before the first iteration.

use std::collections::BTreeSet;
use std::path::Path;

use globset::GlobMatcher;
use swarm_state::gates::{CheckResult, Verdict};
use swarm_state::ledger::Base;
use swarm_state::proof::{Layer, Proof, ProofOutcome};
use swarm_state::replay::{is_test_file, prove, red_checks};

use super::protect;
use super::room::Room;
use super::room_checks::RoomTrial;
use super::run::LoopRun;
use crate::checks::Step;
use crate::git;

const REPLAY_LAYER: Layer = Layer::RedReplay;

/// The checks to run, and their test files.
pub(super) struct TestReplay {
    red: Vec<String>,
    /// The test files that existed and were changed or removed.
    changed: Vec<String>,
    globs: Vec<GlobMatcher>,
}

impl TestReplay {
    /// Whether a file is one of the tests as they are now. Also a file that was moved elsewhere is.
    fn is_test(&self, path: &Path) -> bool {
        let name = path.file_name();
        let moved: BTreeSet<_> = self.changed.iter().map(|file| Path::new(file).file_name()).collect();
        is_test(&self.globs, &path.to_string_lossy()) || moved.contains(&name)
    }
}

fn is_test(globs: &[GlobMatcher], path: &str) -> bool {
    is_test_file(path) || globs.iter().any(|glob| glob.is_match(path))
}

impl LoopRun {
    /// The replay that an iteration requires. `None` if no existing test file was changed without approval, if changes
    /// are allowed, or if `--fix` already tests this.
    pub(super) async fn test_replay(
        &self,
        base: &Base,
        verdict: &Verdict,
        snapshot: Option<&str>,
    ) -> Option<TestReplay> {
        let from = base.approved.as_ref().or(base.commit.as_ref())?;
        let required: Vec<String> =
            self.gates.checks.iter().filter(|check| !verdict.excused.contains(check)).cloned().collect();
        let red = red_checks(&base.checks, &required);
        if red.is_empty() || self.gates.allow_changed_checks || !self.gates.rooms.fix.is_empty() {
            return None;
        }
        let globs = protect::tests(base);
        let mut changed = git::changed_between(&self.cwd, from, snapshot?).await.unwrap_or_default();
        changed.retain(|file| is_test(&globs, file));
        (!changed.is_empty()).then_some(TestReplay { red, changed, globs })
    }
}

impl RoomTrial<'_> {
    /// Runs the checks with the changed tests and the old versions of all other files.
    pub(super) async fn replay_tests(&self, replay: &TestReplay) -> Vec<Proof> {
        let replayed = match self.with_old(&replay.red, |path| !replay.is_test(path)).await {
            Ok(replayed) => replayed,
            Err(why) => return vec![Proof::of_all(REPLAY_LAYER, ProofOutcome::Unproven, why)],
        };
        let green: Vec<String> =
            replayed.iter().filter(|check| check.passed).map(|check| check.name.clone()).collect();
        let controls = match green.as_slice() {
            [] => vec![],
            green => self.with_old(green, |_| true).await.unwrap_or_default(),
        };
        (self.on_step)(Step::Reached("test_replay"));
        let control = |name: &str| controls.iter().find(|control| control.name == name);
        replayed.iter().map(|check| prove(check, control(&check.name), &replay.changed)).collect()
    }

    /// Runs checks in a room with the old versions of some files. An error is a phrase.
    async fn with_old(
        &self,
        checks: &[String],
        is_old: impl Fn(&Path) -> bool,
    ) -> Result<Vec<CheckResult>, String> {
        let old = self.base.commit.as_deref().unwrap_or_default();
        let put_back = async |room: &mut Room| {
            room.put_back((old, &self.snapshot), is_old).await?;
            Ok(())
        };
        let mut ran = self.checked((REPLAY_LAYER, None), checks, put_back).await.map_err(|not_run| {
            format!("the changed tests did not run with the old files: {}", not_run.why)
        })?;
        // The first build in a fresh checkout can take longer than a check may, which proves nothing.
        let limit = self.loop_run.gates.check_timeout.max(1) as f64;
        ran.checks.iter_mut().for_each(|check| check.cut |= !check.passed && check.seconds >= limit);
        Ok(ran.checks)
    }
}
