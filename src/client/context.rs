//! The context of every client command: the printer, the configuration file, the paths and the connection.
//!
//! When a daemon is killed between a request and its answer, the client cannot see whether the request was carried
//! out. Idempotent requests are sent again to the next daemon; for the others the user has to check. A spawn is
//! idempotent: its request has an id, by which the next daemon finds a worker that was already started. Deliberately
//! absent: subscriptions, which reconnect by themselves ([`super::subscription`]).

use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::connect::{self, Client, QUICK_TIMEOUT};
use super::subscription::HOST_RETRY_TIMEOUT;
use crate::error::{ErrorCode, Result};
use crate::out::Out;
use crate::paths::Paths;
use crate::protocol::{Call, Empty, Named, WorkerHost, WorkerView};
use crate::remote::Place;

/// How often a call is sent before it fails.
const MAX_CALL_ATTEMPTS: usize = 5;

/// How long swarm reconnects after a connection ended. A call is always sent a second time, and a third time only
/// within this time after the first end.
const LINK_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay between two attempts within [`LINK_TIMEOUT`].
const LINK_DELAY: Duration = Duration::from_millis(500);

/// The delay between two attempts to reach a remote host again.
pub(super) const RECONNECT_DELAY: Duration = Duration::from_secs(1);

pub(super) struct ClientContext {
    pub(super) out: Out,
    pub(super) config: Option<PathBuf>,
    /// The host of the command line; `None` for this machine.
    pub(super) host: Option<Place>,
}

impl ClientContext {
    /// Returns the daemon's place and the paths. They are resolved only when needed, since some commands work without a
    /// home directory.
    pub(super) fn place(&self) -> Result<Place> {
        match &self.host {
            Some(host) => Ok(host.clone()),
            None => Ok(Place::from(&Paths::from_env()?)),
        }
    }

    pub(super) fn on_host(&self, worker: WorkerView) -> WorkerView {
        let name = self.host.as_ref().and_then(Place::host_name);
        let host = name.map(|name| WorkerHost { name: name.clone(), silent_for: None });
        WorkerView { host, ..worker }
    }

    pub(super) async fn connect(&self) -> Result<Client> {
        connect::connect(&self.place()?).await
    }

    /// Connects again after a connection that broke. A remote host gets the time in which a link comes back.
    pub(super) async fn reconnect(&self) -> Result<Client> {
        let start = Instant::now();
        loop {
            match self.connect().await {
                Err(error)
                    if error.code == ErrorCode::Unreachable && start.elapsed() < HOST_RETRY_TIMEOUT =>
                {
                    sleep(RECONNECT_DELAY).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Reports that a person was shown a finished worker by its name. A program that reads the output counts as none.
    pub(super) async fn report_seen(&self, name: &str, is_finished: bool) {
        if is_finished && Out::is_terminal() {
            let call = Call::Seen(Named { name: name.to_owned() });
            // An earlier daemon does not have this method.
            drop(self.call::<Empty>(&call, QUICK_TIMEOUT).await);
        }
    }

    pub(super) async fn call<T: DeserializeOwned>(&self, call: &Call, limit: Duration) -> Result<T> {
        self::call(&self.place()?, call, limit).await
    }
}

/// Makes a call. When the daemon dies before it answers, an idempotent call is sent to the next daemon.
pub(super) async fn call<T: DeserializeOwned>(place: &Place, request: &Call, limit: Duration) -> Result<T> {
    let mut attempts = 1;
    let (mut lost, mut first_lost) = (None, None);
    loop {
        let answer = match connect::connect(place).await {
            Ok(mut client) => client.call(request, limit).await,
            // A link that was cut under the first attempt may need a moment.
            Err(error)
                if error.code == ErrorCode::Unreachable
                    && lost.is_some_and(|at: Instant| at.elapsed() < LINK_TIMEOUT) =>
            {
                sleep(LINK_DELAY).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        match answer {
            Err(error)
                if matches!(error.code, ErrorCode::NoDaemon | ErrorCode::Unreachable)
                    && request.is_repeatable()
                    && attempts < MAX_CALL_ATTEMPTS
                    && first_lost.is_none_or(|at: Instant| at.elapsed() < LINK_TIMEOUT) =>
            {
                attempts += 1;
                lost = Some(Instant::now());
                first_lost = first_lost.or(lost);
            }
            answer => return answer,
        }
    }
}
