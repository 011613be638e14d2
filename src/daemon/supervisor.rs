//! The one owner of all state, and the only writer.
//!
//! It pops an input, steps that worker's engine, writes if told to, answers, hands effects to the worker's
//! driver, and sleeps until the earliest deadline. No mutex around state, no wait on anything but its
//! inbox: whatever is slow lives in a driver or in the watcher, so `ls` is answered at once whatever hangs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use swarm_state::engine::{AwakeClock, Event, Now};
use swarm_state::model::WorkerName;
use swarm_state::notice::Entry;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::daemon::helper::Helper;
use crate::daemon::messages::{End, Input, Prompted, Reply, Report};
use crate::daemon::notices::Notices;
use crate::daemon::removals::Watch;
use crate::daemon::run::context::Context;
use crate::daemon::slot::Slot;
use crate::daemon::sweeping::Sweep;
use crate::daemon::watcher::Watcher;
use crate::error::{Error, ErrorCode, Result};
use crate::store::{DaemonLock, Problem, Store};
use crate::tmux::{Options, Socket, Tmux};

/// How long the end of the daemon waits for the end of an empty tmux server.
const LEAVE: Duration = Duration::from_secs(2);

/// The longest sleep: a wake-up an hour is not worth avoiding and bounds what a missed one can cost.
const LONGEST: Duration = Duration::from_secs(3600);

/// The supervisor.
pub(crate) struct Supervisor {
    pub(crate) slots: BTreeMap<WorkerName, Slot>,
    pub(crate) store: Arc<Store>,
    pub(crate) problems: Vec<Problem>,
    /// Names that had workers here, which are forgotten.
    pub(crate) forgotten: BTreeSet<WorkerName>,
    pub(crate) notices: Notices,
    pub(crate) inbox: mpsc::UnboundedSender<Input>,
    pub(crate) helper: Arc<Helper>,
    pub(crate) tmux_source: Option<PathBuf>,
    pub(crate) started: chrono::DateTime<chrono::FixedOffset>,
    pub(crate) servers: HashMap<Option<String>, Server>,
    births: u64,
    clock: AwakeClock,
    planned: Duration,
    pub(crate) awake: Duration,
    pub(crate) next_look: Option<Instant>,
    pub(crate) ended: Option<End>,
    pub(crate) lock: DaemonLock,
    pub(crate) removal: Option<Watch>,
    /// How often something was removed, and up to which of them what was missing is there again.
    pub(crate) touches: u64,
    pub(crate) settled: u64,
}

/// One tmux server and who looks at it; the watcher is away while it looks.
pub(crate) struct Server {
    pub(crate) tmux: Tmux,
    pub(crate) watcher: Option<Watcher>,
    pub(crate) sweep: Sweep,
}

impl Supervisor {
    /// A supervisor with no workers yet.
    pub(crate) fn new(
        store: Arc<Store>,
        inbox: mpsc::UnboundedSender<Input>,
        helper: Helper,
        tmux_source: Option<PathBuf>,
        lock: DaemonLock,
    ) -> Self {
        let started = crate::daemon::clock::local_now();
        let raw = crate::daemon::clock::monotonic();
        Self {
            slots: BTreeMap::new(),
            store,
            problems: vec![],
            forgotten: BTreeSet::new(),
            notices: Notices::new(started.timestamp_millis()),
            inbox,
            helper: Arc::new(helper),
            tmux_source,
            started,
            servers: HashMap::new(),
            births: 0,
            clock: AwakeClock::new(raw, started.timestamp_millis()),
            planned: LONGEST,
            awake: raw,
            next_look: None,
            ended: None,
            lock,
            removal: None,
            touches: 0,
            settled: 0,
        }
    }

    /// Hears of removals from here on.
    pub(crate) fn watch_removals(&mut self) {
        match Watch::start(self.store.paths(), &self.inbox) {
            Ok(watch) => self.removal = Some(watch),
            // The looks at the screens still ask.
            Err(error) => tracing::warn!(%error, "the directory cannot be watched"),
        }
    }

    /// Serves until it is told to end; gives the lock back.
    pub(crate) async fn run(mut self, mut inputs: mpsc::UnboundedReceiver<Input>) -> (End, DaemonLock) {
        loop {
            self.look_if_due();
            let sleep = self.sleep();
            self.planned = sleep;
            let input = tokio::time::timeout(sleep, inputs.recv()).await;
            self.notice_time();
            match input {
                Ok(Some(input)) => self.take(input),
                // The supervisor holds a sender itself, so the inbox cannot close.
                Ok(None) => return (End::Stop, self.lock),
                Err(_) => self.tick(),
            }
            if let Some(end) = self.ended {
                self.leave_tmux(end).await;
                return (end, self.lock);
            }
        }
    }

