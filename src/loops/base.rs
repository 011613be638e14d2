//! The baseline: checks, hashes and tree before any agent worked.
//!
//! It is taken once for each loop. If the daemon dies meanwhile, the next one takes it again.

use std::collections::BTreeMap;
use std::path::Path;

use swarm_state::gates::CheckResult;
use swarm_state::ledger::Base;
use swarm_state::notice::named;
use swarm_state::screen::printable;
use swarm_state::tasks::marker::MARKER_FILE;
use tokio::time::Instant;

use super::canary::{random_name, undo_canary};
use super::run::{BASELINE_FILE, LoopRun};
use super::{progress, protect};
use crate::checks::{CheckPlan, OnCheckStep};
use crate::error::{Error, Result};
use crate::git;

/// How many names a message lists.
const MAX_NAMED_ENTRIES: usize = 5;

/// The warning for a loop with gates outside of a repository.
const OUTSIDE_GIT: &str = "the directory is not in a git repository: swarm takes no snapshots, so `swarm ralph diff` \
    and `swarm ralph restore` have nothing to show";

/// The warning for a loop with gates in a Docker sandbox.
const IN_DOCKER: &str = "in a Docker sandbox, swarm cannot see whether the agent replaced a program of the checks, or \
    left processes that run during the checks";

impl LoopRun {
    /// Returns the baseline, and takes it if necessary.
    pub(crate) async fn base(
        &self,
        worked: bool,
        on_step: OnCheckStep<'_>,
        until: Option<Instant>,
    ) -> Result<Base> {
        if let Some(base) = self.known_base(worked)? {
            return Ok(base);
        }
        let begun = self.begin_base().await?;
        Ok(self.take_base(begun, on_step, until).await?.0)
    }

    /// The existing baseline; `None` if it has to be taken. After an agent has `worked`, none can be taken, because the
    /// files may have changed. A loop without gates then continues with an empty one; others fail.
    pub(crate) fn known_base(&self, worked: bool) -> Result<Option<Base>> {
        match self.read_base() {
            None if !worked => Ok(None),
            None if self.gates.is_empty() => Ok(Some(Base::default())),
            None => Err(self.no_base()),
            known => Ok(known),
        }
    }

    /// Begins a baseline: the hashes of watched files, and warnings for the user. This is fast. Fails when a watched
    /// file cannot be read, or the progress file would be in a directory of swarm's.
    pub(crate) async fn begin_base(&self) -> Result<Base> {
        let mut base = Base { id: self.id.clone(), ..Base::default() };
        if !self.gates.is_empty() {
            progress::begin(self).await?;
            if self.gates.tasks.is_some() {
                self.exclude(MARKER_FILE).await?;
            }
            base = protect::begin(self, base).await?;
            base.warnings = protect::warnings(self, &base)?;
            base.warnings.extend(self.is_in_docker().then(|| IN_DOCKER.to_owned()));
        }
        if !self.gates.rooms.is_empty() {
            base.checkout_settings = git::checkout_settings(&self.cwd).await;
        }
        match git::nested(&self.cwd).await {
            Ok(None) if !self.gates.is_empty() => base.warnings.push(OUTSIDE_GIT.to_owned()),
            Ok(Some(nested)) if !nested.is_empty() => {
                let names = printable(&named(&nested, MAX_NAMED_ENTRIES));
                base.warnings
                    .push(format!("snapshots do not contain the repositories inside this one: {names}"));
            }
            // If git fails here, the snapshot reports it.
            Ok(_) | Err(_) => {}
        }
        Ok(base)
    }

