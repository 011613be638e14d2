//! `swarm connect --job-run`, the process of a job: starts the daemon, spawns or resumes the worker, and stays until
//! the worker has ended. Its exit status is the worker's.
//!
//! The daemon is a child of it. Slurm sends SIGTERM to this process before the time limit: a loop then pauses, its
//! agent ends, and the job goes back into the queue. The view of the worker in the directory is written at each notice.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use swarm_state::model::Status;
use swarm_state::notice::PauseBy;
use swarm_state::slurm::{FirstStep, FoundWorker, first_step};
use tokio::process::Child;
use tokio::time::{Duration, Instant, sleep, timeout};

use super::dir::{JobDir, JobView};
use crate::client::connect::{self, Client, QUICK_TIMEOUT};
use crate::client::follow;
use crate::client::subscription::unknown_worker;
use crate::client::worker::is_loop;
use crate::error::{Error, ErrorCode, Result};
use crate::hosts::slurm;
use crate::out::{CommandResult, Out};
use crate::owner;
use crate::paths::Paths;
use crate::procs;
use crate::protocol::{
    Call, Changed, Empty, Listing, Named, Notice, RespawnParams, ResumeParams, Snapshot, Spawned,
    SubscribeParams, WorkerView,
};
use crate::remote::Place;
use crate::runtime::CaughtSignals;
use crate::tmux::{Tmux, TmuxOptions};

/// How long a daemon may take to start. It waits a minute until Slurm has not listed a former job.
const DAEMON_START_TIMEOUT: Duration = Duration::from_secs(120);

/// The delay between two attempts to start or reach the daemon.
const DAEMON_START_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The delay before a daemon starts again after one that has ended.
const REFUSED_DELAY: Duration = Duration::from_secs(2);

/// How often the view is read without a notice.
const VIEW_INTERVAL: Duration = Duration::from_secs(2);

/// How long the last view of a job that leaves its node may take.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the daemon may take to stop, and the agent to end.
const JOB_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How much later than its daemon the runner may get a signal to the whole job.
const SIGNAL_DELAY: Duration = Duration::from_millis(300);

/// How long Slurm may take to end a job that it has put back into the queue.
const REQUEUE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the start of the worker may take: its tree and its baseline are made.
const SPAWN_TIMEOUT: Duration = Duration::from_secs(900);

struct Runner {
    out: Out,
    dir: JobDir,
    id: String,
    view: JobView,
    daemon: Option<Child>,
    signals: CaughtSignals,
}

/// Why the runner stopped to watch its worker.
enum WatchEnd {
    Finished,
    /// Slurm asks the job to leave the node.
    Leave,
    DaemonGone,
}

pub(super) async fn run(out: Out) -> CommandResult {
    let dir = JobDir::own(Paths::from_env()?);
    let id = std::env::var("SLURM_JOB_ID").unwrap_or_default();
    let signals = CaughtSignals::new(&[Signal::SIGTERM, Signal::SIGHUP])?;
    await_submission(&dir, &id).await?;
    let mut view = dir.view();
    view.closed = false;
    dir.set_view(&view)?;
    let mut runner = Runner { out, dir, id, view, daemon: None, signals };
    match runner.supervise().await {
        Ok(status) => Ok(status),
        Err(error) => {
            runner.view.error = runner.view.worker.is_none().then(|| error.clone());
            runner.stop_daemon().await;
            runner.end_agents().await;
            runner.close()?;
            Err(error.into())
        }
    }
}

async fn await_submission(dir: &JobDir, id: &str) -> Result<()> {
    let deadline = Instant::now() + slurm::SUBMIT_TIMEOUT;
    loop {
        let known = dir.job().map(|job| job.id);
        if known.as_deref() == Some(id) && !id.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let message = match known {
                Some(other) => format!("job {other} has taken the place of this job"),
                None => "no job was submitted for this directory".to_owned(),
            };
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        sleep(DAEMON_START_RETRY_DELAY).await;
    }
}

impl Runner {
    fn named(&self) -> Named {
        Named { name: self.dir.name.clone() }
    }

    async fn supervise(&mut self) -> Result<u8> {
        loop {
            let mut client = self.start_daemon().await?;
            let ended = match self.begin(&mut client).await? {
                Some(end) => end,
                None => self.watch(client).await?,
            };
            match ended {
                // Slurm may have sent its signal to all processes of the job.
                WatchEnd::DaemonGone if timeout(SIGNAL_DELAY, self.signals.next()).await.is_ok() => {
                    return self.leave().await;
                }
                WatchEnd::Finished => return self.finish().await,
                WatchEnd::Leave => return self.leave().await,
                // The job has started again on another node: nothing may continue here.
                WatchEnd::DaemonGone => match owner::elsewhere(&self.dir.paths) {
                    Some(error) => return Err(error),
                    None => self.out.note("swarm: the daemon of the job is gone; starting it again"),
                },
            }
        }
    }

