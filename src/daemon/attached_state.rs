//! The clients of the tmux servers as the daemon knows them: state and schedule.
//!
//! [`super::attached`] lists the clients and passes to the engines who types.

use std::collections::HashMap;
use std::time::Duration;

use swarm_state::attached::ClientWatch;
use swarm_state::engine::RELEASE_DELAY;
use tokio::time::Instant;

/// Between two lists of clients while a person is attached.
const ATTACHED_INTERVAL: Duration = Duration::from_millis(250);

/// How long after a request of `swarm attach` its client may take to appear.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(10);

/// Replaces [`RELEASE_DELAY`] in tests, in milliseconds.
const RELEASE_DELAY_VARIABLE: &str = "SWARM_RELEASE_DELAY_MS";

pub(crate) struct Attached {
    servers: HashMap<Option<String>, AttachedServer>,
    /// How long a hold by typing lasts after the person has left.
    pub(crate) release_delay: Duration,
    /// The second in which the daemon started.
    since: i64,
    /// A task lists the clients.
    is_asking: bool,
    /// When to list them next.
    pub(crate) wake: Option<Instant>,
}

pub(crate) struct AttachedServer {
    pub(crate) watch: ClientWatch,
    /// A person is attached to a worker, or holds one by typing.
    pub(crate) is_busy: bool,
    /// A client is about to attach, until then.
    expected: Option<Instant>,
}

impl Attached {
    pub(crate) fn new(since: i64) -> Self {
        let set = std::env::var(RELEASE_DELAY_VARIABLE).ok().and_then(|text| text.parse().ok());
        let release_delay = set.map_or(RELEASE_DELAY, Duration::from_millis);
        Self { servers: HashMap::new(), release_delay, since, is_asking: false, wake: None }
    }

    pub(crate) fn server(&mut self, socket: &Option<String>) -> &mut AttachedServer {
        let new = || AttachedServer { watch: ClientWatch::new(self.since), is_busy: false, expected: None };
        self.servers.entry(socket.clone()).or_insert_with(new)
    }

    /// A client is about to attach to a worker on this server.
    pub(crate) fn expect(&mut self, socket: &Option<String>) {
        self.server(socket).expected = Some(Instant::now() + ATTACH_TIMEOUT);
        self.plan();
    }

    /// Returns the servers whose clients must be listed now; `None` if it is not the time.
    pub(crate) fn take_due(&mut self) -> Option<Vec<Option<String>>> {
        self.wake.filter(|at| !self.is_asking && *at <= Instant::now())?;
        self.is_asking = true;
        // The answer plans the next list.
        self.wake = None;
        let due = self.servers.iter().filter(|(_, server)| server.is_due());
        Some(due.map(|(socket, _)| socket.clone()).collect())
    }

    /// The clients that were due are listed.
    pub(crate) fn taken(&mut self) {
        self.is_asking = false;
    }

    pub(crate) fn plan(&mut self) {
        let due = !self.is_asking && self.servers.values().any(AttachedServer::is_due);
        self.wake = due.then(|| Instant::now() + ATTACHED_INTERVAL);
    }
}

impl AttachedServer {
    fn is_due(&self) -> bool {
        self.is_busy || self.expected.is_some_and(|until| until > Instant::now())
    }
}
