//! The directory of a worker on a Slurm host: `SWARM_DIR/slurm/HOST/NAME`.
//!
//! It is the SWARM_DIR of the worker's job, on a file system that the nodes share. The machine that submits writes
//! `spawn.json`, `job.json`, `job.sh` and `resume.json`; the runner in the job writes `view.json`. Slurm appends the
//! output of the job to `job.log`. The state of the worker results from these files and its job in the queue.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use swarm_state::host::HostName;
use swarm_state::model::{Status, WorkerName};
use swarm_state::slurm::{JobState, job_script, shown};

use crate::error::{Error, ErrorCode, Result, failed};
use crate::files::{entries, file_name, if_exists, read_bounded, write_unsynced};
use crate::paths::{Paths, own_program, private_dir};
use crate::protocol::{ResumeParams, SpawnParams, TmuxView, WorkerView};
use crate::shell::quote_path;

const MAX_JOB_LOG_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubmittedJob {
    pub(super) id: String,
    /// When the worker was submitted first: RFC 3339 with offset.
    pub(super) submitted: String,
    /// The id of the request to spawn the worker.
    pub(super) request: Option<String>,
}

/// The last state of a worker, as its job wrote it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct JobView {
    /// The number of the last notice before `worker`.
    pub(super) seq: u64,
    /// The request whose worker was spawned.
    pub(super) request: Option<String>,
    /// The daemon of the job was stopped in order; the job writes nothing more.
    pub(super) closed: bool,
    /// The worker; `None` before it was spawned.
    pub(super) worker: Option<WorkerView>,
    /// Why the worker was not spawned.
    pub(super) error: Option<Error>,
}

#[derive(Clone, Debug)]
pub(super) struct JobDir {
    pub(super) paths: Paths,
    pub(super) name: String,
}

impl JobDir {
    /// The directory of a worker, which may not exist.
    pub(super) fn new(paths: &Paths, host: &HostName, name: &WorkerName) -> Self {
        let root = paths.slurm_dir().join(host.as_str()).join(name.as_str());
        Self { paths: Paths::new(root), name: name.to_string() }
    }

    /// The directory that is SWARM_DIR of this process.
    pub(super) fn own(paths: Paths) -> Self {
        let name = paths.root().file_name().map(|name| name.to_string_lossy().into_owned());
        Self { paths, name: name.unwrap_or_default() }
    }

    pub(super) fn all(paths: &Paths, host: &HostName) -> Vec<Self> {
        let all = entries(&paths.slurm_dir().join(host.as_str()));
        let names = all.iter().filter_map(|path| WorkerName::new(file_name(path)).ok());
        names.map(|name| Self::new(paths, host, &name)).filter(|dir| dir.spawn().is_some()).collect()
    }

    /// Makes the directory. The mark means that several hosts use it: locks of other nodes may be invisible.
    pub(super) fn create(&self) -> Result<()> {
        private_dir(self.root())?;
        self.write("shared", b"")
    }

    pub(super) fn root(&self) -> &Path {
        self.paths.root()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.file(name);
        write_unsynced(&path, bytes).map_err(|e| failed("write", &path, e))
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let bytes =
            serde_json::to_vec(value).map_err(|e| Error::system(format!("cannot write {name}"), e))?;
        self.write(name, &bytes)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.file(name)).ok()?).ok()
    }

    fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.file(name));
    }

    pub(super) fn spawn(&self) -> Option<SpawnParams> {
        self.read("spawn.json")
    }

    /// Replaces the request, for a new worker.
    pub(super) fn set_spawn(&self, params: &SpawnParams) -> Result<()> {
        ["job.json", "view.json", "resume.json"].iter().for_each(|name| self.remove(name));
        self.write_json("spawn.json", params)
    }

    pub(super) fn job(&self) -> Option<SubmittedJob> {
        self.read("job.json")
    }

    pub(super) fn set_job(&self, job: &SubmittedJob) -> Result<()> {
        self.write_json("job.json", job)
    }

    pub(super) fn view(&self) -> JobView {
        self.read("view.json").unwrap_or_default()
    }

    pub(super) fn set_view(&self, view: &JobView) -> Result<()> {
        self.write_json("view.json", view)
    }

    /// A person's request to resume the loop, for the next start of the job.
    pub(super) fn resume(&self) -> Option<ResumeParams> {
        self.read("resume.json")
    }

    pub(super) fn set_resume(&self, params: Option<&ResumeParams>) -> Result<()> {
        match params {
            Some(params) => self.write_json("resume.json", params),
            None => {
                self.remove("resume.json");
                Ok(())
            }
        }
    }

    /// Writes the script of the job and returns its path.
    pub(super) fn write_script(&self) -> Result<PathBuf> {
        let (dir, program) = (quote_path(self.root()), quote_path(&own_program()?));
        self.write("job.sh", job_script(&dir, &program).as_bytes())?;
        // Slurm appends to it, and would create it for all to read.
        if !self.file("job.log").exists() {
            self.write("job.log", b"")?;
        }
        let path = self.file("job.sh");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))
            .map_err(|e| failed("write", &path, e))?;
        Ok(path)
    }

    /// Marks a worker without a daemon: the next daemon that loads it applies the mark before anything starts.
    pub(super) fn mark(&self, word: &str) -> Result<()> {
        let name = WorkerName::new(&self.name).map_err(|e| Error::invalid(e.to_string()))?;
        let path = self.paths.mark(&name, word);
        if !self.has_record() {
            return Ok(());
        }
        write_unsynced(&path, b"").map_err(|e| failed("write", &path, e))
    }

    /// Whether the job's daemon has saved the worker.
    pub(super) fn has_record(&self) -> bool {
        WorkerName::new(&self.name).is_ok_and(|name| self.paths.worker_file(&name).exists())
    }

    pub(super) fn delete(&self) -> Result<()> {
        if_exists(fs::remove_dir_all(self.root())).map(drop).map_err(|e| failed("delete", self.root(), e))
    }

    pub(super) fn last_output(&self) -> Option<String> {
        let bytes = read_bounded(&self.file("job.log"), MAX_JOB_LOG_BYTES).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(swarm_state::screen::printable(line.trim_start_matches("swarm: error: ")))
    }
}

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
            // The last line of the job's output has the reason why its worker did not start.
            let line = self.dir.last_output().filter(|_| status == Status::Failed);
            let reason = line.map_or(reason.clone(), |line| format!("{reason}: {line}"));
            (worker.status, worker.reason, worker.cause) = (status, Some(reason), None);
            (worker.ready, worker.idle, worker.pid) = (false, false, None);
            worker.tmux.pane = None;
        }
        worker
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
