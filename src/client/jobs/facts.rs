//! The state of a worker on a Slurm host: its files, its job in the queue, and the view that they result in.

use std::collections::BTreeMap;

use serde_json::json;
use swarm_state::model::Status;
use swarm_state::slurm::{JobState, shown};

use super::dir::{JobDir, JobView, SubmittedJob};
use crate::client::worker::is_loop;
use crate::error::{Error, ErrorCode};
use crate::protocol::{SpawnParams, TmuxView, WorkerView};

/// A worker and its job.
#[derive(Clone, Debug)]
pub(super) struct JobFacts {
    pub(super) dir: JobDir,
    pub(super) spawn: SpawnParams,
    /// `None` while it is being submitted.
    pub(super) job: Option<SubmittedJob>,
    pub(super) state: JobState,
    pub(super) view: JobView,
}

impl JobFacts {
    /// Reads the directory of a worker; `None` if it has none.
    pub(super) fn read(dir: JobDir, queue: &BTreeMap<String, JobState>) -> Option<Self> {
        let (spawn, job, view) = (dir.spawn()?, dir.job(), dir.view());
        let state = match &job {
            Some(job) => queue.get(&job.id).cloned().unwrap_or_else(JobState::unknown),
            None => JobState::Waiting("not submitted yet".to_owned()),
        };
        Some(Self { dir, spawn, job, state, view })
    }

    pub(super) fn id(&self) -> &str {
        self.job.as_ref().map_or("0", |job| &job.id)
    }

    /// Whether its job has started a loop.
    pub(super) fn is_started_loop(&self) -> bool {
        self.dir.has_record() && self.view.worker.as_ref().is_some_and(is_loop)
    }

    /// Whether the job's daemon serves calls.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, JobState::Running(_)) && !self.view.closed
    }

    /// Whether the job does nothing more, so that another daemon may serve the directory.
    pub(super) fn is_over(&self) -> bool {
        match self.state {
            JobState::Ended(_) => true,
            JobState::Running(_) | JobState::Ending => self.view.closed,
            JobState::Waiting(_) => {
                self.view.closed
                    && self.view.worker.as_ref().is_some_and(|worker| worker.status.is_finished())
            }
        }
    }

    /// The worker as verbs show it.
    pub(super) fn worker(&self) -> WorkerView {
        let mut worker = self.view.worker.clone().unwrap_or_else(|| self.unstarted());
        if let Some(job) = &self.job {
            // The time at which the user spawned it. The daemon of its job was started later.
            worker.started.clone_from(&job.submitted);
        }
        if let Some(error) = &self.view.error {
            (worker.status, worker.reason, worker.cause) =
                (Status::Failed, Some(error.message.clone()), None);
            return worker;
        }
        let known = self.view.worker.as_ref().map(|worker| worker.status);
        if let Some((status, reason)) = shown(self.id(), &self.state, known) {
            (worker.status, worker.reason, worker.cause) =
                (status, Some(self.with_log(status, reason)), None);
            (worker.ready, worker.idle, worker.pid) = (false, false, None);
            worker.tmux.pane = None;
        }
        worker
    }

    /// Adds the last line of the job's output to the reason of a job that ended before its worker started.
    fn with_log(&self, status: Status, reason: String) -> String {
        match self.dir.last_output().filter(|_| status == Status::Failed) {
            Some(line) => format!("{reason}: {line}"),
            None => reason,
        }
    }

    /// The view of a worker that its job has not spawned.
    fn unstarted(&self) -> WorkerView {
        let spawn = &self.spawn;
        let metadata = spawn.ralph.as_ref().map_or(json!({}), |ralph| {
            json!({
                "ralph": true,
                "ralph_iteration": 0,
                "max_iterations": ralph.max_iterations,
                "status": "running",
                "consecutive_failures": 0,
                "total_failures": 0,
            })
        });
        WorkerView {
            name: self.dir.name.clone(),
            status: Status::Starting,
            cmd: spawn.cmd.clone(),
            cwd: spawn.cwd.clone(),
            tags: spawn.tags.clone(),
            env: spawn.env_names.iter().map(|name| (name.clone(), "***".to_owned())).collect(),
            tmux: TmuxView {
                socket: self.dir.paths.tmux_socket(),
                session: "swarm".to_owned(),
                window: self.dir.name.clone(),
                pane: None,
            },
            metadata,
            caps: spawn.caps,
            ..WorkerView::default()
        }
    }

    /// The error of a verb that needs a running job.
    pub(super) fn not_running(&self) -> Error {
        let (id, name) = (self.id(), &self.dir.name);
        let (message, hint) = match &self.state {
            JobState::Waiting(reason) => (
                format!("job {id} waits in the queue ({reason})"),
                format!("wait until it runs (swarm status {name}), or cancel it: swarm kill {name}"),
            ),
            JobState::Running(_) if !self.view.closed => {
                (format!("job {id} starts"), format!("swarm status {name}"))
            }
            JobState::Ending | JobState::Running(_) => {
                (format!("job {id} is ending"), format!("swarm status {name}"))
            }
            JobState::Ended(word) => {
                let verb = if self.spawn.ralph.is_some() { "ralph resume" } else { "respawn" };
                (
                    format!("job {id} has ended ({word})"),
                    format!("to submit another job: swarm {verb} {name}"),
                )
            }
        };
        Error::new(ErrorCode::Unreachable, format!("worker '{name}': {message}")).hint(hint)
    }
}
