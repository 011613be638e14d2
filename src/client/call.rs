//! Makes one call, and repeats it when the daemon dies before it answers.
//!
//! When a daemon is killed between a request and its answer, the client cannot tell whether the request was carried
//! out. Idempotent requests are sent again to the next daemon; for the others the user has to check. A spawn is
//! idempotent: its request has an id, by which the next daemon finds a worker that was already started. Deliberately
//! absent: subscriptions, which reconnect by themselves ([`super::subscription`]).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;

use crate::client::connect;
use crate::error::{ErrorCode, Result};
use crate::paths::Paths;
use crate::protocol::Call;

/// How often a call is sent before it fails.
const MAX_ATTEMPTS: usize = 5;

/// Makes a call. When the daemon dies before it answers, an idempotent call is sent to the next daemon.
pub(super) async fn call<T: DeserializeOwned>(paths: &Paths, request: &Call, limit: Duration) -> Result<T> {
    let mut attempts = 1;
    loop {
        let answer = connect::connect(paths).await?.call(request, limit).await;
        match answer {
            Err(error)
                if error.code == ErrorCode::NoDaemon && is_repeatable(request) && attempts < MAX_ATTEMPTS =>
            {
                attempts += 1;
            }
            answer => return answer,
        }
    }
}

/// Whether a call may be sent twice: the second one has no further effect and returns the same answer.
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
        // The text would be typed twice, the second answer would differ, or the next daemon is not meant.
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

/// Returns an id for a request that is unique on this machine.
pub(super) fn request_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{:x}", std::process::id(), now.as_nanos())
}