    /// Ends our own tmux server when nothing is left in it and no daemon is to follow.
    async fn leave_tmux(&self, end: End) {
        let in_use = self.slots.values().any(|s| s.spec.tmux_socket.is_none() && s.engine.has_pane());
        let server = self.servers.get(&None).filter(|_| end == End::Stop && !in_use);
        if let Some(server) = server {
            // One that does not answer is left where it is.
            drop(tokio::time::timeout(LEAVE, server.tmux.shutdown_if_empty()).await);
        }
    }

    // ---- time ----

    /// The time, as the engine wants it.
    pub(crate) fn now(&self) -> Now {
        Now { mono: self.awake, wall: crate::daemon::clock::local_now() }
    }

    fn notice_time(&mut self) {
        let wall = crate::daemon::clock::local_now().timestamp_millis();
        let (awake, jump) = self.clock.observe(crate::daemon::clock::monotonic(), wall, self.planned);
        self.awake = awake;
        if let Some(jump) = jump {
            tracing::warn!(asleep = ?jump.asleep, wall_ms = jump.wall_ms, "time jumped; it is not read as silence");
        }
    }

    fn sleep(&self) -> Duration {
        let awake = self.awake;
        let deadlines = self.slots.values().filter_map(|s| s.engine.deadline());
        let first = deadlines.min().map(|at| at.saturating_sub(awake));
        let look = self.next_look.map(|at| at.saturating_duration_since(Instant::now()));
        first.into_iter().chain(look).min().unwrap_or(LONGEST).min(LONGEST)
    }

