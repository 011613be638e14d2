//! Runs a command's futures, and catches the signals that end it.
//!
//! Used by the commands that `main` carries out. The daemon, the wrapper and the library start their own runtimes.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::error::{Error, Result};

/// Runs a future to its end, in this thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::system("cannot start", e))?;
    let result = runtime.block_on(work);
    // A read of stdin cannot be canceled; the process must not wait for it.
    runtime.shutdown_timeout(Duration::ZERO);
    Ok(result)
}

/// Signals that do not end the process from now on.
pub(crate) struct CaughtSignals(Vec<(Signal, unix::Signal)>);

impl CaughtSignals {
    /// Catches these signals.
    pub(crate) fn new(which: &[Signal]) -> Result<Self> {
        let catch = |which: &Signal| Ok((*which, unix::signal(SignalKind::from_raw(*which as i32))?));
        let caught: std::io::Result<_> = which.iter().map(catch).collect();
        caught.map(Self).map_err(|e| Error::system("cannot listen for signals", e))
    }

    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            let mut caught = self.0.iter_mut();
            let received =
                caught.find_map(|(which, caught)| caught.poll_recv(cx).is_ready().then_some(*which));
            received.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
