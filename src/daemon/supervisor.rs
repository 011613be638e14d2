//! Owns the state of all workers and loops, and is the only one that changes it.
//!
//! It receives an input, steps that worker's engine, saves if the engine requires it, answers, passes effects to the
//! worker's driver, and sleeps until the earliest deadline. It has no mutex around its state and waits for nothing
//! but its inbox. Slow work runs in drivers and tasks, so that `ls` is answered at once even while tmux hangs.
//!
//! Here: state, clock, and lookup of workers. The loop is in [`super::inputs`], each request in [`super::verbs`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use swarm_state::engine::{AwakeClock, Now};
use swarm_state::model::WorkerName;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::daemon::attached_state::Attached;
use crate::daemon::directory_watch::DirectoryWatch;
use crate::daemon::event_log::EventLog;
use crate::daemon::helper::Helper;
use crate::daemon::messages::{DaemonEnd, DaemonInput, Inbox};
use crate::daemon::notices::Notices;
use crate::daemon::notify_state::Notifying;
use crate::daemon::quotas::Quotas;
use crate::daemon::run::context::RunContext;
use crate::daemon::slot::Slot;
use crate::error::{Error, ErrorCode, Result};
use crate::store::{DaemonLock, Problem, Store};
use crate::tmux::watch::ChangeFilter;
use crate::tmux::{Socket, Tmux, TmuxOptions};

/// How often the directory is checked where it cannot be watched, because the system's inotify instances are used up.
const UNWATCHED_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How often the owner of a shared directory is checked. `swarm daemon take-over` waits longer than that.
const OWNER_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The longest sleep. It limits the damage of a missed wake-up and costs one wake-up an hour.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

/// The longest sleep while a loop waits for a reset, a wall-clock time: the machine may be suspended meanwhile.
const MAX_PARKED_SLEEP: Duration = Duration::from_secs(60);

pub(crate) struct Supervisor {
    pub(crate) slots: BTreeMap<WorkerName, Slot>,
    pub(crate) store: Arc<Store>,
    pub(crate) problems: Vec<Problem>,
    /// Names of workers that were deleted since the daemon started.
    pub(crate) forgotten: BTreeSet<WorkerName>,
    pub(crate) notices: Notices,
    pub(crate) notifying: Notifying,
    pub(crate) attached: Attached,
    pub(crate) quotas: Quotas,
    pub(crate) inbox: Inbox,
    pub(crate) helper: Arc<Helper>,
    pub(crate) tmux_source: Option<PathBuf>,
    /// Loops that the last shutdown paused are resumed once they are reconciled.
    pub(crate) resumes_after_shutdown: bool,
    pub(crate) started: chrono::DateTime<chrono::FixedOffset>,
    /// The end of the last morning view that a person was shown.
    pub(crate) looked: Option<chrono::DateTime<chrono::FixedOffset>>,
    pub(crate) servers: HashMap<Option<String>, TmuxServer>,
    incarnations: u64,
    clock: AwakeClock,
    pub(crate) planned: Duration,
    pub(crate) awake: Duration,
    pub(crate) next_look: Option<Instant>,
    pub(crate) ended: Option<DaemonEnd>,
    pub(crate) lock: DaemonLock,
    pub(crate) removal: Option<DirectoryWatch>,
    /// Counts removals below the directory; and the count up to which missing files were restored.
    pub(crate) touches: u64,
    pub(crate) settled: u64,
}

/// One tmux server. `filter` is absent while a look at its panes is under way.
pub(crate) struct TmuxServer {
    pub(crate) tmux: Tmux,
    pub(crate) filter: Option<ChangeFilter>,
    pub(crate) sweep: SweepState,
}

/// The state of the search for orphaned panes on one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SweepState {
    #[default]
    Idle,
    /// A search is under way.
    Away {
        /// Something happened since that the search may have missed.
        again: bool,
    },
}

impl Supervisor {
    pub(crate) fn new(
        store: Arc<Store>,
        inbox: Inbox,
        helper: Helper,
        tmux_source: Option<PathBuf>,
        lock: DaemonLock,
    ) -> Self {
        let started = crate::daemon::clock::local_now();
        let raw = crate::daemon::clock::monotonic();
        let first = Notices::first_number(started.timestamp_millis());
        let (log, stored) = EventLog::open(store.clone(), first);
        Self {
            slots: BTreeMap::new(),
            notifying: Notifying::new(store.paths(), first),
            looked: None,
            attached: Attached::new(started.timestamp()),
            quotas: Quotas::load(store.paths()),
            store,
            problems: vec![],
            forgotten: BTreeSet::new(),
            notices: Notices::new(first, stored, Some(log)),
            inbox,
            helper: Arc::new(helper),
            tmux_source,
            resumes_after_shutdown: false,
            started,
            servers: HashMap::new(),
            incarnations: 0,
            clock: AwakeClock::new(raw, started.timestamp_millis()),
            planned: MAX_SLEEP,
            awake: raw,
            next_look: None,
            ended: None,
            lock,
            removal: None,
            touches: 0,
            settled: 0,
        }
    }