    fn tick(&mut self) {
        let due: Vec<_> = self
            .slots
            .iter()
            .filter(|(_, s)| s.engine.deadline().is_some_and(|at| at <= self.awake))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            self.step(&name, Event::Tick);
        }
    }

    // ---- inputs ----

    fn take(&mut self, input: Input) {
        match input {
            Input::Call { call, peer, reply } => self.call(*call, peer, reply),
            Input::Subscribe { params, reply } => {
                drop(reply.send(self.subscribe(params)));
            }
            Input::Report { worker, birth, report } => self.report(&worker, birth, report),
            Input::Looked(looked) => self.looked(*looked),
            Input::Found { socket, found } => self.settle_late(&socket, &found),
            Input::Swept { socket, found } => self.swept(&socket, &found),
            Input::Respawn(wish) => self.respawn_on(*wish),
            Input::Cleaned(cleaning) => self.cleaned(*cleaning),
            Input::TakeOver { name, peer, outcome, reply } => self.take_over(&name, peer, outcome, reply),
            Input::Dismiss { name, outcome, reply } => self.dismiss(&name, outcome, reply),
            Input::DirectoryTouched => self.directory_touched(),
            Input::RemovalSettled(touch) => self.removal_settled(touch),
            Input::End(end) => self.take_end(end),
        }
    }

    /// Ends the daemon after this input.
    pub(crate) fn take_end(&mut self, end: End) {
        if end == End::Stop {
            self.pause_all();
        }
        self.ended = Some(end);
    }

    fn report(&mut self, name: &WorkerName, birth: u64, report: Report) {
        // Runs are numbered anew for each worker, so the run alone does not tell whom the news is about.
        let own = |slot: &&mut Slot| slot.driver.context.birth == birth;
        let Some(slot) = self.slots.get_mut(name).filter(own) else { return };
        let event = match report {
            Report::WorktreeMade(worktree) => {
                slot.worktree = Some(worktree);
                return self.save(name);
            }
            Report::WorktreeGone => {
                slot.worktree = None;
                return self.save(name);
            }
            Report::Forced(names) => return slot.forced.extend(names),
            Report::Unstored(why) => return slot.unstored = Some(why),
            Report::Warning(message) => return self.tell(name, Entry::Warning { message }),
            Report::Told(entry) => {
                slot.checked(&entry);
                return self.tell(name, entry);
            }
            Report::Begun(warnings) => return self.answer_begun(name, warnings),
            Report::Checking(check) => return slot.checking.push(check),
            Report::Silent => Event::Reachable(false),
            Report::Frozen => return self.answer_frozen(name),
            Report::Unclosed => return self.sweep_after(name),
            Report::Up(pane) => {
                let run = pane.run;
                slot.checking.clear();
                if slot.engine.run() == run {
                    slot.pane = Some(pane);
                }
                self.advance(name, Event::Reachable(true));
                Event::Up(run)
            }
            Report::SpawnFailed(run, error) => {
                // tmux may have made the window after all.
                slot.checking.clear();
                self.sweep_after(name);
                Event::SpawnFailed(run, error)
            }
            Report::Prompt(run, Ok(Prompted::Accepted)) => Event::PromptSent(run),
            Report::Prompt(run, Ok(Prompted::Blocked(dialog))) => Event::PromptBlocked(run, dialog),
            Report::Prompt(run, Err(error)) => Event::PromptFailed(run, error.message),
            Report::Exited(run, exit) => Event::Exited(run, exit),
            Report::PaneLost(run) => Event::PaneLost(run),
            Report::ServerLost(run) => Event::ServerLost(run),
            Report::Typed(run) => Event::Typed(run),
            Report::Grew(run, ago) => Event::Grew(run, ago),
            Report::Probed(run, busy) => Event::Probed(run, busy),
            Report::Judged(run, verdict) => {
                if slot.pane.as_ref().is_some_and(|p| p.run == run) {
                    slot.pane = None;
                }
                slot.unstored = None;
                slot.checking.clear();
                self.advance(name, Event::Judged(run, verdict));
                self.leave_run(name, run);
                return self.settle(name);
            }
        };
        self.step(name, event);
    }

    fn pause_all(&mut self) {
        let ours = self.slots.iter().filter(|(_, slot)| slot.legacy.is_none());
        let names: Vec<_> = ours.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.step(&name, Event::Pause(swarm_state::notice::PauseBy::Shutdown));
        }
    }

    // ---- finding things ----

    /// A worker by the text a client sent.
    pub(crate) fn find(&mut self, text: &str) -> Result<(WorkerName, &mut Slot)> {
        let name = WorkerName::new(text).map_err(|e| Error::invalid(e.to_string()))?;
        match self.slots.get_mut(&name) {
            Some(slot) => Ok((name, slot)),
            None => {
                Err(Error::new(ErrorCode::NotFound, format!("no worker named '{name}'")).hint("swarm ls"))
            }
        }
    }

    /// A loop by the text a client sent; anything else is the document's error.
    pub(crate) fn find_loop(&mut self, text: &str) -> Result<(WorkerName, &mut Slot)> {
        WorkerName::new(text).map_err(|e| Error::invalid(e.to_string()))?;
        match self.find(text) {
            Ok((name, slot)) if slot.engine.ralph().is_some() => Ok((name, slot)),
            Ok(_) | Err(_) => {
                Err(Error::invalid(format!("worker '{text}' is not a ralph worker")).hint("swarm ralph ls"))
            }
        }
    }

    /// The tmux server of a socket that a user named, or ours.
    pub(crate) fn tmux(&mut self, key: &Option<String>) -> Tmux {
        let store = &self.store;
        let source = self.tmux_source.clone();
        let server = self.servers.entry(key.clone()).or_insert_with(|| {
            let socket = match key {
                None => Socket::Path(store.paths().tmux_socket()),
                Some(path) if path.contains('/') => Socket::Path(PathBuf::from(path)),
                Some(name) => Socket::Name(name.clone()),
            };
            let config = store.paths().tmux_conf();
            let tmux = Tmux::new(Options { socket, config, source, session: "swarm".into() });
            Server { tmux, watcher: Some(Watcher::default()), sweep: Sweep::Idle }
        });
        server.tmux.clone()
    }

    /// What a worker's driver works with.
    pub(crate) fn context(&mut self, name: &WorkerName, socket: &Option<String>) -> Context {
        self.births += 1;
        Context {
            name: name.clone(),
            birth: self.births,
            tmux: self.tmux(socket),
            store: self.store.clone(),
            inbox: self.inbox.clone(),
            helper: self.helper.clone(),
            hurry: Arc::default(),
            forcing: Arc::default(),
            prompts: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Answers a call.
    pub(crate) fn answer<T: serde::Serialize>(reply: Reply, result: Result<T>) {
        let value = result.and_then(|t| {
            serde_json::to_value(t)
                .map_err(|e| Error::new(ErrorCode::Internal, format!("cannot answer: {e}")))
        });
        // A client that went away needs no answer.
        drop(reply.send(value as Result<Value>));
    }
}
