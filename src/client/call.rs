//! Makes one call, and repeats it when the daemon dies before it answers.
//!
//! When a daemon is killed between a request and its answer, the client cannot tell whether the request was carried
//! out. Idempotent requests are sent again to the next daemon; for the others the user has to check. A spawn is
//! idempotent: its request has an id, by which the next daemon finds a worker that was already started. Deliberately
//! absent: subscriptions, which reconnect by themselves ([`super::subscription`]).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::client::connect;
use crate::error::{ErrorCode, Result};
use crate::protocol::Call;
use crate::remote::Place;

/// How often a call is sent before it fails.
const MAX_ATTEMPTS: usize = 5;

/// How long swarm reconnects after a connection ended. A call is always sent a second time, and a third time only
/// within this time after the first end.
const LINK_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay between two such attempts.
const LINK_DELAY: Duration = Duration::from_millis(500);

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
                    && attempts < MAX_ATTEMPTS
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

/// Returns an id for a request that is unique on this machine.
pub(crate) fn request_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{:x}", std::process::id(), now.as_nanos())
}
