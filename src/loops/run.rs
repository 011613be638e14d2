//! One loop: its fixed settings, and the files in its folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};
use swarm_state::engine::Ended;
use swarm_state::gates::Gates;
use swarm_state::inventory::KnownReport;
use swarm_state::ledger;
use swarm_state::model::Exit;
use swarm_state::pattern::Pattern;
use swarm_state::profiles::Profile;
use swarm_state::transcript::Account;
use tokio::time::{Instant, sleep_until};

use crate::checks::{CheckPlan, CheckSandbox, KEPT_OUTPUT_BYTES, OnCheckStep};
use crate::error::{Result, failed};
use crate::sandbox::WorkerSandbox;
use crate::sandbox::tree_files::TreeFiles;
use crate::signed::{Purpose, SigningKey};
use crate::store::{read_bounded, write_unsynced};

/// The largest of our own files that is read back.
const MAX_LOOP_FILE_BYTES: u64 = 64 << 20;

/// How long the snapshot or the watched files may take if the worker is being killed or the loop's time is over.
pub(super) const SNAPSHOT_GRACE: Duration = Duration::from_secs(10);

/// How many changed files a finding names.
pub(super) const MAX_NAMED_FILES: usize = 5;

/// The fixed settings of one loop.
#[derive(Clone, Debug)]
pub(crate) struct LoopRun {
    pub name: String,
    /// Distinguishes all loops of that name; part of a git ref.
    pub id: String,
    /// The loop's folder, outside the agent's tree.
    pub folder: PathBuf,
    /// Signs the files in the folder that a verdict depends on.
    pub key: SigningKey,
    /// swarm's own directory. The progress file may not be in it.
    pub root: PathBuf,
    /// The directory of the agent and of the checks.
    pub cwd: PathBuf,
    pub env: Arc<BTreeMap<String, String>>,
    pub sandbox: Option<Arc<WorkerSandbox>>,
    pub gates: Gates,
    pub profile: Profile,
    /// The command prints the agent's answer as text, so JSON on its screen is not a result of the CLI.
    pub shows_text: bool,
    /// The task file, which iterations may not change. `None` if the task was given as text.
    pub task_file: Option<PathBuf>,
}

/// An iteration whose agent has ended.
#[derive(Clone, Debug)]
pub(crate) struct Finished<'a> {
    /// The iteration, from 1.
    pub iteration: u32,
    pub run: u64,
    pub started: Option<DateTime<FixedOffset>>,
    /// When its agent had ended.
    pub ended: DateTime<FixedOffset>,
    pub exit: Exit,
    /// Why it ended, from the engine.
    pub end: Option<Ended>,
    pub output: &'a str,
    /// Whether the done pattern appeared; `None` if there is none.
    pub done_pattern: Option<bool>,
    /// That pattern, which may also appear in the agent's transcript.
    pub pattern: Option<&'a Pattern>,
    /// The id of the CLI's session, if swarm set it.
    pub session: Option<String>,
    /// The path of the transcript that the agent's hooks reported.
    pub transcript: Option<PathBuf>,
    /// The API error at the end, as the agent's hooks reported it.
    pub api_error: Option<String>,
    /// The end of the loop's time, which limits the checks; `None` without a limit.
    pub until: Option<Instant>,
    /// Why there was no agent, if none could be started.
    pub never_started: Option<String>,
    /// The agent's own account, if the caller has something better than a transcript.
    pub account: Option<Account>,
}

impl Finished<'_> {
    /// An iteration whose gates are tested although no agent ran.
    pub(crate) fn without_agent(iteration: u32, now: DateTime<FixedOffset>, until: Option<Instant>) -> Self {
        Self {
            iteration,
            run: 0,
            started: None,
            ended: now,
            exit: Exit::Code(0),
            end: None,
            output: "",
            done_pattern: None,
            pattern: None,
            session: None,
            transcript: None,
            api_error: None,
            until,
            never_started: None,
            account: Some(Account::default()),
        }
    }
}

impl LoopRun {
    /// The folder of an iteration; 0 is the baseline's.
    pub(crate) fn iteration_dir(&self, iteration: u32) -> PathBuf {
        self.folder.join("iterations").join(format!("{iteration:04}"))
    }

    pub(super) fn make_iteration_dir(&self, iteration: u32) -> Result<PathBuf> {
        let folder = self.iteration_dir(iteration);
        crate::paths::private_dir(&folder)?;
        Ok(folder)
    }