    /// Starts to watch the directory for removals, and one that is shared between hosts for a new owner.
    pub(crate) fn watch_removals(&mut self) {
        if self.store.paths().is_shared() {
            let inbox = self.inbox.clone();
            tokio::spawn(async move {
                while inbox.send(DaemonInput::CheckOwner).is_ok() {
                    tokio::time::sleep(OWNER_CHECK_INTERVAL).await;
                }
            });
        }
        match DirectoryWatch::start(self.store.paths(), &self.inbox) {
            Ok(watch) => self.removal = Some(watch),
            Err(error) => {
                tracing::warn!(%error, "the directory cannot be watched, so it is checked every 5 s");
                let inbox = self.inbox.clone();
                tokio::spawn(async move {
                    while inbox.send(DaemonInput::DirectoryTouched).is_ok() {
                        tokio::time::sleep(UNWATCHED_CHECK_INTERVAL).await;
                    }
                });
            }
        }
    }

    pub(crate) fn now(&self) -> Now {
        Now { mono: self.awake, wall: crate::daemon::clock::local_now() }
    }

    pub(crate) fn advance_clock(&mut self) {
        let wall = chrono::Utc::now().timestamp_millis();
        let (awake, jump) = self.clock.observe(crate::daemon::clock::monotonic(), wall, self.planned);
        self.awake = awake;
        if let Some(jump) = jump {
            tracing::warn!(asleep = ?jump.asleep, wall_ms = jump.wall_ms, "time jumped; it is not read as silence");
        }
    }

    pub(crate) fn sleep(&self) -> Duration {
        let awake = self.awake;
        let deadlines = self.slots.values().filter_map(|s| s.engine.deadline());
        let first = deadlines.min().map(|at| at.saturating_sub(awake));
        let planned = [self.next_look, self.notifying.wake, self.attached.wake].into_iter().flatten();
        let planned = planned.map(|at| at.saturating_duration_since(Instant::now()));
        let is_parked = self.slots.values().any(|slot| slot.engine.is_parked());
        let longest = if is_parked { MAX_PARKED_SLEEP } else { MAX_SLEEP };
        first.into_iter().chain(planned).min().unwrap_or(longest).min(longest)
    }

    pub(crate) fn names(&self, is_meant: impl Fn(&Slot) -> bool) -> Vec<WorkerName> {
        let meant = self.slots.iter().filter(|(_, slot)| is_meant(slot));
        meant.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn find(&mut self, text: &str) -> Result<(WorkerName, &mut Slot)> {
        let name = WorkerName::new(text).map_err(|e| Error::invalid(e.to_string()))?;
        match self.slots.get_mut(&name) {
            Some(slot) => Ok((name, slot)),
            None => {
                Err(Error::new(ErrorCode::NotFound, format!("no worker named '{name}'")).hint("swarm ls"))
            }
        }
    }

    /// Finds a loop by the name that a client sent. The error for a worker that is not a loop is documented.
    pub(crate) fn find_loop(&mut self, text: &str) -> Result<(WorkerName, &mut Slot)> {
        let (name, slot) = self.find(text)?;
        if slot.engine.ralph().is_some() {
            return Ok((name, slot));
        }
        Err(Error::invalid(format!("worker '{text}' is not a ralph worker")).hint("swarm ralph ls"))
    }

    /// The tmux server of a socket that the user named, or swarm's own.
    pub(crate) fn tmux(&mut self, key: &Option<String>) -> Tmux {
        let store = &self.store;
        let source = self.tmux_source.clone();
        let server = self.servers.entry(key.clone()).or_insert_with(|| {
            let mut options = TmuxOptions { source, ..TmuxOptions::own(store.paths()) };
            match key {
                None => {}
                Some(path) if path.contains('/') => options.socket = Socket::Path(PathBuf::from(path)),
                Some(name) => options.socket = Socket::Name(name.clone()),
            }
            let tmux = Tmux::new(options);
            TmuxServer { tmux, filter: Some(ChangeFilter::default()), sweep: SweepState::Idle }
        });
        server.tmux.clone()
    }

    pub(crate) fn context(&mut self, name: &WorkerName, socket: &Option<String>) -> RunContext {
        self.incarnations += 1;
        RunContext {
            name: name.clone(),
            incarnation: self.incarnations,
            tmux: self.tmux(socket),
            store: self.store.clone(),
            inbox: self.inbox.clone(),
            helper: self.helper.clone(),
            hurry: Arc::default(),
            held: Arc::default(),
            forcing: Arc::default(),
            prompts: Arc::new(watch::Sender::new(0)),
        }
    }
}
