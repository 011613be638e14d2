//! Calls for several workers at once: `kill`, `clean` and `send --all`.
//!
//! The calls run in parallel. The error of one worker is printed and does not stop the others. The exit status is the
//! highest of theirs, so that an unknown name has the same status alone and among others. Deliberately absent: what is
//! printed on success.

use std::sync::Arc;
use std::time::Duration;

use swarm_state::model::Status;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::call;
use super::connect::QUICK_TIMEOUT;
use super::context::ClientContext;
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Failure, Out};
use crate::protocol::{Call, Empty, Listing};

/// Returns the names of the workers with a status that `is_meant`.
pub(super) async fn names_with(ctx: &ClientContext, is_meant: fn(Status) -> bool) -> Result<Vec<String>> {
    let listing: Listing = ctx.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
    Ok(listing.workers.into_iter().filter(|w| is_meant(w.status)).map(|w| w.name).collect())
}

/// The daemon accepts a limited number of clients; this leaves places for others.
const MAX_PARALLEL_CALLS: usize = 64;

/// Makes the calls in parallel, each on its own connection and with the timeout `limit`. Returns the answers in the
/// order of the calls.
pub(super) async fn call_each<T>(
    ctx: &ClientContext,
    calls: impl Iterator<Item = (String, Call)>,
    limit: Duration,
) -> Result<Vec<(String, Result<T>)>, Failure>
where
    T: serde::de::DeserializeOwned + Send + 'static,
{
    let paths = ctx.paths()?;
    let mut tasks = JoinSet::new();
    let permits = Arc::new(Semaphore::new(MAX_PARALLEL_CALLS));
    for (index, (name, call)) in calls.enumerate() {
        let (paths, permits) = (paths.clone(), permits.clone());
        tasks.spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire().await;
            (index, name, call::call(&paths, &call, limit).await)
        });
    }
    let mut answers = Vec::new();
    while let Some(done) = tasks.join_next().await {
        answers
            .push(done.map_err(|e| Error::new(ErrorCode::Internal, format!("a call did not return: {e}")))?);
    }
    answers.sort_by_key(|(index, _, _)| *index);
    Ok(answers.into_iter().map(|(_, name, answer)| (name, answer)).collect())
}

/// Prints the errors of a batch and keeps its exit status.
pub(super) struct BatchErrors {
    out: Out,
    /// Only one worker was named: its error is the command's error.
    is_alone: bool,
    status: u8,
}

impl BatchErrors {
    /// Starts without errors.
    pub(super) fn new(out: Out, is_alone: bool) -> Self {
        Self { out, is_alone, status: 0 }
    }

    /// Prints the error of one worker, with the worker's name.
    ///
    /// # Errors
    /// That error, when there is no other worker.
    pub(super) fn add(&mut self, name: &str, mut error: Error) -> Result<(), Failure> {
        if self.is_alone {
            return Err(error.into());
        }
        if !error.message.contains(&format!("'{name}'")) {
            error.message = format!("{name}: {}", error.message);
        }
        self.out.error(&error);
        self.status = self.status.max(error.code.exit_status());
        Ok(())
    }

    /// Returns the exit status.
    pub(super) fn end(self) -> CommandResult {
        Ok(self.status)
    }
}
