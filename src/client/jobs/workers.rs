//! Carries out the calls for the workers of a Slurm host.
//!
//! A call for one worker goes to the daemon in its job, through srun. After the job's end, a daemon on this machine
//! serves the directory for as long as the connection lasts; it starts no agent. The list is made from the files of the
//! workers and the queue.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use swarm_state::host::HostName;
use swarm_state::model::{Status, WorkerName};
use swarm_state::owner::Ownership;
use swarm_state::slurm::JobState;
use tokio::process::ChildStdin;
use tokio::time::{Duration, Instant, sleep};

use super::dir::{JobDir, JobFacts};
use crate::client::connect::{self, Client, QUICK_TIMEOUT};
use crate::client::pages::is_disconnected;
use crate::client::subscription::unknown_worker;
use crate::client::worker::is_loop;
use crate::error::{Error, ErrorCode, Result};
use crate::hosts::slurm;
use crate::owner;
use crate::paths::Paths;
use crate::protocol::{Call, Empty, Forgotten, Killed, Lines, Listing, SpawnParams, WorkerView};
use crate::remote::Place;

/// How long a call may take. The client has a shorter limit of its own.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a job that runs may take until its daemon answers.
const DAEMON_ANSWER_TIMEOUT: Duration = Duration::from_secs(8);

/// The delay between two attempts to reach the daemon of a job.
const DAEMON_RETRY_DELAY: Duration = Duration::from_millis(200);

/// How long the daemon that another command has started for a directory may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a call is sent to a daemon that ends before its answer.
const MAX_JOB_CALL_ATTEMPTS: usize = 10;

/// How long a job may take to end by itself after its worker was killed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The workers of a Slurm host.
pub(super) struct Workers {
    pub(super) paths: Paths,
    pub(super) host: HostName,
    /// Further arguments of sbatch.
    pub(super) args: Vec<String>,
}

/// A connection to the daemon of one worker.
struct WorkerLink {
    client: Client,
    /// The input of a daemon that this process started, and that ends with it.
    temporary: Option<ChildStdin>,
}

/// The connections of one client.
#[derive(Default)]
pub(super) struct WorkerLinks(HashMap<String, WorkerLink>);

impl WorkerLinks {
    /// Stops the daemons that were started for this client.
    pub(super) async fn close(self) {
        for link in self.0.into_values() {
            link.close().await;
        }
    }

    async fn drop_link(&mut self, name: &str) {
        if let Some(link) = self.0.remove(name) {
            link.close().await;
        }
    }
}

impl WorkerLink {
    async fn close(mut self) {
        let stop = Call::DaemonStop(Empty {});
        if self.temporary.is_some() && self.client.call::<Value>(&stop, QUICK_TIMEOUT).await.is_ok() {
            self.client.hang_up().await;
        }
    }
}

impl Workers {
    pub(super) fn dir(&self, name: &WorkerName) -> JobDir {
        JobDir::new(&self.paths, &self.host, name)
    }

    pub(super) async fn all(&self) -> Result<Vec<JobFacts>> {
        let dirs = JobDir::all(&self.paths, &self.host);
        let queue = slurm::queue().await?;
        Ok(dirs.into_iter().filter_map(|dir| JobFacts::read(dir, &queue)).collect())
    }

    pub(super) async fn one(&self, name: &str) -> Result<JobFacts> {
        let known = WorkerName::new(name).map_err(|e| Error::invalid(e.to_string()))?;
        let dir = self.dir(&known);
        if dir.spawn().is_none() {
            return Err(unknown_worker(name));
        }
        JobFacts::read(dir, &slurm::queue().await?).ok_or_else(|| unknown_worker(name))
    }

    /// Lists the workers. Without an answer of Slurm, the state of those that have not ended is unknown.
    pub(super) async fn list(&self) -> Listing {
        match self.all().await {
            Ok(all) => Listing { workers: all.iter().map(JobFacts::worker).collect(), problems: vec![] },
            Err(error) => {
                let unknown = |dir: JobDir| {
                    let facts = JobFacts::read(dir, &BTreeMap::new())?;
                    let mut worker = facts.worker();
                    if !facts.view.worker.is_some_and(|known| known.status.is_finished()) {
                        (worker.status, worker.reason, worker.cause) =
                            (Status::Unreachable, Some(error.message.clone()), None);
                    }
                    Some(worker)
                };
                let workers = JobDir::all(&self.paths, &self.host).into_iter().filter_map(unknown).collect();
                Listing { workers, problems: vec![error.message.clone()] }
            }
        }
    }

