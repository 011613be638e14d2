//! The one owner of all state, and the only writer.
//!
//! It pops an input, steps that worker's engine, writes if told to, answers, hands effects to the worker's
//! driver, and sleeps until the earliest deadline. No mutex around state, no wait on anything but its
//! inbox: whatever is slow lives in a driver or in the watcher, so `ls` is answered at once whatever hangs.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use swarm_state::engine::{AwakeClock, Effect, Event, Now, Phase, SpawnError};
use swarm_state::model::{Run, WorkerName};
use swarm_state::notice::Entry;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::boot::Found;
use super::driver::{Context, Job, Report};
use super::notices::Notices;
use super::slot::{AfterStop, Reply, Slot};
use super::watcher::{Looked, Target, Watcher};
use super::{ending, views};
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Call, Notice, Snapshot, SubscribeParams};
use crate::store::{DaemonLock, Problem, Store};
use crate::tmux::{Options, Socket, Tmux};

/// Between two looks at the screens, and between two tries to save what could not be saved.
const LOOK: Duration = Duration::from_secs(2);

/// Between two looks while somebody is not ready yet: a person waits for it.
const LOOK_READY: Duration = Duration::from_millis(500);

/// How long the end of the daemon waits for the end of an empty tmux server.
const LEAVE: Duration = Duration::from_secs(2);

/// The longest sleep: a wake-up an hour is not worth avoiding and bounds what a missed one can cost.
const LONGEST: Duration = Duration::from_secs(3600);

/// The answer to a subscription: the snapshot, and the notices to come.
pub(crate) type Subscription = (Snapshot, mpsc::Receiver<Notice>);

/// How the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Pause the loops; agents go on.
    Stop,
    /// Another daemon takes over: pause nothing.
    Handover,
}

/// What can wake the supervisor: one list.
pub(crate) enum Input {
    /// A client's call.
    Call { call: Box<Call>, peer: Option<i32>, reply: Reply },
    /// A client that wants to listen.
    Subscribe { params: SubscribeParams, reply: oneshot::Sender<Result<Subscription>> },
    /// A driver's news.
    Report { worker: WorkerName, birth: u64, report: Report },
    /// The watcher's news.
    Looked(Box<Looked>),
    /// A tmux that was silent at the start has answered.
    Found { socket: Option<String>, found: Found },
    /// A signal, or the end of a `daemon.stop`.
    End(End),
}

/// The supervisor.
pub(crate) struct Supervisor {
    pub(super) slots: BTreeMap<WorkerName, Slot>,
    pub(super) store: Arc<Store>,
    pub(super) problems: Vec<Problem>,
    pub(super) notices: Notices,
    pub(super) inbox: mpsc::UnboundedSender<Input>,
    pub(super) exe: Arc<PathBuf>,
    pub(super) tmux_source: Option<PathBuf>,
    pub(super) started: chrono::DateTime<chrono::FixedOffset>,
    servers: HashMap<Option<String>, Server>,
    births: u64,
    clock: AwakeClock,
    planned: Duration,
    awake: Duration,
    next_look: Option<Instant>,
    ended: Option<End>,
    lock: DaemonLock,
}

/// One tmux server and who looks at it; the watcher is away while it looks.
struct Server {
    tmux: Tmux,
    watcher: Option<Watcher>,
}