    async fn start_daemon(&mut self) -> Result<Client> {
        let place = Place::from(&self.dir.paths);
        let deadline = Instant::now() + DAEMON_START_TIMEOUT;
        loop {
            let has_ended = match &mut self.daemon {
                Some(child) => matches!(child.try_wait(), Ok(Some(_)) | Err(_)),
                None => true,
            };
            if has_ended {
                // A daemon that was refused: the directory has another owner still.
                if self.daemon.is_some() {
                    sleep(REFUSED_DELAY).await;
                }
                self.daemon = Some(connect::run_in_job(&self.dir.paths)?);
            }
            let refused = match connect::connect_existing(&place).await {
                Ok(Some(client)) if Some(client.daemon.pid) == self.daemon.as_ref().and_then(Child::id) => {
                    return Ok(client);
                }
                // A daemon that serves the directory for a client, and stops with it.
                Ok(_) => Error::new(ErrorCode::NoDaemon, "the daemon of the job does not start"),
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                return Err(refused.hint(format!("its log is {}", self.dir.paths.daemon_log().display())));
            }
            sleep(DAEMON_START_RETRY_DELAY).await;
        }
    }

    /// Spawns or continues the worker. Returns early if the job has to leave meanwhile.
    async fn begin(&mut self, client: &mut Client) -> Result<Option<WatchEnd>> {
        loop {
            let step = self.first_step(client).await?;
            let done = tokio::select! {
                biased;
                _ = self.signals.next() => return Ok(Some(WatchEnd::Leave)),
                done = carry_out(step, client, &self.dir, &self.id) => done?,
            };
            done.iter().for_each(|warning| self.out.warn(warning));
            self.view.request = self.dir.job().and_then(|job| job.request);
            // A repeated spawn returns the worker of the first one, which may have lost its node.
            if step != FirstStep::Spawn {
                return Ok(None);
            }
        }
    }

    async fn first_step(&self, client: &mut Client) -> Result<FirstStep> {
        let listing: Listing = client.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
        let known = listing.workers.iter().find(|worker| worker.name == self.dir.name);
        let request = self.dir.job().and_then(|job| job.request);
        Ok(first_step(FoundWorker {
            status: known.filter(|_| self.view.request == request).map(|worker| worker.status),
            is_loop: known.is_some_and(is_loop),
            paused_by: known.and_then(|worker| worker.metadata().paused_by),
            resume_requested: self.dir.resume().is_some(),
        }))
    }

    /// Writes the view at each change, until the worker has ended or the job has to leave.
    async fn watch(&mut self, client: Client) -> Result<WatchEnd> {
        match self.watch_daemon(client).await {
            Err(error) if matches!(error.code, ErrorCode::NoDaemon | ErrorCode::Timeout) => {
                Ok(WatchEnd::DaemonGone)
            }
            ended => ended,
        }
    }

    async fn watch_daemon(&mut self, mut client: Client) -> Result<WatchEnd> {
        let place = Place::from(&self.dir.paths);
        let Ok(Some(mut stream)) = connect::connect_existing(&place).await else {
            return Ok(WatchEnd::DaemonGone);
        };
        let subscribe = Call::Subscribe(SubscribeParams { worker: Some(self.dir.name.clone()), since: None });
        let Snapshot { mut seq, .. } = stream.call(&subscribe, QUICK_TIMEOUT).await?;
        loop {
            let worker: WorkerView = client.call(&Call::Status(self.named()), QUICK_TIMEOUT).await?;
            let is_finished = worker.status.is_finished();
            self.record(seq, worker)?;
            if is_finished {
                return Ok(WatchEnd::Finished);
            }
            let heard: Option<Result<Notice>> = tokio::select! {
                biased;
                _ = self.signals.next() => return Ok(WatchEnd::Leave),
                heard = stream.notice() => Some(heard),
                () = sleep(VIEW_INTERVAL) => None,
            };
            match heard {
                Some(Ok(notice)) => seq = notice.seq,
                Some(Err(_)) => return Ok(WatchEnd::DaemonGone),
                None => {}
            }
        }
    }

    fn record(&mut self, seq: u64, worker: WorkerView) -> Result<()> {
        let view = JobView { seq, worker: Some(worker), error: None, ..self.view.clone() };
        if view != self.view {
            self.dir.set_view(&view)?;
            self.view = view;
        }
        Ok(())
    }

