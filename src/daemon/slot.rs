//! A slot: everything that the supervisor holds about one worker.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, FixedOffset};
use serde_json::{Map, Value};
use swarm_state::engine::{Edits, Effect, Event, Now, Phase, Policy, Worker};
use swarm_state::format::{FORMAT, Legacy, Metadata, RalphFile, Record, StatusSince};
use swarm_state::model::{Pane, PromptVia, Run, Status, Worktree};
use swarm_state::notice::{Entry, PauseBy};
use swarm_state::owner::MachineId;
use swarm_state::spec::{Prompt, WorkerSpec};
use swarm_state::tasks::IterationMode;
use swarm_state::tasks::gate::TaskTurn;
use tokio::time::Instant;

use crate::daemon::busy::BusyList;
use crate::daemon::messages::{AfterStop, IterationInfo, PendingSpawn, QueuedInput, SharedReader};
use crate::daemon::reply::Reply;
use crate::daemon::run::context::RunContext;
use crate::daemon::run::driver::Driver;
use crate::daemon::run::input;
use crate::daemon::run::iteration::{loop_id, loop_run};
use crate::error::{Error, Result};
use crate::loops::LoopRun;
use crate::owner;

mod held_requests;
mod save_state;

pub(crate) use held_requests::HeldRequests;
pub(crate) use save_state::{SaveState, Saving};

#[derive(Default)]
pub(crate) struct Origin {
    pub(crate) started: DateTime<FixedOffset>,
    /// The request that created it, for a client that repeats the request.
    pub(crate) request: Option<String>,
    /// All notices after this number are about this worker and not about an earlier one of the same name.
    pub(crate) first_notice: u64,
    /// Fields of its record that this version does not have.
    pub(crate) extra: Map<String, Value>,
    /// The host with which the last run was lost.
    pub(crate) lost_with: Option<String>,
    /// Present for a worker of the Python predecessor: the daemon shows it and changes nothing.
    pub(crate) legacy: Option<Legacy>,
}

/// The start of a worker, as far as a client waits for it.
pub(crate) enum Start {
    /// No client waits.
    Settled,
    /// A client waits for the first run.
    Pending(PendingSpawn),
    /// The first run failed to start. Once the worker has stopped, it is discarded and the client gets the error.
    Failed(Reply, Error),
}

/// The comparison of a worker's saved state with its pane, after a start of the daemon.
pub(crate) enum Recovery {
    /// Its tmux server was not looked at yet. `elsewhere` is the machine of its run, if that is not this one.
    Pending {
        elsewhere: Option<MachineId>,
    },
    /// Its run was ending when this daemon started. The settings may resume the loop when it has ended.
    RunEnding,
    Done,
}

/// Requests that wait for the worker to become ready or to stop.
#[derive(Default)]
pub(crate) struct Waiting {
    pub(crate) input: Vec<QueuedInput>,
    pub(crate) after_stop: Vec<AfterStop>,
    /// Processes that the current kill had to end by force.
    pub(crate) forced: Vec<String>,
    /// The edits of the task list that were undone when the worker stopped, for the answer to a kill.
    pub(crate) undone: Vec<String>,
}

pub(crate) struct Slot {
    pub(crate) spec: Arc<WorkerSpec>,
    pub(crate) engine: Worker,
    pub(crate) origin: Origin,
    pub(crate) pane: Option<Pane>,
    pub(crate) worktree: Option<Worktree>,
    pub(crate) driver: Driver,
    pub(crate) reader: SharedReader,
    /// The last lines of the screen, as they were captured last.
    pub(crate) last_screen: String,
    pub(crate) requests: HeldRequests,
    pub(crate) checking: Vec<String>,
    /// The work on the task list in the current or last iteration, and the numbers of finished and of all stories.
    pub(crate) story: Option<(TaskTurn, (u64, u64))>,
    pub(crate) saving: Saving,
    pub(crate) start: Start,
    pub(crate) recovery: Recovery,
    pub(crate) busy: BusyList,
    pub(crate) waiting: Waiting,
    /// The run whose hooks last caused a warning, and how many they have caused.
    pub(crate) hook_warnings: (Run, u32),
    /// The run at whose end a person last looked at the worker.
    pub(crate) seen: Option<Run>,
    /// The status as it was noted last, and since when the worker has it.
    pub(crate) status_since: Option<StatusSince>,
}

pub(crate) fn policy(spec: &WorkerSpec) -> Policy {
    Policy {
        paste: spec.prompt_via == PromptVia::Paste && spec.prompt != Prompt::None,
        ready_wait: spec.ready_wait,
        ready_timeout: spec.ready_timeout,
        one_shot: spec.profile.is_one_shot(&spec.cmd),
    }
}

