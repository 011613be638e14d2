//! Work on a worker that takes several steps. No other such work begins meanwhile.
//!
//! A respawn, a clean-up, or the removal of a worktree after a kill takes time in the driver or in git. Meanwhile the
//! worker looks stopped, and a spawn, respawn or clean of its name would interfere. So the task holds a [`Busy`],
//! and the slot keeps weak references: the work ends when the task drops it. A kill is never refused;
//! it cancels a respawn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusyKind {
    Respawn,
    RemoveWorktree,
    Clean,
}

impl BusyKind {
    /// The text after "worker 'NAME'" in a refusal.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Respawn => " is being respawned",
            Self::RemoveWorktree => ": its worktree is being removed",
            Self::Clean => " is being removed",
        }
    }
}

/// Work under way; it ends when the last strong reference is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    kind: BusyKind,
    killed: AtomicBool,
}

impl Busy {
    /// True when the worker was killed since the work began.
    pub(crate) fn is_canceled(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(crate) struct BusyList(Vec<Weak<Busy>>);

impl BusyList {
    /// Begins work; it lasts as long as the returned value.
    pub(crate) fn begin(&mut self, kind: BusyKind) -> Arc<Busy> {
        let busy = Arc::new(Busy { kind, killed: AtomicBool::new(false) });
        self.0.retain(|other| other.strong_count() > 0);
        self.0.push(Arc::downgrade(&busy));
        busy
    }

    pub(crate) fn current(&self) -> Option<BusyKind> {
        self.0.iter().find_map(|busy| busy.upgrade().map(|busy| busy.kind))
    }

    /// A kill arrived: the work must not start the worker again.
    pub(crate) fn cancel(&self) {
        for busy in self.0.iter().filter_map(Weak::upgrade) {
            busy.killed.store(true, Ordering::Relaxed);
        }
    }
}
