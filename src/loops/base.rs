//! The base line: what was there before any agent worked.
//!
//! Taken once in a loop's life; a daemon that dies half-way takes it again.

use std::time::Duration;

use swarm_state::gates::CheckResult;
use swarm_state::ledger::Base;
use swarm_state::notice::named;
use swarm_state::screen::printable;
use tokio::time::Instant;

use super::{BASE, Course, progress, protect, write_json};
use crate::checks::{KEPT, Plan, Told};
use crate::error::{Error, ErrorCode, Result};
use crate::git;

/// How many repositories a sentence names.
const MAX_NAMED: usize = 5;

impl Course {
    /// The base line; taken now when it was not yet, as [`Course::known_base`], [`Course::begin_base`] and
    /// [`Course::take_base`] do.
    ///
    /// # Errors
    /// As these.
    pub async fn base(&self, worked: bool, told: Told<'_>, until: Option<Instant>) -> Result<Base> {
        if let Some(base) = self.known_base(worked)? {
            return Ok(base);
        }
        let begun = self.begin_base().await?;
        Ok(self.take_base(begun, told, until).await?.0)
    }

    /// The base line that was taken; `None` when it still is to be. Once an agent has `worked` no other can be taken,
    /// since what it stands for may have been changed: a loop without gates goes on without.
    ///
    /// # Errors
    /// When it is gone.
    pub fn known_base(&self, worked: bool) -> Result<Option<Base>> {
        match self.read_base() {
            None if !worked => Ok(None),
            None if self.gates.is_empty() => Ok(Some(Base::default())),
            None => Err(self.no_base()),
            known => Ok(known),
        }
    }

    /// Begins a base line: what is watched, and what a person should know of it. That takes no time to speak of.
    ///
    /// # Errors
    /// When a protected file cannot be read, or the progress file would lie in a directory of swarm's own.
    pub async fn begin_base(&self) -> Result<Base> {
        let mut base = Base { id: self.id.clone(), ..Base::default() };
        if !self.gates.is_empty() {
            progress::begin(&self.cwd, &self.root).await?;
            base.protected = protect::hashes(self, None).await?;
            base.warnings = protect::warnings(self, &base.protected)?;
        }
        // Where git cannot say, the snapshot will.
        let nested = git::nested(&self.cwd).await.unwrap_or_default();
        if !nested.is_empty() {
            let names = printable(&named(&nested, MAX_NAMED));
            base.warnings
                .push(format!("no snapshot holds what is in the repositories within this one: {names}"));
        }
        Ok(base)
    }

    /// Takes it: the checks, of which `told` hears, and the tree as a commit. What is not through when the loop's
    /// time is over (`until`) is cut short. What could not be done is said beside it.
    ///
    /// # Errors
    /// When it cannot be written down, or a check cannot be run at all.
    pub async fn take_base(
        &self,
        mut base: Base,
        told: Told<'_>,
        until: Option<Instant>,
    ) -> Result<(Base, Vec<String>)> {
        let mut warnings = vec![];
        if !self.gates.is_empty() {
            base.checks = self.run_checks(0, told, until).await?;
        }
        match self.snapshot(0).await {
            Ok(Some(taken)) => {
                (base.head, base.commit, base.tree) = (taken.head, Some(taken.commit), Some(taken.tree));
            }
            Ok(None) => {}
            Err(error) => warnings.push(error.to_string()),
        }
        write_json(&self.folder.join(BASE), &base)?;
        Ok((base, warnings))
    }

    /// Nothing holds that is compared with nothing.
    pub(super) fn no_base(&self) -> Error {
        let file = self.folder.join(BASE);
        let message = format!(
            "there is no base line to compare with: '{}' is missing or cannot be read",
            file.display()
        );
        Error::new(ErrorCode::Conflict, message)
            .hint(format!("start the loop anew: swarm respawn {}", self.name))
    }

    /// The watched files that were changed since the base line and not approved, as they are now. None where there is
    /// no base line, or the worker's directory is gone.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn unapproved(&self) -> Result<Vec<String>> {
        let Some(base) = self.read_base().filter(|_| !self.gates.is_empty() && self.cwd.is_dir()) else {
            return Ok(vec![]);
        };
        Ok(base.changed(&protect::hashes_now(self, Some(&base))?))
    }

    /// Refuses to go on from such files: they would be what the next loop is measured against.
    ///
    /// # Errors
    /// Names them.
    pub async fn refuse_unapproved(&self) -> Result<()> {
        let course = self.clone();
        let work = tokio::task::spawn_blocking(move || course.unapproved());
        let changed = work.await.map_err(|e| Error::system("cannot look at the protected files", e))??;
        if changed.is_empty() {
            return Ok(());
        }
        let (name, files) = (&self.name, printable(&named(&changed, MAX_NAMED)));
        let message = format!("watched files of '{name}' were changed and nobody approved that: {files}");
        Err(Error::new(ErrorCode::Conflict, message).hint(format!(
            "look at it: swarm ralph diff {name}; take it: swarm ralph approve {name}; or give the files back"
        )))
    }

    /// Takes the protected files as they are now. Gives those that were different.
    ///
    /// # Errors
    /// When the loop has no base line yet, or the disk refuses.
    pub async fn approve(&self) -> Result<Vec<String>> {
        let mut base = self.read_base().ok_or_else(|| self.no_base())?;
        let now = protect::hashes(self, Some(&base)).await?;
        let changed = base.changed(&now);
        base.protected = now;
        write_json(&self.folder.join(BASE), &base)?;
        Ok(changed)
    }

    /// Runs the checks. What they print goes into the iteration's folder.
    pub(super) async fn run_checks(
        &self,
        iteration: u32,
        told: Told<'_>,
        until: Option<Instant>,
    ) -> Result<Vec<CheckResult>> {
        let folder = self.iteration_dir(iteration);
        crate::paths::private_dir(&folder)?;
        let plan = Plan {
            commands: &self.gates.checks,
            cwd: &self.cwd,
            env: &self.env,
            limit: Duration::from_secs(self.gates.check_timeout.max(1)),
            until,
            kept: KEPT,
            jobs: usize::try_from(self.gates.check_jobs).unwrap_or(1),
            folder: &folder,
            told,
        };
        plan.run().await
    }

    /// The tree as it is, as a commit under the iteration's ref.
    pub(super) async fn snapshot(&self, iteration: u32) -> Result<Option<git::Snapshot>> {
        let scratch = self.folder.join("index");
        let message = match iteration {
            0 => format!("{}: before the first iteration", self.name),
            n => format!("{}: after iteration {n}", self.name),
        };
        git::snapshot(&self.cwd, &self.reference(iteration), &scratch, &message).await
    }
}
