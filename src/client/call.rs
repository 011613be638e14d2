//! One call, also when the daemon dies under it.
//!
//! A daemon that is killed between a request and its answer leaves a client that does not know whether the thing
//! was done. What can be asked for twice is asked of the next daemon; for the rest the person has to look. A
//! spawn can: it has a name, by which the next daemon knows whether the worker is there already. Deliberately absent:
//! subscriptions, which come back by themselves ([`super::subscription`], [`super::follow`]).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;

use crate::client::connect;
use crate::error::{ErrorCode, Result};
use crate::paths::Paths;
use crate::protocol::Call;

/// Daemons that may die under one call before it is given up.
const TRIES: usize = 5;

/// Makes a call; of the next daemon where one died before it answered, if the call may be made twice.
pub(super) async fn call<T: DeserializeOwned>(paths: &Paths, request: &Call, limit: Duration) -> Result<T> {
    let mut tries = 1;
    loop {
        let answer = connect::connect(paths).await?.call(request, limit).await;
        match answer {
            Err(error) if error.code == ErrorCode::NoDaemon && is_repeatable(request) && tries < TRIES => {
                tries += 1;
            }
            answer => return answer,
        }
    }
}

/// Whether doing it once more does no more, and says no less, than doing it once.
fn is_repeatable(call: &Call) -> bool {
    match call {
        Call::Spawn(params) => params.request.is_some(),
        Call::Respawn(params) => params.request.is_some(),
        Call::Kill(_)
        | Call::Ls(_)
        | Call::Status(_)
        | Call::Peek(_)
        | Call::Logs(_)
        | Call::Attach(_)
        | Call::RalphPause(_)
        | Call::RalphResume(_)
        | Call::RalphStatus(_)
        | Call::RalphSet(_)
        | Call::RalphLogs(_)
        | Call::RalphReport(_)
        | Call::RalphDiff(_)
        | Call::DaemonStatus(_) => true,
        // Typed twice, or gone the second time, or of a daemon that is not meant.
        Call::Send(_)
        | Call::Interrupt(_)
        | Call::Eof(_)
        | Call::Clean(_)
        | Call::RalphRestore(_)
        | Call::RalphApprove(_)
        | Call::RalphClean(_)
        | Call::DaemonStop(_)
        | Call::DaemonHandover(_)
        | Call::Hook(_)
        | Call::Subscribe(_) => false,
    }
}

/// A name for a request, which no other on this machine has.
pub(super) fn request_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{:x}", std::process::id(), now.as_nanos())
}
