//! The way back to the client of a request.

use std::pin::Pin;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::error::{Error, ErrorCode, Result};

/// An answer that takes time: the work that finds it, or the refusal.
pub(crate) type Later<T> = Result<Pin<Box<dyn Future<Output = Result<T>> + Send>>>;

/// The answer to one request. A request whose reply is dropped is answered with an error by the server.
pub(crate) struct Reply(pub(crate) oneshot::Sender<Result<Value>>);

impl Reply {
    pub(crate) fn answer<T: Serialize>(self, result: Result<T>) {
        let value = result.and_then(|answer| {
            serde_json::to_value(answer).map_err(|e| Error::internal(format!("cannot answer: {e}")))
        });
        // A client that went away needs no answer.
        drop(self.0.send(value));
    }

    pub(crate) fn refuse(self, error: Error) {
        self.answer::<()>(Err(error));
    }

    /// Answers the request when the work is done, in a task of its own.
    pub(crate) fn answer_by<T: Serialize + 'static>(self, work: Later<T>) {
        match work {
            Ok(work) => drop(tokio::spawn(async move { self.answer(work.await) })),
            Err(error) => self.refuse(error),
        }
    }
}

/// The error for a request that the daemon cannot answer any more.
pub(crate) fn stopping() -> Error {
    Error::new(ErrorCode::NoDaemon, "the daemon is stopping").hint("swarm daemon start")
}
