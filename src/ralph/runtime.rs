//! Runs swarm's own futures inside a library call, which has no runtime or is inside a foreign one.

use crate::error::{Error, Result};

/// Runs a future to its end, from any thread. Fails if no thread can be started.
pub(super) fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> Result<T> {
    let trouble = |e| Error::system("cannot start a thread", e);
    let run = || {
        // A runtime may neither run nor end inside another one.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(trouble)?;
        Ok(runtime.block_on(future))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, run);
        match thread.map_err(trouble)?.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