    /// Takes the baseline: runs the checks, and stores the tree as a commit. What is not finished at `until`, the end
    /// of the loop's time, is canceled. Returns warnings about what failed. Fails when it cannot be written, or a check
    /// cannot be run.
    pub(crate) async fn take_base(
        &self,
        mut base: Base,
        on_step: OnCheckStep<'_>,
        until: Option<Instant>,
    ) -> Result<(Base, Vec<String>)> {
        let mut warnings = vec![];
        if !self.gates.is_empty() {
            undo_canary(&self.folder);
            let before = self.report_stamps();
            base.checks = self.run_checks(&base, 0, on_step, until).await?;
            self.count_tests(&base.runners, 0, &mut base.checks);
            base.reports = self.read_reports(&before);
            self.refuse_bad_reports(&base.reports)?;
            protect::leave_out_written(self, &mut base).await?;
            self.begin_canaries(&mut base, on_step, until).await?;
        }
        match self.snapshot(0).await {
            Ok(Some(taken)) => {
                (base.head, base.commit, base.tree) = (taken.head, Some(taken.commit), Some(taken.tree));
            }
            Ok(None) => {}
            Err(error) => warnings.push(error.to_string()),
        }
        self.write_base(&base)?;
        Ok((base, warnings))
    }

    /// The error for a missing baseline: without it, no gate can hold.
    pub(crate) fn no_base(&self) -> Error {
        let file = self.folder.join(BASELINE_FILE);
        let message = format!(
            "no baseline to compare with: '{}' is missing, or swarm did not write it",
            file.display()
        );
        Error::conflict(message).hint(format!("start the loop again: swarm respawn {}", self.name))
    }

    /// The watched files that changed without approval. Empty if the baseline or the worker's directory is missing.
    pub(crate) fn unapproved(&self) -> Result<Vec<String>> {
        let Some(base) = self.read_base().filter(|_| !self.gates.is_empty() && self.cwd.is_dir()) else {
            return Ok(vec![]);
        };
        Ok(base.changed(&protect::hash_all(self, &base, None)?))
    }

    /// Refuses to continue from such files, and lists them: the next loop's results would be checked against them.
    pub(crate) async fn refuse_unapproved(&self) -> Result<()> {
        let loop_run = self.clone();
        let changed = protect::blocking(move || loop_run.unapproved()).await?;
        if changed.is_empty() {
            return Ok(());
        }
        let (name, files) = (&self.name, printable(&named(&changed, MAX_NAMED_ENTRIES)));
        let message = format!("watched files of '{name}' were changed without approval: {files}");
        Err(Error::conflict(message).hint(format!(
            "show the changes: swarm ralph diff {name}; accept them: swarm ralph approve {name}; or restore the files"
        )))
    }

    /// Accepts the watched files as they are now, and the tests that ran in the last `iteration`. Returns the files
    /// that changed, and why the tests were refused. Fails when the loop has no baseline yet, or it cannot be written.
    pub(crate) async fn approve(&self, iteration: u32) -> Result<(Vec<String>, Vec<String>)> {
        let mut base = self.read_base().ok_or_else(|| self.no_base())?;
        let now = protect::hashes(self, &base).await?;
        let changed = base.changed(&now);
        base.protected = now;
        let tests = self.approve_tests(&mut base, iteration);
        self.write_base(&base)?;
        Ok((changed, tests))
    }

    /// Runs the checks. Their output goes into the iteration's folder. The caches of runners that an agent could fill
    /// are replaced by an empty directory.
    pub(super) async fn run_checks(
        &self,
        base: &Base,
        iteration: u32,
        on_step: OnCheckStep<'_>,
        until: Option<Instant>,
    ) -> Result<Vec<CheckResult>> {
        let folder = self.make_iteration_dir(iteration)?;
        // A Docker sandbox has no folder of swarm, and an agent could fill one with a known name.
        let caches = match self.is_in_docker() {
            true => Path::new("/tmp").join(random_name()?),
            false => folder.join("caches"),
        };
        let mut env = BTreeMap::clone(&self.env);
        for variable in base.runners.iter().flat_map(|using| &using.runner.cache_variables) {
            env.entry(variable.clone()).or_insert_with(|| caches.join(variable).display().to_string());
        }
        // A directory that cannot be removed is not empty, but private.
        let _ = std::fs::remove_dir_all(&caches);
        let plan = self.check_plan(&self.gates.checks, &folder, until, on_step);
        let plan = CheckPlan { env: &env, ..plan };
        let results = plan.run().await;
        let _ = std::fs::remove_dir_all(&caches);
        results
    }
}