pub(crate) fn engine(spec: &WorkerSpec) -> Worker {
    match (&spec.ralph, spec.restart) {
        (Some(ralph), _) => Worker::verified(
            policy(spec),
            ralph.max_iterations,
            ralph.inactivity_timeout,
            ralph.budgets.clone(),
            !ralph.gates.is_empty(),
        )
        .asking(ralph.question_timeout),
        (None, Some(restart)) => Worker::restarting(policy(spec), restart),
        (None, None) => Worker::plain(policy(spec)),
    }
}

impl Slot {
    /// A slot for a new worker, or for one that was loaded from its record.
    pub(crate) fn new(spec: WorkerSpec, engine: Worker, context: RunContext) -> Result<Self> {
        let reader = Arc::new(Mutex::new(input::reader(&spec)?));
        context.held.store(engine.is_held(), Ordering::Relaxed);
        Ok(Self {
            spec: Arc::new(spec),
            engine,
            origin: Origin { started: crate::daemon::clock::local_now(), ..Origin::default() },
            pane: None,
            worktree: None,
            driver: Driver::start(context),
            reader,
            last_screen: String::new(),
            requests: HeldRequests::default(),
            checking: vec![],
            story: None,
            saving: Saving::default(),
            start: Start::Settled,
            recovery: Recovery::Done,
            busy: BusyList::default(),
            waiting: Waiting::default(),
            hook_warnings: (Run(0), 0),
            seen: None,
            status_since: None,
        })
    }

    pub(crate) fn record(&self) -> Result<Record> {
        let engine = serde_json::to_value(&self.engine)
            .map_err(|e| Error::system("cannot write the worker's state down", e))?;
        let iteration = self.engine.ralph().map(|l| l.iteration);
        let metadata = Metadata { ralph: iteration.is_some(), ralph_iteration: iteration, extra: Map::new() };
        Ok(Record {
            format: FORMAT,
            name: self.spec.name.clone(),
            metadata,
            spec: (*self.spec).clone(),
            started: self.origin.started,
            pane: self.pane.clone(),
            worktree: self.worktree.clone(),
            engine,
            legacy: self.origin.legacy.clone(),
            request: self.origin.request.clone(),
            seen: self.seen,
            status_since: self.status_since,
            machine: Some(owner::here().clone()),
            lost_with: self.origin.lost_with.clone(),
            extra: self.origin.extra.clone(),
        })
    }

    /// The loop as `state.json` stores it; `None` for a plain worker.
    pub(crate) fn ralph_file(&self) -> Option<RalphFile> {
        let (ralph, wanted) = (self.engine.ralph()?, self.spec.ralph.as_ref()?);
        Some(RalphFile {
            worker_name: self.spec.name.clone(),
            prompt_file: wanted.prompt_file.clone(),
            max_iterations: ralph.max_iterations,
            current_iteration: ralph.iteration,
            status: self.engine.loop_status()?,
            started: self.origin.started.naive_local(),
            last_iteration_started: ralph.iteration_started.map(|t| t.naive_local()),
            consecutive_failures: ralph.failures,
            total_failures: ralph.total_failures,
            done_pattern: self.spec.done_pattern.clone(),
            inactivity_timeout: ralph.inactivity_timeout,
            reason: self.reason_slug().map(str::to_owned),
            paused_by: ralph.paused,
            question_timeout: ralph.question_timeout,
            message: self.engine.failure(),
            format: FORMAT,
            extra: Map::new(),
        })
    }

