//! Keeps what was seen during a run and is needed for its verdict.
//!
//! An agent may leave its alternate screen, close its pane or die with its server before the last capture. So the
//! result of a look is kept in the worker's record until the next run starts. Not here: the text; the daemon keeps
//! the last screen in the run's folder.

use serde::{Deserialize, Serialize};

use super::{Effect, Worker};
use crate::screen::Reading;

/// The evidence of the current run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// New output matched the done pattern.
    pub done: bool,
}

impl Worker {
    /// Returns the evidence of the current or last run.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// Keeps the result of a look. The next daemon needs it, because the screen may be gone by then.
    pub(super) fn note_evidence(&mut self, reading: &Reading) -> Vec<Effect> {
        let before = self.evidence;
        self.evidence.done |= reading.done;
        if self.evidence == before { vec![] } else { vec![Effect::Persist] }
    }
}
