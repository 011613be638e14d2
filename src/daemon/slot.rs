//! What the supervisor holds of one worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use chrono::{DateTime, FixedOffset};
use serde_json::{Map, Value};
use swarm_state::engine::{Now, Phase, Policy, Worker};
use swarm_state::format::{FORMAT, Legacy, Metadata, RalphFile, Record};
use swarm_state::model::{Pane, PromptVia, Run, Status, WorkerName, Worktree};
use swarm_state::notice::{Entry, PauseBy};
use swarm_state::pattern::Pattern;
use swarm_state::screen::ScreenReader;
use swarm_state::spec::{Prompt, WorkerSpec};
use tokio::time::Instant;

use crate::daemon::busy::Busy;
use crate::daemon::messages::{AfterStop, IterationInfo, PendingSpawn, QueuedInput, SharedReader};
use crate::daemon::run::context::RunContext;
use crate::daemon::run::driver::Driver;
use crate::daemon::run::input;
use crate::daemon::run::iteration::{course, loop_id};
use crate::error::{Error, ErrorCode, Result};
use crate::loops::Course;
use crate::store::RalphStamp;

/// One worker.
pub(crate) struct Slot {
    pub(crate) spec: Arc<WorkerSpec>,
    pub(crate) engine: Worker,
    pub(crate) started: DateTime<FixedOffset>,
    pub(crate) pane: Option<Pane>,
    pub(crate) worktree: Option<Worktree>,
    /// The request that made it.
    pub(crate) request: Option<String>,
    /// The notice from which on all are this worker's.
    pub(crate) since: u64,
    /// Fields of its record that this version does not know.
    pub(crate) extra: Map<String, Value>,
    /// Set for a worker that another swarm made: it is shown and never touched.
    pub(crate) legacy: Option<Legacy>,
    pub(crate) driver: Driver,
    pub(crate) reader: SharedReader,
    /// The last save failed: the disk is full or the like.
    pub(crate) unsaved: bool,
    /// What the disk said then.
    pub(crate) save_error: Option<String>,
    /// A mark on disk says of the unsaved state what a crash must not undo.
    pub(crate) marked: bool,
    /// What became of its run while no daemon was there is not known yet.
    pub(crate) unreconciled: bool,
    /// Its first run never came up: it goes as soon as it has stopped.
    pub(crate) never_started: bool,
    /// It is being forgotten: its name is not free yet.
    pub(crate) leaving: bool,
    /// What else is being done to it in several steps.
    pub(crate) busy: Weak<Busy>,
    /// Why the output of its last run cannot be stored; its pane keeps it, and nothing starts until then.
    pub(crate) unstored: Option<String>,
    /// The checks that run now.
    pub(crate) checking: Vec<String>,
    /// A run that may start as soon as a save succeeds.
    pub(crate) held: Option<Run>,
    /// `state.json` as it was last written, and what tells that somebody else wrote it since.
    pub(crate) ralph_known: Option<RalphFile>,
    pub(crate) ralph_stamp: Option<RalphStamp>,
    /// The stamp of our own last write.
    pub(crate) ralph_written: Option<RalphStamp>,
    /// What the daemon before logged of the current iteration; emptied by the first line that is new.
    pub(crate) log_tail: Vec<String>,
    /// Lines of the log that are not written yet.
    pub(crate) unlogged: Vec<String>,
    /// Processes that the current kill had to force.
    pub(crate) forced: Vec<String>,
    pub(crate) pending: Option<PendingSpawn>,
    /// What people sent while the agent was coming up.
    pub(crate) queued: Vec<QueuedInput>,
    pub(crate) after_stop: Vec<AfterStop>,
    /// The last lines of the screen as it was when it was captured, as they were captured.
    pub(crate) last_screen: String,
}

/// What the engine must know of a spec.
pub(crate) fn policy(spec: &WorkerSpec) -> Policy {
    Policy {
        paste: spec.prompt_via == PromptVia::Paste && spec.prompt != Prompt::None,
        ready_wait: spec.ready_wait,
        ready_timeout: spec.ready_timeout,
        one_shot: spec.profile.is_one_shot(&spec.cmd),
    }
}

/// A fresh engine for a spec.
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

/// A reader for one run of a spec; fresh for each run, since what was on an earlier run's screen is no news.
/// What the run is given to read it is told by who gives it.
pub(crate) fn reader(spec: &WorkerSpec) -> Result<ScreenReader> {
    let invalid = |e: &dyn std::fmt::Display| Error::invalid(format!("invalid pattern: {e}"));
    let done = spec.done_pattern.as_deref().map(Pattern::compile).transpose().map_err(|e| invalid(&e))?;
    ScreenReader::new(&spec.profile, done, None).map_err(|e| invalid(&e))
}

impl Slot {
    /// A worker that was just asked for, or that a record tells of.
    pub(crate) fn new(spec: WorkerSpec, engine: Worker, context: RunContext) -> Result<Self> {
        let reader = Arc::new(Mutex::new(reader(&spec)?));
        Ok(Self {
            spec: Arc::new(spec),
            engine,
            started: crate::daemon::clock::local_now(),
            pane: None,
            worktree: None,
            request: None,
            since: 0,
            extra: Map::new(),
            legacy: None,
            driver: Driver::start(context),
            reader,
            unsaved: false,
            save_error: None,
            marked: false,
            unreconciled: false,
            never_started: false,
            leaving: false,
            busy: Weak::new(),
            unstored: None,
            checking: vec![],
            held: None,
            ralph_known: None,
            ralph_stamp: None,
            ralph_written: None,
            log_tail: vec![],
            unlogged: vec![],
            forced: vec![],
            pending: None,
            queued: vec![],
            after_stop: vec![],
            last_screen: String::new(),
        })
    }