    /// The worker has ended: stops the daemon and returns the worker's exit status.
    async fn finish(&mut self) -> Result<u8> {
        self.stop_daemon().await;
        self.close()?;
        Ok(self.view.worker.as_ref().map_or(1, status_of))
    }

    /// Leaves the node: pauses the loop, ends its agent, and puts the job back into the queue. Neither a loop that a
    /// person has paused nor a plain worker starts again by itself.
    async fn leave(&mut self) -> Result<u8> {
        self.refresh().await?;
        let goes_on = match &self.view.worker {
            Some(worker) => {
                is_loop(worker) && matches!(worker.metadata().paused_by, None | Some(PauseBy::Shutdown))
            }
            None => self.dir.spawn().is_some_and(|spawn| spawn.ralph.is_some()),
        };
        self.out.note("swarm: Slurm ends the job");
        self.stop_daemon().await;
        self.end_agents().await;
        if goes_on {
            match slurm::requeue(&self.id).await {
                Ok(()) => {
                    self.out.note("swarm: the job is in the queue again");
                    // Slurm ends this process.
                    tokio::select! {
                        _ = self.signals.next() => {}
                        () = sleep(REQUEUE_TIMEOUT) => {}
                    }
                    return Ok(1);
                }
                Err(error) => self.out.warn(&format!("the job is not in the queue again: {}", error.message)),
            }
        }
        self.close()?;
        Ok(1)
    }

    /// Writes the view of this moment: a person may have paused the loop just now.
    async fn refresh(&mut self) -> Result<()> {
        let place = Place::from(&self.dir.paths);
        let Ok(Some(mut client)) = connect::connect_existing(&place).await else { return Ok(()) };
        match client.call(&Call::Status(self.named()), REFRESH_TIMEOUT).await {
            Ok(worker) => self.record(self.view.seq, worker),
            Err(_) => Ok(()),
        }
    }

    async fn end_agents(&self) {
        let tmux = Tmux::new(TmuxOptions::own(&self.dir.paths));
        if let Err(error) = tmux.kill_server().await {
            self.out.warn(&error.message);
        }
        if let Some(pid) = self.view.worker.as_ref().and_then(|worker| worker.pid) {
            let _ = timeout(JOB_STOP_TIMEOUT, procs::wait_gone(pid)).await;
        }
    }

    /// Writes that this job writes nothing more, unless a later start of it has taken over.
    fn close(&mut self) -> Result<()> {
        if owner::elsewhere(&self.dir.paths).is_some() {
            return Ok(());
        }
        self.view.closed = true;
        self.dir.set_view(&self.view)
    }

    /// Stops the daemon in order: it pauses the loop, which the next start resumes.
    async fn stop_daemon(&mut self) {
        let Some(mut child) = self.daemon.take() else { return };
        let place = Place::from(&self.dir.paths);
        if let Ok(Some(mut client)) = connect::connect_existing(&place).await {
            let _: Result<serde_json::Value> =
                client.call(&Call::DaemonStop(Empty {}), JOB_STOP_TIMEOUT).await;
        }
        if timeout(JOB_STOP_TIMEOUT, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
    }
}

async fn carry_out(step: FirstStep, client: &mut Client, dir: &JobDir, id: &str) -> Result<Vec<String>> {
    let name = dir.name.clone();
    match step {
        FirstStep::Spawn => {
            let params = dir.spawn().ok_or_else(|| unknown_worker(&name))?;
            let spawned: Spawned = client.call(&Call::Spawn(Box::new(params)), SPAWN_TIMEOUT).await?;
            return Ok(spawned.warnings);
        }
        FirstStep::Resume => {
            let params = dir.resume().unwrap_or(ResumeParams { name, env: BTreeMap::new() });
            let _: Changed = client.call(&Call::RalphResume(params), QUICK_TIMEOUT).await?;
            dir.set_resume(None)?;
        }
        FirstStep::Respawn => {
            let restarts = std::env::var("SLURM_RESTART_COUNT").unwrap_or_else(|_| "0".to_owned());
            let request = Some(format!("{id}-{restarts}"));
            let params = RespawnParams { name, clean_first: false, discard_ignored: false, request };
            let spawned: Spawned = client.call(&Call::Respawn(params), SPAWN_TIMEOUT).await?;
            return Ok(spawned.warnings);
        }
        FirstStep::Nothing => {}
    }
    Ok(vec![])
}

/// The exit status of a worker that has ended.
fn status_of(worker: &WorkerView) -> u8 {
    let code = match is_loop(worker) {
        true => follow::exit_status(worker),
        false => worker.exit_code.and_then(|code| u8::try_from(code).ok()),
    };
    match worker.status {
        Status::Done => code.unwrap_or(0),
        _ => code.filter(|code| *code != 0).unwrap_or(1),
    }
}