    /// Why the loop has ended or is paused.
    pub(crate) fn reason_slug(&self) -> Option<&'static str> {
        match self.engine.phase() {
            Phase::Stopped { reason } => Some(reason.slug()),
            _ => self.engine.ralph()?.paused.and_then(PauseBy::slug),
        }
    }

    /// Replaces the reader for the run that is about to start.
    pub(crate) fn renew_reader(&mut self) {
        if let Ok(reader) = input::reader(&self.spec) {
            self.reader = Arc::new(Mutex::new(reader));
        }
    }

    /// Rebuilds the reader of the live run: for a new done pattern, or in a new daemon.
    pub(crate) fn rebuild_reader(&mut self) {
        let dir = self.driver.context.run_dir(self.engine.run());
        let is_review = || loop_run_of(self).turn_mode() == Some(IterationMode::Review);
        let reviewer = self.spec.of_reviewer().filter(|_| is_review());
        let spec = reviewer.as_ref().unwrap_or(&self.spec);
        if let (Ok(mut fresh), Ok(mut shared)) = (input::reader(spec), self.reader.lock()) {
            // Under the lock: input that is being sent now is in the folder, or passed to the reader afterwards.
            input::restore_reader(&dir, &mut fresh);
            *shared = fresh;
        }
    }

    /// Applies checked changes of a loop's settings, as far as the spec has them. The engine has the others.
    pub(crate) fn edit_spec(&mut self, edits: &Edits) {
        let spec = Arc::make_mut(&mut self.spec);
        if let (Some(file), Some(ralph)) = (&edits.prompt_file, &mut spec.ralph) {
            ralph.prompt_file.clone_from(file);
            spec.prompt = Prompt::File(file.clone());
        }
        if let Some(ralph) = &mut spec.ralph {
            edits.budgets.apply(&mut ralph.budgets);
        }
        if let Some(pattern) = &edits.done_pattern {
            spec.done_pattern.clone_from(pattern);
            // The live run is watched with the new pattern too.
            self.rebuild_reader();
        }
    }

    /// The current iteration; `None` for a plain worker.
    pub(crate) fn iteration(&self, now: Now) -> Option<IterationInfo> {
        let ralph = self.engine.ralph()?;
        Some(IterationInfo {
            number: ralph.iteration,
            max: ralph.max_iterations,
            id: loop_id(self.origin.started),
            started: ralph.iteration_started,
            worked: ralph.worked,
            until: ralph.time_left(now).and_then(|left| Instant::now().checked_add(left)),
        })
    }

    pub(crate) fn cwd(&self) -> &Path {
        self.worktree.as_ref().map_or(&self.spec.cwd, |worktree| &worktree.path)
    }

    /// The loop with a task list; `None` for another worker.
    pub(crate) fn task_loop(&self) -> Option<LoopRun> {
        self.spec.ralph.as_ref()?.gates.tasks.as_ref()?;
        Some(loop_run_of(self))
    }

    /// Steps the engine. Nothing else in the daemon does.
    pub(crate) fn step(&mut self, event: Event, now: Now) -> Vec<Effect> {
        let effects = self.engine.step(event, now);
        self.driver.context.held.store(self.engine.is_held(), Ordering::Relaxed);
        effects
    }

    pub(crate) fn take_pending(&mut self) -> Option<PendingSpawn> {
        match std::mem::replace(&mut self.start, Start::Settled) {
            Start::Pending(pending) => Some(pending),
            other => {
                self.start = other;
                None
            }
        }
    }

    pub(crate) fn pending(&mut self) -> Option<&mut PendingSpawn> {
        if let Start::Pending(pending) = &mut self.start { Some(pending) } else { None }
    }

    /// Refuses to begin work on a worker while other work on it is under way.
    pub(crate) fn refuse_busy(&self) -> Result<()> {
        let replaced = self.waiting.after_stop.iter().any(|after| matches!(after, AfterStop::Replace(..)));
        let what = match self.busy.current() {
            Some(kind) => kind.text(),
            None if replaced => " is being replaced",
            None => return Ok(()),
        };
        let message = format!("worker '{}'{what}", self.spec.name);
        Err(Error::conflict(message).hint("wait a moment, then retry"))
    }

    /// The worker's status. A worker that waits for disk space or memory is `waiting`.
    pub(crate) fn status(&self) -> Status {
        let waits = self.saving.waits_for_disk().is_some() || self.saving.waits_for_pressure().is_some();
        if waits { Status::Waiting } else { self.engine.status() }
    }

    /// Updates the running checks, or the story of the iteration, by a notice about it.
    pub(crate) fn note_work(&mut self, entry: &Entry) {
        match entry {
            Entry::StoryStarted { mode, story, title, done, total, .. } => {
                let turn = TaskTurn { mode: *mode, story: story.clone(), title: title.clone() };
                self.story = Some((turn, (*done, *total)));
            }
            Entry::CheckStarted { check, .. } => self.checking.push(check.clone()),
            Entry::Checked { check, .. } => {
                if let Some(at) = self.checking.iter().position(|running| running == check) {
                    self.checking.remove(at);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn note_status(&mut self) {
        let status = self.status();
        if self.status_since.is_none_or(|since| since.status != status) {
            self.status_since = Some(StatusSince { status, at: crate::daemon::clock::local_now() });
        }
    }

    /// Whether its saved state was not yet compared with the panes of its tmux server.
    pub(crate) fn is_unreconciled(&self) -> bool {
        matches!(self.recovery, Recovery::Pending { .. })
    }

    /// Whether a person has looked at the worker since its last run ended.
    pub(crate) fn is_seen(&self) -> bool {
        self.engine.is_stopped() && self.seen == Some(self.engine.run())
    }
}

pub(crate) fn loop_run_of(slot: &Slot) -> LoopRun {
    loop_run(&slot.driver.context, &slot.spec, &loop_id(slot.origin.started), slot.cwd())
}

/// A directory of its repository that is there even when its worktree is gone.
pub(crate) fn repo_of(slot: &Slot) -> PathBuf {
    slot.worktree.as_ref().map_or(&slot.spec.cwd, |worktree| &worktree.base_repo).clone()
}
