//! What the verbs that take several workers share: `kill`, `clean` and `send --all`.
//!
//! Each worker is dealt with by itself, side by side with the others. What went wrong with one is said and
//! keeps nobody else from its turn; the exit status is the highest of theirs, so that an unknown name is
//! told as it is for one name alone. Deliberately absent: what is said when all went well.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::call;
use super::connect::QUICK;
use super::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Failure, Out};
use crate::protocol::{Call, Empty, Listing};

/// The names of the live workers.
pub(super) async fn live_workers(ctx: &Context) -> Result<Vec<String>> {
    let listing: Listing = ctx.call(&Call::Ls(Empty {}), QUICK).await?;
    Ok(listing.workers.into_iter().filter(|w| w.status.is_live()).map(|w| w.name).collect())
}

/// The most calls at once: the daemon has room for so many clients, and others want to get in too.
const SIDE_BY_SIDE: usize = 64;

/// Makes the calls side by side, each on a connection of its own and each with the time `limit`; answers in
/// the order of the calls.
pub(super) async fn call_each<T>(
    ctx: &Context,
    calls: impl Iterator<Item = (String, Call)>,
    limit: Duration,
) -> Result<Vec<(String, Result<T>)>, Failure>
where
    T: serde::de::DeserializeOwned + Send + 'static,
{
    let paths = ctx.paths()?;
    let mut tasks = JoinSet::new();
    let room = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    for (index, (name, call)) in calls.enumerate() {
        let (paths, room) = (paths.clone(), room.clone());
        tasks.spawn(async move {
            // It is never closed.
            let _room = room.acquire().await;
            (index, name, call::call(&paths, &call, limit).await)
        });
    }
    let mut answers = Vec::new();
    while let Some(done) = tasks.join_next().await {
        answers.push(done.map_err(|e| Error::new(ErrorCode::Internal, format!("a call was lost: {e}")))?);
    }
    answers.sort_by_key(|(index, _, _)| *index);
    Ok(answers.into_iter().map(|(_, name, answer)| (name, answer)).collect())
}

/// What went wrong so far.
pub(super) struct BatchErrors {
    out: Out,
    /// Only one worker was named: its error is the command's.
    alone: bool,
    status: u8,
}

impl BatchErrors {
    /// Nothing yet.
    pub(super) fn new(out: Out, alone: bool) -> Self {
        Self { out, alone, status: 0 }
    }

    /// Says what went wrong with one worker, and with which.
    ///
    /// # Errors
    /// With that error, when there is no other worker.
    pub(super) fn add(&mut self, name: &str, mut error: Error) -> Result<(), Failure> {
        if self.alone {
            return Err(error.into());
        }
        if !error.message.contains(&format!("'{name}'")) {
            error.message = format!("{name}: {}", error.message);
        }
        self.out.error(&error);
        self.status = self.status.max(error.code.exit_status());
        Ok(())
    }

    /// The exit status.
    pub(super) fn end(self) -> CommandResult {
        Ok(self.status)
    }
}