    /// Whether agent and checks run in a Docker sandbox, of which swarm sees only the files.
    pub(super) fn is_in_docker(&self) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| sandbox.docker.is_some())
    }

    pub(super) fn tree_files(&self) -> TreeFiles {
        TreeFiles::new(self.sandbox.as_ref().and_then(|sandbox| sandbox.docker.clone()))
    }

    fn check_sandbox(&self) -> Option<CheckSandbox<'_>> {
        self.sandbox.as_deref().map(|sandbox| CheckSandbox { sandbox, tree: None, origin: None })
    }

    /// The plan for commands in the agent's tree whose output goes into `folder`.
    pub(super) fn check_plan<'a>(
        &'a self,
        commands: &'a [String],
        folder: &'a Path,
        until: Option<Instant>,
        on_step: OnCheckStep<'a>,
    ) -> CheckPlan<'a> {
        CheckPlan {
            commands,
            cwd: &self.cwd,
            env: &self.env,
            limit: Duration::from_secs(self.gates.check_timeout.max(1)),
            until,
            kept: KEPT_OUTPUT_BYTES,
            jobs: usize::try_from(self.gates.check_jobs).unwrap_or(1),
            folder,
            stem: "check",
            on_step,
            sandbox: self.check_sandbox(),
        }
    }

    /// The result of an iteration; `None` if it has not ended or does not exist.
    pub(crate) fn read_iteration(&self, iteration: u32) -> Option<ledger::Iteration> {
        let path = self.iteration_dir(iteration).join(RESULT_FILE);
        read_signed(&self.key, Purpose::Iteration(&self.name, &self.id, iteration), &path)
    }

    /// Writes the result of an iteration. Fails when the file cannot be written; it is safe to retry.
    pub(super) fn write_result(&self, it: &ledger::Iteration) -> Result<()> {
        let path = self.iteration_dir(it.iteration).join(RESULT_FILE);
        write_signed(&self.key, Purpose::Iteration(&self.name, &self.id, it.iteration), &path, it)
    }

    /// The last earlier iteration that had an agent.
    pub(super) fn last_worked(&self, iteration: u32) -> Option<ledger::Iteration> {
        (1..iteration).rev().filter_map(|n| self.read_iteration(n)).find(|it| !it.no_agent)
    }

    pub(crate) fn reference(&self, iteration: u32) -> String {
        format!("refs/swarm/{}/{}/{iteration}", self.name, self.id)
    }

    /// The baseline, once it was taken.
    pub(crate) fn read_base(&self) -> Option<ledger::Base> {
        read_base(&self.key, &self.name, &self.folder).filter(|base| base.id == self.id)
    }

    pub(super) fn write_base(&self, base: &ledger::Base) -> Result<()> {
        write_signed(&self.key, Purpose::Baseline(&self.name), &self.folder.join(BASELINE_FILE), base)
    }

    /// The reports of tests of the last iteration that wrote some.
    pub(super) fn last_reports(&self) -> Vec<KnownReport> {
        let purpose = Purpose::Reports(&self.name, &self.id);
        let read: Option<LastReports> = read_signed(&self.key, purpose, &self.folder.join(REPORTS_FILE));
        read.map(|last| last.reports).unwrap_or_default()
    }

    pub(super) fn write_reports(&self, reports: Vec<KnownReport>) -> Result<()> {
        let purpose = Purpose::Reports(&self.name, &self.id);
        write_signed(&self.key, purpose, &self.folder.join(REPORTS_FILE), &LastReports { reports })
    }
}

/// The baseline of the loop with this folder.
pub(crate) fn read_base(key: &SigningKey, name: &str, folder: &Path) -> Option<ledger::Base> {
    read_signed(key, Purpose::Baseline(name), &folder.join(BASELINE_FILE))
}

pub(crate) const BASELINE_FILE: &str = "base.json";

/// The text for the agent in an iteration's folder.
pub(crate) const CONTRACT_FILE: &str = "contract.md";

/// An iteration's [`ledger::Iteration`] in its folder.
pub(crate) const RESULT_FILE: &str = "result.json";

#[derive(Serialize, Deserialize)]
struct LastReports {
    reports: Vec<KnownReport>,
}

/// The reports of tests of the last iteration.
const REPORTS_FILE: &str = "reports.json";

/// The task, if it was given as text.
pub(crate) const TASK_FILE: &str = "task.md";

pub(super) fn read_signed<T: serde::de::DeserializeOwned>(
    key: &SigningKey,
    purpose: Purpose<'_>,
    path: &Path,
) -> Option<T> {
    key.open(purpose, &read_bounded(path, MAX_LOOP_FILE_BYTES).ok()?)
}

pub(super) fn write_signed<T: Serialize>(
    key: &SigningKey,
    purpose: Purpose<'_>,
    path: &Path,
    value: &T,
) -> Result<()> {
    if let Some(dir) = path.parent() {
        crate::paths::private_dir(dir)?;
    }
    let write = || write_unsynced(path, &key.sign(purpose, value)?);
    write().map_err(|e| failed("write", path, e))
}

/// Resolves [`SNAPSHOT_GRACE`] after the loop's time, or after now if that is later. Never resolves without a limit.
pub(super) async fn long_over(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until.max(Instant::now()) + SNAPSHOT_GRACE).await,
        None => std::future::pending().await,
    }
}