impl Supervisor {
    /// A supervisor with no workers yet.
    pub(crate) fn new(
        store: Arc<Store>,
        inbox: mpsc::UnboundedSender<Input>,
        exe: PathBuf,
        tmux_source: Option<PathBuf>,
        lock: DaemonLock,
    ) -> Self {
        let started = super::local_now();
        let raw = super::monotonic();
        Self {
            slots: BTreeMap::new(),
            store,
            problems: vec![],
            notices: Notices::new(started.timestamp_millis()),
            inbox,
            exe: Arc::new(exe),
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
    pub(super) fn now(&self) -> Now {
        Now { mono: self.awake, wall: super::local_now() }
    }

    fn notice_time(&mut self) {
        let wall = super::local_now().timestamp_millis();
        let (awake, jump) = self.clock.observe(super::monotonic(), wall, self.planned);
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

    /// Looks at the screens when it is time and somebody's screen is of interest; otherwise plans no wake-up.
    fn look_if_due(&mut self) {
        let wanted = self.slots.values().any(|s| s.unsaved || s.engine.wants_screen());
        let starting = self.slots.values().any(|s| matches!(s.engine.phase(), Phase::Starting { .. }));
        let next = Instant::now() + if starting { LOOK_READY } else { LOOK };
        match (wanted, self.next_look) {
            (false, _) => self.next_look = None,
            (true, None) => self.next_look = Some(next),
            (true, Some(at)) if at > next => self.next_look = Some(next),
            (true, Some(at)) if at <= Instant::now() => {
                self.next_look = Some(next);
                if !self.lock.is_current() {
                    // Another daemon may be at work in a new directory of that name by now.
                    tracing::error!("the directory was removed under this daemon; it writes nothing more");
                    self.ended = Some(End::Handover);
                    return;
                }
                self.save_again();
                self.look();
            }
            (true, Some(_)) => {}
        }
    }

    fn look(&mut self) {
        for (key, server) in &mut self.servers {
            let targets: Vec<_> = self
                .slots
                .iter()
                .filter(|(_, s)| s.spec.tmux_socket == *key && s.engine.wants_screen())
                .filter_map(|(name, s)| {
                    let (pane, reader) = (s.pane.clone()?, s.reader.clone());
                    Some(Target { name: name.clone(), pane, reader, whole: s.spec.done_pattern.is_some() })
                })
                .collect();
            if targets.is_empty() {
                continue;
            }
            // A watcher that is still away has a slow tmux; it reports when it can.
            let Some(watcher) = server.watcher.take() else { continue };
            let (tmux, inbox, key) = (server.tmux.clone(), self.inbox.clone(), key.clone());
            tokio::spawn(async move {
                let looked = watcher.look(key, &tmux, targets).await;
                drop(inbox.send(Input::Looked(Box::new(looked))));
            });
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
            Input::End(end) => self.take_end(end),
        }
    }

    /// Ends the daemon after this input.
    pub(super) fn take_end(&mut self, end: End) {
        if end == End::Stop {
            self.pause_all();
        }
        self.ended = Some(end);
    }

    fn looked(&mut self, looked: Looked) {
        if let Some(server) = self.servers.get_mut(&looked.server) {
            server.watcher = Some(looked.watcher);
        }
        for (name, look) in looked.looks {
            // The worker may have a new pane by now, or the name a new worker.
            let own = |slot: &&mut Slot| slot.pane.as_ref().is_some_and(|pane| *pane == look.pane);
            let Some(slot) = self.slots.get_mut(&name).filter(own) else { continue };
            slot.last_screen = look.screen.unwrap_or_else(|| std::mem::take(&mut slot.last_screen));
            slot.engine.step(Event::Reachable(true), Now { mono: self.awake, wall: super::local_now() });
            self.step(&name, look.event);
        }
        for name in looked.unreachable {
            self.step(&name, Event::Reachable(false));
        }
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
            Report::Forced(names) => {
                slot.forced.extend(names);
                return;
            }
            Report::Warning(message) => return self.tell(name, Entry::Warning { message }),
            Report::Silent => Event::Reachable(false),
            Report::Up(pane) => {
                let run = pane.run;
                if slot.engine.run() == run {
                    slot.pane = Some(pane);
                }
                self.advance(name, Event::Reachable(true));
                Event::Up(run)
            }
            Report::SpawnFailed(run, error) => Event::SpawnFailed(run, error),
            Report::Prompt(run, Ok(())) => Event::PromptSent(run),
            Report::Prompt(run, Err(error)) => Event::PromptFailed(run, error.message),
            Report::Exited(run, exit) => Event::Exited(run, exit),
            Report::PaneLost(run) => Event::PaneLost(run),
            Report::ServerLost(run) => Event::ServerLost(run),
            Report::Probed(run, busy) => Event::Probed(run, busy),
            Report::Judged(run, verdict) => {
                if slot.pane.as_ref().is_some_and(|p| p.run == run) {
                    slot.pane = None;
                }
                self.advance(name, Event::Judged(run, verdict));
                self.leave_run(name, run);
                return self.settle(name);
            }
        };
        self.step(name, event);
    }

    /// A run is judged: its folder goes, but not before what follows from the verdict is saved (a daemon that
    /// dies in between must find the verdict again), and before a successor of the same name may use it.
    fn leave_run(&self, name: &WorkerName, run: Run) {
        if self.slots.get(name).is_some_and(|s| !s.unsaved) {
            // Left-overs are swept at the next start.
            drop(self.store.remove_run_dir(name, run));
        }
    }

    fn subscribe(&mut self, params: SubscribeParams) -> Result<Subscription> {
        if let Some(name) = &params.worker {
            self.find(name)?;
        }
        let wanted = |name: &WorkerName| params.worker.as_deref().is_none_or(|w| w == name.as_str());
        let workers = self.slots.iter().filter(|(n, _)| wanted(n)).map(|(_, s)| views::worker(s)).collect();
        let seq = self.notices.seq();
        let (notices, gap) = self.notices.listen(params.worker, params.since);
        Ok((Snapshot { seq, gap, workers }, notices))
    }

    // ---- the engine and its effects ----

    /// Steps one worker, carries out what it says, and goes on with what waited for its end.
    pub(super) fn step(&mut self, name: &WorkerName, event: Event) {
        self.advance(name, event);
        self.settle(name);
    }

    fn advance(&mut self, name: &WorkerName, event: Event) {
        // A boundary may follow: what was edited by hand must be known before it.
        if matches!(event, Event::Judged(..) | Event::Resume | Event::Tick | Event::SpawnFailed(..)) {
            self.absorb_edits(name);
        }
        let now = self.now();
        let Some(slot) = self.slots.get_mut(name) else { return };
        if event == Event::Kill {
            slot.driver.context.hurry.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        let effects = slot.engine.step(event, now);
        for effect in effects {
            self.perform(name, effect);
        }
        self.let_go(name);
    }

    /// A run that waits for a save and is no longer wanted will never be: nothing of it exists.
    fn let_go(&mut self, name: &WorkerName) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let doomed = matches!(slot.engine.phase(), Phase::Spawning { doomed: true });
        if doomed && let Some(run) = slot.held.take() {
            let never = SpawnError::Other("it was never started".into());
            self.advance(name, Event::SpawnFailed(run, never));
        }
    }

    fn perform(&mut self, name: &WorkerName, effect: Effect) {
        super::crash::before(&effect);
        match effect {
            Effect::Persist => {
                self.save(name);
                return super::crash::point("persist+");
            }
            Effect::Tell(entry) => {
                self.tell(name, entry);
                return super::crash::point("tell+");
            }
            Effect::Spawn(run) => return self.spawn_run(name, run),
            Effect::Deliver(_)
            | Effect::Terminate(_)
            | Effect::ForceKill(_)
            | Effect::Probe(_)
            | Effect::Judge(_) => {}
        }
        let Some(slot) = self.slots.get_mut(name) else { return };
        let pane = slot.pane.clone();
        let context = slot.driver.context.clone();
        match (effect, pane) {
            (Effect::Deliver(run), Some(pane)) if pane.run == run => {
                slot.driver.push(Job::Deliver { pane, reader: slot.reader.clone() });
            }
            (Effect::Terminate(run), Some(pane)) if pane.run == run => ending::terminate(&pane),
            (Effect::ForceKill(run), Some(pane)) if pane.run == run => ending::force_kill(context, &pane),
            (Effect::Probe(run), Some(pane)) if pane.run == run => ending::probe(context, run, &pane),
            (Effect::Judge(run), pane) => slot.driver.push(Job::Judge {
                run,
                exit: slot.engine.last_exit().unwrap_or(swarm_state::model::Exit::Unknown),
                iteration: slot.engine.ralph().map(|l| l.iteration),
                pane: pane.filter(|p| p.run == run),
                spec: slot.spec.clone(),
                reader: slot.reader.clone(),
            }),
            (effect, _) => tracing::error!(worker = %name, ?effect, "no pane for this effect"),
        }
    }

    pub(super) fn spawn_run(&mut self, name: &WorkerName, run: Run) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        // Rule 3 of the engine: what is not written down is not started.
        if slot.unsaved {
            slot.held = Some(run);
            return;
        }
        slot.pane = None;
        slot.last_screen.clear();
        slot.renew_reader();
        slot.driver.push(Job::Spawn {
            run,
            iteration: slot.engine.ralph().map(|l| l.iteration),
            spec: slot.spec.clone(),
            worktree: slot.worktree.clone(),
        });
    }

    /// Tells those who listen, and the loop's log.
    pub(super) fn tell(&mut self, name: &WorkerName, entry: Entry) {
        self.chronicle(name, &entry);
        tracing::info!(worker = %name, ?entry);
        self.answer_newborn(name, &entry);
        if let Some(slot) = self.slots.get(name) {
            self.notices.tell(name.as_str(), slot.engine.status(), entry);
        }
    }

    /// What follows when a worker has come to its end: answers that wait for it.
    fn settle(&mut self, name: &WorkerName) {
        if let Some(slot) = self.slots.get_mut(name).filter(|s| s.stillborn) {
            slot.stillborn = false;
            return self.bury(name);
        }
        let Some(slot) = self.slots.get_mut(name).filter(|s| s.engine.is_stopped()) else { return };
        for after in std::mem::take(&mut slot.after_stop) {
            match after {
                AfterStop::Killed(params, reply) => self.finish_kill(name, params, reply),
                AfterStop::Replace(params, reply) => self.spawn(*params, reply),
            }
        }
    }

    fn pause_all(&mut self) {
        let names: Vec<_> = self.slots.keys().cloned().collect();
        for name in names {
            self.step(&name, Event::Pause(swarm_state::notice::PauseBy::Shutdown));
        }
    }

    // ---- finding things ----

    /// A worker by the text a client sent.
    pub(super) fn find(&mut self, text: &str) -> Result<(WorkerName, &mut Slot)> {
        let name = WorkerName::new(text).map_err(|e| Error::invalid(e.to_string()))?;
        match self.slots.get_mut(&name) {
            Some(slot) => Ok((name, slot)),
            None => {
                Err(Error::new(ErrorCode::NotFound, format!("no worker named '{name}'")).hint("swarm ls"))
            }
        }
    }

    /// The tmux server of a socket that a user named, or ours.
    pub(super) fn tmux(&mut self, key: &Option<String>) -> Tmux {
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
            Server { tmux, watcher: Some(Watcher::default()) }
        });
        server.tmux.clone()
    }

    /// What a worker's driver works with.
    pub(super) fn context(&mut self, name: &WorkerName, socket: &Option<String>) -> Context {
        self.births += 1;
        Context {
            name: name.clone(),
            birth: self.births,
            tmux: self.tmux(socket),
            store: self.store.clone(),
            inbox: self.inbox.clone(),
            exe: self.exe.clone(),
            hurry: Arc::default(),
        }
    }

    /// Answers a call.
    pub(super) fn answer<T: serde::Serialize>(reply: Reply, result: Result<T>) {
        let value = result.and_then(|t| {
            serde_json::to_value(t)
                .map_err(|e| Error::new(ErrorCode::Internal, format!("cannot answer: {e}")))
        });
        // A client that went away needs no answer.
        drop(reply.send(value as Result<Value>));
    }
}