    /// Answers a call for one worker, or returns its daemon's error; [`ErrorCode::Unreachable`] while the job waits.
    pub(super) async fn call(&self, links: &mut WorkerLinks, name: &str, call: &Call) -> Result<Value> {
        // These are for the job too, and not only for its daemon.
        let changes_job =
            matches!(call, Call::Kill(_) | Call::Clean(_) | Call::RalphResume(_) | Call::Respawn(_));
        // A client that polls uses its connection again, without a question to Slurm.
        if let Some(link) = links.0.get_mut(name)
            && !changes_job
        {
            match link.client.call(call, FORWARD_TIMEOUT).await {
                Err(error) if is_disconnected(&error) => links.drop_link(name).await,
                answer => return self.own_times(name, call, answer?),
            }
        }
        let facts = self.one(name).await?;
        match call {
            Call::Status(_) if !facts.is_running() => json(&facts.worker()),
            // Nothing was printed yet.
            Call::Logs(_) if !facts.is_running() && !facts.dir.has_record() => json(&Lines::default()),
            Call::Seen(_) if !facts.is_over() => json(&Empty {}),
            Call::Kill(_) => self.kill(links, facts, call).await,
            Call::Clean(_) => self.clean(links, facts, call).await,
            Call::RalphResume(params) if facts.is_over() => {
                links.drop_link(name).await;
                json(&self.resume(&facts, params).await?)
            }
            Call::Respawn(params) if facts.is_over() => {
                if !facts.worker().status.is_finished() {
                    let error = Error::new(ErrorCode::Conflict, format!("worker '{name}' has not ended"));
                    return Err(error.hint(format!("swarm kill {name}")));
                }
                links.drop_link(name).await;
                json(&self.spawn(SpawnParams { request: params.request.clone(), ..facts.spawn }).await?)
            }
            _ => {
                let answer = self.forward(links, facts, call).await?;
                self.own_times(name, call, answer)
            }
        }
    }

    /// The start of a worker is its submission, in each answer.
    fn own_times(&self, name: &str, call: &Call, mut answer: Value) -> Result<Value> {
        if matches!(call, Call::Status(_)) {
            let known = WorkerName::new(name).map_err(|e| Error::invalid(e.to_string()))?;
            if let Some(job) = self.dir(&known).job() {
                answer["started"] = job.submitted.into();
            }
        }
        Ok(answer)
    }

    /// Passes a call on to the worker's daemon. A daemon that another client has started may just end.
    async fn forward(&self, links: &mut WorkerLinks, mut facts: JobFacts, call: &Call) -> Result<Value> {
        let (mut attempts, is_clean) = (1, matches!(call, Call::Clean(_)));
        loop {
            match self.forward_once(links, &facts, call).await {
                Err(error)
                    if error.code == ErrorCode::NoDaemon
                        && (call.is_repeatable() || is_clean)
                        && attempts < MAX_JOB_CALL_ATTEMPTS => {}
                // The daemon that ended has deleted it.
                Err(error) if error.code == ErrorCode::NotFound && is_clean && attempts > 1 => {
                    return json(&Forgotten::default());
                }
                answer => return answer,
            }
            attempts += 1;
            sleep(DAEMON_RETRY_DELAY).await;
            facts = self.one(&facts.dir.name).await?;
        }
    }

    async fn forward_once(&self, links: &mut WorkerLinks, facts: &JobFacts, call: &Call) -> Result<Value> {
        let name = facts.dir.name.clone();
        // Its job may start again at any time.
        let may_start = !facts.worker().status.is_finished();
        let mut link = match links.0.remove(&name) {
            Some(link) => link,
            None => self.connect(facts.clone(), call).await?,
        };
        let answer = link.client.call(call, FORWARD_TIMEOUT).await;
        if link.temporary.is_some() && may_start {
            link.close().await;
        } else if !answer.as_ref().is_err_and(is_disconnected) {
            links.0.insert(name, link);
        }
        answer
    }

