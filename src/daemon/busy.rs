//! What is being done to a worker in several steps, so that nobody begins something else in between.
//!
//! A respawn, or the removal of a worktree after a kill, takes its time in a driver or in git; meanwhile the
//! worker looks like one that is over, and a spawn, a respawn or a clean of its name would end what the first
//! one begins. So the one who does it holds an [`Busy`], and the worker knows of it as long as somebody
//! does: whichever way it ends, it is forgotten with its holder. A kill is never refused; it calls off what
//! would start the worker again. Removing a worker for good has a mark of its own (`Slot::leaving`).

use std::sync::atomic::{AtomicBool, Ordering};

/// Something that is under way; it is over when the last holder lets go of it.
#[derive(Debug)]
pub(crate) struct Busy {
    /// What is being done, as the end of "worker 'w' …".
    pub(crate) what: &'static str,
    /// Somebody killed the worker meanwhile.
    pub(crate) killed: AtomicBool,
}

impl Busy {
    /// True when a kill came in between.
    pub(crate) fn is_canceled(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }
}
