//! Submits the job of a new worker, and the next job of a loop that continues.

use chrono::Local;
use swarm_state::model::{LoopStatus, Status, WorkerName};

use super::dir::{JobDir, JobFacts, SubmittedJob};
use super::workers::Workers;
use crate::client::subscription::unknown_worker;
use crate::client::worker::is_loop;
use crate::error::{Error, ErrorCode, Result};
use crate::hosts::slurm;
use crate::protocol::{Changed, ResumeParams, SpawnParams, Spawned};

impl Workers {
    /// Submits a new worker. A repeated request returns the worker of the first one.
    pub(super) async fn spawn(&self, params: SpawnParams) -> Result<Spawned> {
        let name = match &params.name {
            Some(text) => WorkerName::new(text).map_err(|e| Error::invalid(e.to_string()))?,
            None => WorkerName::of_directory(&params.cwd, |name| !self.dir(name).root().exists())
                .ok_or_else(|| Error::new(ErrorCode::Internal, "no name is free"))?,
        };
        let dir = self.dir(&name);
        let queue = slurm::queue().await?;
        if let Some(known) = JobFacts::read(dir.clone(), &queue) {
            let request = known.job.as_ref().and_then(|job| job.request.as_ref());
            if params.request.is_some() && request == params.request.as_ref() {
                return Ok(spawned(&known));
            }
            if !known.is_over() || !known.worker().status.is_finished() {
                let message = format!("worker '{name}' already exists ({})", known.worker().status);
                let hint = format!("choose another name, or end it: swarm kill {name}");
                return Err(Error::new(ErrorCode::Exists, message).hint(hint));
            }
        }
        slurm::check_tracking().await?;
        let is_new = !dir.root().exists();
        dir.create()?;
        let request = params.request.clone();
        let params = SpawnParams { name: Some(name.to_string()), ..params };
        dir.set_spawn(&params)?;
        let submitted = Local::now().fixed_offset().to_rfc3339();
        if let Err(error) = self.submit(&dir, submitted, request).await {
            let gone = if is_new { dir.delete() } else { Ok(()) };
            return Err(gone.err().unwrap_or(error));
        }
        let queue = slurm::queue().await.unwrap_or_default();
        let facts = JobFacts::read(dir, &queue).ok_or_else(|| unknown_worker(name.as_str()))?;
        Ok(spawned(&facts))
    }

    async fn submit(&self, dir: &JobDir, submitted: String, request: Option<String>) -> Result<()> {
        let script = dir.write_script()?;
        let id = slurm::submit(&dir.name, dir.root(), &script, &self.args).await?;
        dir.set_job(&SubmittedJob { id, submitted, request })
    }

    /// Submits another job for a loop whose job has ended.
    pub(super) async fn resume(&self, facts: &JobFacts, params: &ResumeParams) -> Result<Changed> {
        let (worker, name) = (facts.worker(), &facts.dir.name);
        let refused = |message: String| Err(Error::new(ErrorCode::Conflict, message));
        if !is_loop(&worker) || facts.view.worker.is_none() {
            return Err(Error::invalid(format!("worker '{name}' is not a loop that was started")));
        }
        if worker.status.is_finished() && worker.raise.is_none() {
            return refused(format!("the loop of worker '{name}' has ended"));
        }
        slurm::check_tracking().await?;
        facts.dir.set_resume(Some(params))?;
        let mut view = facts.view.clone();
        view.closed = false;
        if let Some(worker) = &mut view.worker {
            worker.status = Status::Starting;
        }
        facts.dir.set_view(&view)?;
        let job = facts.job.clone();
        let (submitted, request) = job.map_or_else(Default::default, |job| (job.submitted, job.request));
        if let Err(error) = self.submit(&facts.dir, submitted, request).await {
            facts.dir.set_resume(None)?;
            facts.dir.set_view(&facts.view)?;
            return Err(error);
        }
        let before = worker.metadata().status.unwrap_or(LoopStatus::Running);
        Ok(Changed { changed: true, before, warnings: vec![] })
    }
}

fn spawned(facts: &JobFacts) -> Spawned {
    Spawned { worker: facts.worker(), seq: 0, warnings: vec![] }
}
