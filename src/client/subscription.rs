//! A subscription that survives restarts of the daemon: for `wait`, `events` and the follower of a loop.
//!
//! When the connection breaks, the subscription is made again after the last notice that was received. A daemon that
//! was killed is started again for it. A daemon that was stopped on purpose is not, but it gets the time of a restart.
//! The socket shows the difference: only a daemon that ends in order removes it. A link to a remote host that was
//! cut is made again for ten minutes. Deliberately absent: the meaning of the notices.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::connect::{self, Client, QUICK_TIMEOUT};
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Call, Notice, Snapshot, SubscribeParams};
use crate::remote::Place;

/// How long to retry while a daemon does not answer or does not start.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// The same for a remote host: a laptop sleeps, a host restarts, and a link comes back.
pub(super) const HOST_RETRY_TIMEOUT: Duration = Duration::from_secs(600);

/// How long to wait for the next daemon after one that ended in order.
const RESTART_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay between the end of a connection and the check of the socket, which is removed a moment later.
const SOCKET_CHECK_DELAY: Duration = Duration::from_millis(200);

/// The longest delay between two attempts.
const MAX_SUBSCRIBE_DELAY: Duration = Duration::from_secs(5);

/// How often a subscription is requested whose connection to a remote host is lost before the answer.
const MAX_SUBSCRIBE_ATTEMPTS: u32 = 3;

pub(super) enum Update {
    /// The subscription was made, for the first time or again.
    Snapshot(Snapshot),
    Notice(Notice),
    /// The daemon was stopped on purpose, and no other one was started.
    DaemonStopped,
}

/// A subscription that outlives its connection.
pub(super) struct DurableSubscription {
    place: Place,
    worker: Option<String>,
    since: Option<u64>,
    client: Option<Client>,
    /// Whether to retry when a connection fails.
    retries: bool,
}

impl DurableSubscription {
    /// Subscribes to a single named worker, else to all, after the notice `since` or from now on. The first connection
    /// is not retried.
    pub(super) fn new(place: Place, names: &BTreeSet<&str>, since: Option<u64>) -> Self {
        let worker = names.first().filter(|_| names.len() == 1).map(|name| (*name).to_owned());
        Self { place, worker, since, client: None, retries: false }
    }

    /// Subscribes to a worker that a daemon has just reported, and retries the first connection too.
    pub(super) fn of_known_worker(place: Place, worker: String, since: u64) -> Self {
        Self { place, worker: Some(worker), since: Some(since), client: None, retries: true }
    }

    /// Returns the next update. The first one is a snapshot. Must not be canceled while it reconnects.
    /// [`ErrorCode::NotFound`] when the worker does not exist, or no longer; [`ErrorCode::NoDaemon`] or
    /// [`ErrorCode::Timeout`] when no daemon can be reached; [`ErrorCode::Unreachable`] for a remote host.
    pub(super) async fn next(&mut self) -> Result<Update> {
        if let Some(client) = &mut self.client {
            match client.notice().await {
                Ok(notice) => {
                    self.since = Some(notice.seq);
                    return Ok(Update::Notice(notice));
                }
                Err(error) if is_unreachable(&error) => self.client = None,
                Err(error) => return Err(error),
            }
            sleep(SOCKET_CHECK_DELAY).await;
        }
        let Some(snapshot) =
            (if self.retries { self.reconnect().await? } else { Some(self.connect().await?) })
        else {
            return Ok(Update::DaemonStopped);
        };
        self.retries = true;
        if snapshot.replayed == 0 {
            self.since = Some(snapshot.seq);
        }
        Ok(Update::Snapshot(snapshot))
    }

    async fn connect(&mut self) -> Result<Snapshot> {
        let mut attempts = 1;
        loop {
            let mut client = connect::connect(&self.place).await?;
            let call = Call::Subscribe(SubscribeParams { worker: self.worker.clone(), since: self.since });
            match client.call(&call, QUICK_TIMEOUT).await {
                // The connection was there and is lost: another one may be made at once.
                Err(error) if error.code == ErrorCode::Unreachable && attempts < MAX_SUBSCRIBE_ATTEMPTS => {
                    attempts += 1
                }
                answer => {
                    let snapshot = answer?;
                    self.client = Some(client);
                    return Ok(snapshot);
                }
            }
        }
    }

    /// Connects, and retries for a while; returns `None` when the daemon was stopped on purpose.
    async fn reconnect(&mut self) -> Result<Option<Snapshot>> {
        let start = Instant::now();
        let mut delay = SOCKET_CHECK_DELAY;
        loop {
            let (was_stopped, limit) = match self.place.host() {
                None => (!self.place.socket().exists(), RETRY_TIMEOUT),
                // A client that only follows starts no daemon that was killed: the host's service manager or the next
                // command does.
                Some(_) => {
                    let is_stopped = matches!(connect::connect_existing(&self.place).await, Ok(None));
                    (is_stopped, HOST_RETRY_TIMEOUT)
                }
            };
            if was_stopped && !self.is_restarted().await {
                return Ok(None);
            }
            match self.connect().await {
                Err(error) if is_unreachable(&error) && start.elapsed() < limit => {}
                outcome => return outcome.map(Some),
            }
            sleep(delay).await;
            delay = (delay * 2).min(MAX_SUBSCRIBE_DELAY);
        }
    }

    async fn is_restarted(&self) -> bool {
        let deadline = Instant::now() + RESTART_TIMEOUT;
        while Instant::now() < deadline {
            if matches!(connect::connect_existing(&self.place).await, Ok(Some(_))) {
                return true;
            }
            sleep(SOCKET_CHECK_DELAY).await;
        }
        false
    }
}

pub(super) fn refuse_unknown(names: &BTreeSet<&str>, snapshot: &Snapshot) -> Result<()> {
    match names.iter().find(|name| !snapshot.workers.iter().any(|worker| worker.name == **name)) {
        None => Ok(()),
        Some(name) => Err(unknown_worker(name)),
    }
}

pub(super) fn unknown_worker(name: &str) -> Error {
    Error::new(ErrorCode::NotFound, format!("no worker named '{name}'")).hint("swarm ls")
}

pub(super) fn daemon_stopped() -> Error {
    Error::new(ErrorCode::NoDaemon, "the daemon was stopped").hint("swarm daemon start")
}

/// Whether the daemon was not there, or did not answer in time.
pub(super) fn is_unreachable(error: &Error) -> bool {
    matches!(error.code, ErrorCode::NoDaemon | ErrorCode::Timeout | ErrorCode::Unreachable)
}