    /// Its record, as it is to be written down.
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
            started: self.started,
            pane: self.pane.clone(),
            worktree: self.worktree.clone(),
            engine,
            legacy: self.legacy.clone(),
            request: self.request.clone(),
            extra: self.extra.clone(),
        })
    }

    /// Its loop, as `state.json` is to hold it; `None` for a plain worker.
    pub(crate) fn ralph_file(&self) -> Option<RalphFile> {
        let (ralph, wanted) = (self.engine.ralph()?, self.spec.ralph.as_ref()?);
        let reason = match self.engine.phase() {
            Phase::Stopped { reason } => Some(reason.slug().to_owned()),
            _ => ralph.paused.and_then(PauseBy::slug).map(str::to_owned),
        };
        Some(RalphFile {
            worker_name: self.spec.name.clone(),
            prompt_file: wanted.prompt_file.clone(),
            max_iterations: ralph.max_iterations,
            current_iteration: ralph.iteration,
            status: self.engine.loop_status()?,
            started: self.started.naive_local(),
            last_iteration_started: ralph.iteration_started.map(|t| t.naive_local()),
            consecutive_failures: ralph.failures,
            total_failures: ralph.total_failures,
            done_pattern: self.spec.done_pattern.clone(),
            inactivity_timeout: ralph.inactivity_timeout,
            reason,
            paused_by: ralph.paused,
            question_timeout: ralph.question_timeout,
            message: self.engine.failure(),
            format: FORMAT,
            extra: Map::new(),
        })
    }

    /// Makes the reader new for the run that is about to start.
    pub(crate) fn renew_reader(&mut self) {
        if let Ok(reader) = reader(&self.spec) {
            self.reader = Arc::new(Mutex::new(reader));
        }
    }

    /// Makes the reader new for the run that is under way: for a new done pattern, or in a new daemon.
    pub(crate) fn rebuild_reader(&mut self) {
        let dir = self.driver.context.run_dir(self.engine.run());
        if let (Ok(mut fresh), Ok(mut shared)) = (reader(&self.spec), self.reader.lock()) {
            // Under the lock: what is being given just now is either in the folder or told afterwards.
            input::restore_reader(&dir, &mut fresh);
            *shared = fresh;
        }
    }

    /// The current iteration; `None` for a plain worker.
    pub(crate) fn iteration(&self, now: Now) -> Option<IterationInfo> {
        let ralph = self.engine.ralph()?;
        Some(IterationInfo {
            number: ralph.iteration,
            max: ralph.max_iterations,
            id: loop_id(self.started),
            started: ralph.iteration_started,
            worked: ralph.worked,
            until: ralph.time_left(now).and_then(|left| Instant::now().checked_add(left)),
        })
    }

    /// Begins something that takes several steps.
    pub(crate) fn begin(&mut self, what: &'static str) -> Arc<Busy> {
        let busy = Arc::new(Busy { what, killed: AtomicBool::new(false) });
        self.busy = Arc::downgrade(&busy);
        busy
    }

    /// A kill came: what is under way does not start the worker again.
    pub(crate) fn cancel_busy(&self) {
        if let Some(busy) = Weak::upgrade(&self.busy) {
            busy.killed.store(true, Ordering::Relaxed);
        }
    }

    /// Refuses to begin something while something else is under way that decides what becomes of the worker.
    pub(crate) fn refuse_busy(&self) -> Result<()> {
        let name = &self.spec.name;
        if self.leaving {
            return Err(leaving(name));
        }
        let replaced = self.after_stop.iter().any(|after| matches!(after, AfterStop::Replace(..)));
        let what = match Weak::upgrade(&self.busy) {
            Some(busy) => busy.what,
            None if replaced => "is just being replaced",
            None => return Ok(()),
        };
        Err(Error::new(ErrorCode::Conflict, format!("worker '{name}' {what}")).hint("try again in a moment"))
    }

    /// Why it stands still until the disk takes what is to be written; `None` while it goes on.
    pub(crate) fn waits_for_disk(&self) -> Option<String> {
        let why = match &self.unstored {
            Some(why) => format!("its output cannot be stored: {why}"),
            None if self.unsaved && self.held.is_some() => {
                format!("its state cannot be saved: {}", self.save_error.as_ref()?)
            }
            None => return None,
        };
        Some(why)
    }

    /// The one word for how it is. One that stands still for want of room waits for a person like any other.
    pub(crate) fn status(&self) -> Status {
        if self.waits_for_disk().is_some() { Status::Waiting } else { self.engine.status() }
    }

    /// A check that has ended runs no more.
    pub(crate) fn checked(&mut self, entry: &Entry) {
        if let Entry::Checked { check, .. } = entry
            && let Some(at) = self.checking.iter().position(|running| running == check)
        {
            self.checking.remove(at);
        }
    }

    /// True while somebody is still owed an answer or the worker itself is live.
    pub(crate) fn is_live(&self) -> bool {
        !self.engine.is_stopped() && self.engine.phase() != &Phase::Lost
    }
}

/// The loop of a worker, where it works now.
pub(crate) fn course_of(slot: &Slot) -> Course {
    let cwd = slot.worktree.as_ref().map_or(&slot.spec.cwd, |worktree| &worktree.path);
    course(&slot.driver.context, &slot.spec, &loop_id(slot.started), cwd)
}

/// The refusal of a name that is about to be free.
fn leaving(name: &WorkerName) -> Error {
    Error::new(ErrorCode::Conflict, format!("worker '{name}' is just being removed"))
        .hint("try again in a moment")
}
