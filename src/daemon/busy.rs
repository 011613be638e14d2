//! What is being done to a worker in several steps, so that nobody begins something else in between.
//!
//! A respawn, or the removal of a worktree after a kill, takes its time in a driver or in git; meanwhile the
//! worker looks like one that is over, and a spawn, a respawn or a clean of its name would end what the first
//! one begins. So the one who does it holds an [`Errand`], and the worker knows of it as long as somebody
//! does: whichever way it ends, it is forgotten with its holder. A kill is never refused; it calls off what
//! would start the worker again. Removing a worker for good has a mark of its own (`Slot::leaving`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::daemon::messages::AfterStop;
use crate::daemon::slot::Slot;
use crate::daemon::verbs::clean;
use crate::error::{Error, ErrorCode, Result};

/// Something that is under way; it is over when the last holder lets go of it.
#[derive(Debug)]
pub(crate) struct Errand {
    /// What is being done, as the end of "worker 'w' …".
    what: &'static str,
    /// Somebody killed the worker meanwhile.
    killed: AtomicBool,
}

impl Errand {
    /// True when a kill came in between.
    pub(crate) fn is_called_off(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }
}

impl Slot {
    /// Begins something that takes several steps.
    pub(crate) fn begin(&mut self, what: &'static str) -> Arc<Errand> {
        let errand = Arc::new(Errand { what, killed: AtomicBool::new(false) });
        self.errand = Arc::downgrade(&errand);
        errand
    }

    /// A kill came: what is under way does not start the worker again.
    pub(crate) fn call_off(&self) {
        if let Some(errand) = Weak::upgrade(&self.errand) {
            errand.killed.store(true, Ordering::Relaxed);
        }
    }

    /// Refuses to begin something while something else is under way that decides what becomes of the worker.
    pub(crate) fn refuse_busy(&self) -> Result<()> {
        let name = &self.spec.name;
        if self.leaving {
            return Err(clean::leaving(name));
        }
        let replaced = self.after_stop.iter().any(|after| matches!(after, AfterStop::Replace(..)));
        let what = match Weak::upgrade(&self.errand) {
            Some(errand) => errand.what,
            None if replaced => "is just being replaced",
            None => return Ok(()),
        };
        Err(Error::new(ErrorCode::Conflict, format!("worker '{name}' {what}")).hint("try again in a moment"))
    }
}