    async fn connect(&self, mut facts: JobFacts, call: &Call) -> Result<WorkerLink> {
        let deadline = Instant::now() + DAEMON_ANSWER_TIMEOUT;
        loop {
            let is_waiting = matches!(facts.state, JobState::Waiting(_));
            let is_started_loop =
                || facts.dir.has_record() && facts.view.worker.as_ref().is_some_and(is_loop);
            if facts.is_over() || is_waiting && only_reads(call) && is_started_loop() {
                return self.open_directory(&facts).await;
            }
            if !facts.is_running() {
                return Err(facts.not_running());
            }
            let words = ["connect", "--stdio", "--existing"];
            let srun = slurm::in_job(facts.id(), facts.dir.root(), &words, false)?;
            let place = Place::remote(self.paths.clone(), self.host.clone(), Default::default());
            let failure = match connect::connect_over(&place, srun).await {
                Ok(Some(client)) => return Ok(WorkerLink { client, temporary: None }),
                Ok(None) => facts.not_running(),
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                return Err(failure);
            }
            // The job may have ended meanwhile, or its daemon does not answer yet.
            sleep(DAEMON_RETRY_DELAY).await;
            facts = self.one(&facts.dir.name).await?;
        }
    }

    /// Starts a daemon for the directory of a job that does not run. It must not start an agent here: a loop gets
    /// paused, and a plain worker that may start again ends.
    async fn open_directory(&self, facts: &JobFacts) -> Result<WorkerLink> {
        if !facts.dir.has_record() {
            return Err(facts.not_running());
        }
        let paths = &facts.dir.paths;
        let place = Place::from(paths);
        let deadline = Instant::now() + END_TIMEOUT;
        while let Some(client) = connect::connect_existing(&place).await? {
            // The daemon of an earlier command usually ends.
            if Instant::now() >= deadline {
                return Ok(WorkerLink { client, temporary: None });
            }
            sleep(DAEMON_RETRY_DELAY).await;
        }
        let worker = facts.worker();
        if !worker.status.is_finished() {
            facts.dir.mark(if is_loop(&worker) { "paused-by-shutdown" } else { "killed" })?;
        }
        // Slurm has ended every process of the job.
        if let (Some(former), Ownership::Ask) = owner::look(paths) {
            owner::replace(paths, &former)?;
        }
        let (client, input) = connect::connect_for_reading(&place).await?;
        Ok(WorkerLink { client, temporary: Some(input) })
    }

    /// Kills a worker, then cancels its job.
    async fn kill(&self, links: &mut WorkerLinks, facts: JobFacts, call: &Call) -> Result<Value> {
        let (dir, id) = (facts.dir.clone(), facts.id().to_owned());
        if facts.is_running() {
            let answer = self.forward(links, facts, call).await?;
            // The runner writes the last view and stops the daemon.
            let deadline = Instant::now() + CLOSE_TIMEOUT;
            while !dir.view().closed && Instant::now() < deadline {
                sleep(DAEMON_RETRY_DELAY).await;
            }
            slurm::cancel(&id).await?;
            return Ok(answer);
        }
        let worker = facts.worker();
        let removes = matches!(call, Call::Kill(params) if params.rm_worktree) && dir.has_record();
        if facts.is_over() && worker.status.is_finished() {
            if removes {
                return self.forward(links, facts, call).await;
            }
            return json(&Killed { already: true, ..Killed::default() });
        }
        if !facts.is_over() && facts.job.is_some() {
            slurm::cancel(&id).await?;
        }
        dir.mark("killed")?;
        let mut view = facts.view;
        let killed = WorkerView {
            status: Status::Killed,
            reason: Some("killed".to_owned()),
            cause: None,
            ..view.worker.take().unwrap_or(worker)
        };
        (view.worker, view.closed, view.error) = (Some(killed), true, None);
        dir.set_view(&view)?;
        if removes {
            let facts = self.one(&dir.name).await?;
            return self.forward(links, facts, call).await;
        }
        json(&Killed::default())
    }

    /// Deletes a worker that has ended, with its directory.
    async fn clean(&self, links: &mut WorkerLinks, facts: JobFacts, call: &Call) -> Result<Value> {
        let dir = facts.dir.clone();
        if !facts.is_over() {
            return self.forward(links, facts, call).await;
        }
        if !dir.has_record() {
            dir.delete()?;
            return json(&Forgotten::default());
        }
        if !facts.worker().status.is_finished() {
            let message = format!("worker '{}' has not ended", dir.name);
            return Err(Error::new(ErrorCode::Conflict, message).hint(format!("swarm kill {}", dir.name)));
        }
        let answer = self.forward(links, facts, call).await?;
        links.drop_link(&dir.name).await;
        dir.delete()?;
        Ok(answer)
    }
}

fn only_reads(call: &Call) -> bool {
    matches!(
        call,
        Call::Logs(_) | Call::RalphLogs(_) | Call::RalphStatus(_) | Call::RalphReport(_) | Call::RalphDiff(_)
    )
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(|e| Error::system("cannot serialize an answer", e))
}
