//! The context of every client command: the printer, the configuration file, the paths and the connection.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use super::call;
use super::connect::{self, Client, QUICK_TIMEOUT};
use super::subscription::HOST_RETRY_TIMEOUT;
use crate::error::{ErrorCode, Result};
use crate::out::Out;
use crate::paths::Paths;
use crate::protocol::{Call, Empty, Named, WorkerHost, WorkerView};
use crate::remote::Place;

/// The delay between two attempts to reach a remote host again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// The data that every client command has.
pub(super) struct ClientContext {
    pub(super) out: Out,
    /// The file of `-c FILE`.
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
        call::call(&self.place()?, call, limit).await
    }
}
