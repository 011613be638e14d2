//! The context of every client command: the printer, the configuration file, the paths and the connection.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::call;
use super::connect::{self, Client, QUICK_TIMEOUT};
use crate::error::Result;
use crate::out::Out;
use crate::paths::Paths;
use crate::protocol::{Call, Empty, Named};

/// The data that every client command has.
pub(super) struct ClientContext {
    pub(super) out: Out,
    /// The file of `-c FILE`.
    pub(super) config: Option<PathBuf>,
}

impl ClientContext {
    /// Returns the paths. They are resolved only when needed, since some commands work without a home directory.
    pub(super) fn paths(&self) -> Result<Paths> {
        Paths::from_env()
    }

    /// Connects to the daemon, and starts it when it does not run.
    pub(super) async fn connect(&self) -> Result<Client> {
        connect::connect(&self.paths()?).await
    }

    /// Reports that a person was shown a finished worker by its name. A program that reads the output counts as none.
    pub(super) async fn report_seen(&self, name: &str, is_finished: bool) {
        if is_finished && Out::is_terminal() {
            let call = Call::Seen(Named { name: name.to_owned() });
            // An earlier daemon does not have this method.
            drop(self.call::<Empty>(&call, QUICK_TIMEOUT).await);
        }
    }

    /// Makes one call on a connection of its own.
    pub(super) async fn call<T: DeserializeOwned>(&self, call: &Call, limit: Duration) -> Result<T> {
        call::call(&self.paths()?, call, limit).await
    }
}
