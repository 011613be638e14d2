//! What happens to workers, heard over restarts of the daemon: for `wait` and `events`.
//!
//! A subscription that breaks is made again, from the last notice that was heard. A daemon that was killed is
//! started again for it; one that was stopped on purpose is not, but is given the time of a restart. What
//! sets the two apart is the socket: only a daemon that ends in order removes it. Deliberately absent: what
//! the news mean, and the follower of one loop ([`super::follow`]), which has signals to listen to as well.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::client::connect::{self, Client, QUICK};
use crate::error::{Error, ErrorCode, Result};
use crate::paths::Paths;
use crate::protocol::{Call, Notice, Snapshot, SubscribeParams};

/// For how long a daemon is tried that is there and does not answer, or does not come up.
const GIVE_UP: Duration = Duration::from_secs(60);

/// For how long one that ended in order may take to be followed by another.
const RESTART: Duration = Duration::from_secs(10);

/// Between the end of a connection and the look at why: the socket goes a moment later.
const SETTLE: Duration = Duration::from_millis(200);

/// One piece of news.
pub(super) enum Heard {
    /// A subscription began, the first or another one.
    Snapshot(Snapshot),
    /// Something happened.
    Notice(Notice),
}

/// A subscription that outlives its connection.
pub(super) struct Hearing {
    paths: Paths,
    worker: Option<String>,
    since: Option<u64>,
    client: Option<Client>,
    begun: bool,
}

impl Hearing {
    /// News of one worker or of all, after `since` or from now on.
    pub(super) fn new(paths: Paths, worker: Option<String>, since: Option<u64>) -> Self {
        Self { paths, worker, since, client: None, begun: false }
    }

    /// The next news; a snapshot first.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] when there is no such worker (any more); [`ErrorCode::NoDaemon`] when the
    /// daemon was stopped or cannot be had.
    pub(super) async fn next(&mut self) -> Result<Heard> {
        if let Some(client) = &mut self.client {
            match client.notice().await {
                Ok(notice) => {
                    self.since = Some(notice.seq);
                    return Ok(Heard::Notice(notice));
                }
                Err(error) if unreached(&error) => self.client = None,
                Err(error) => return Err(error),
            }
        }
        let snapshot = if self.begun { self.again().await? } else { self.subscribe().await? };
        self.begun = true;
        if snapshot.replayed == 0 {
            self.since = Some(snapshot.seq);
        }
        Ok(Heard::Snapshot(snapshot))
    }

    async fn subscribe(&mut self) -> Result<Snapshot> {
        let mut client = connect::connect(&self.paths).await?;
        let call = Call::Subscribe(SubscribeParams { worker: self.worker.clone(), since: self.since });
        let snapshot = client.call(&call, QUICK).await?;
        self.client = Some(client);
        Ok(snapshot)
    }

    /// Subscribes after a connection that broke.
    async fn again(&mut self) -> Result<Snapshot> {
        sleep(SETTLE).await;
        let start = Instant::now();
        let mut wait = SETTLE;
        loop {
            if !self.paths.socket().exists() {
                self.comes_back().await?;
            }
            match self.subscribe().await {
                Err(error) if unreached(&error) && start.elapsed() < GIVE_UP => {}
                outcome => return outcome,
            }
            sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(5));
        }
    }

    /// Waits until a daemon is there again, started by somebody else.
    async fn comes_back(&self) -> Result<()> {
        let until = Instant::now() + RESTART;
        while Instant::now() < until {
            if matches!(connect::connect_existing(&self.paths).await, Ok(Some(_))) {
                return Ok(());
            }
            sleep(SETTLE).await;
        }
        Err(Error::new(ErrorCode::NoDaemon, "the daemon was stopped").hint("swarm daemon start"))
    }
}

/// The daemon was not there, or did not answer in time.
fn unreached(error: &Error) -> bool {
    matches!(error.code, ErrorCode::NoDaemon | ErrorCode::Timeout)
}
