//! The state of a worker's files on disk, as its slot holds it. The supervisor saves ([`crate::daemon::saving`]).

use swarm_state::format::RalphFile;
use swarm_state::model::Run;

use crate::daemon::messages::MemoryPressure;
use crate::error::{Error, ErrorCode};
use crate::store::RalphStamp;

#[derive(Default)]
pub(crate) enum SaveState {
    #[default]
    Saved,
    /// The last save failed, for example because the disk is full.
    Unsaved {
        /// The error; `None` before the first attempt.
        error: Option<Error>,
        /// A mark on disk records what must survive a crash: that the worker was killed or its loop paused.
        marked: bool,
    },
}

#[derive(Default)]
pub(crate) struct Saving {
    pub(crate) state: SaveState,
    /// A run that starts when a save succeeds, or when the memory pressure has fallen.
    pub(crate) held_run: Option<Run>,
    /// Why that run waits, unless it waits for a save.
    pub(crate) pressure: Option<MemoryPressure>,
    /// Why the output of the last run cannot be stored. Its pane keeps the output, and no run starts meanwhile.
    pub(crate) output_error: Option<String>,
    /// The loop's `state.json` as the daemon last wrote or read it.
    pub(crate) ralph_file: Option<RalphFile>,
    /// Identifies the version of the file that was last read; another stamp means that it was edited.
    pub(crate) ralph_read: Option<RalphStamp>,
    /// The stamp of the daemon's own last write.
    pub(crate) ralph_written: Option<RalphStamp>,
    /// Lines of `iterations.log` by an earlier daemon about this iteration. Empty after this daemon's first line.
    pub(crate) log_tail: Vec<String>,
    pub(crate) unwritten_log: Vec<String>,
}

impl Saving {
    pub(crate) fn is_unsaved(&self) -> bool {
        matches!(self.state, SaveState::Unsaved { .. })
    }

    /// True when the last save failed and no mark preserves the change.
    pub(crate) fn may_be_lost(&self) -> bool {
        matches!(self.state, SaveState::Unsaved { marked: false, .. })
    }

    fn last_error(&self) -> Option<&Error> {
        if let SaveState::Unsaved { error, .. } = &self.state { error.as_ref() } else { None }
    }

    pub(crate) fn error(&self) -> Option<&str> {
        self.last_error().map(|error| error.message.as_str())
    }

    /// How to fix that error; without a hint of its own, the disk is full.
    pub(crate) fn fix(&self) -> &str {
        self.last_error().and_then(|error| error.hint.as_deref()).unwrap_or("free disk space")
    }

    /// As [`Saving::error`], for a message that needs a reason.
    pub(crate) fn error_text(&self) -> String {
        self.error().unwrap_or("the disk refused the write").to_owned()
    }

    /// The error for a change that was undone because it could not be saved.
    pub(crate) fn refusal(&self) -> Error {
        let message = format!("nothing was changed: {}", self.error_text());
        Error::new(ErrorCode::System, message).hint(format!("{}, then retry", self.fix()))
    }

    /// Why the worker waits for free disk space; `None` while it does not.
    pub(crate) fn waits_for_disk(&self) -> Option<String> {
        if let Some(error) = &self.output_error {
            return Some(format!("its output cannot be stored: {error}"));
        }
        self.held_run?;
        Some(format!("its state cannot be saved: {}", self.error()?))
    }

    /// The memory pressure that an iteration waits for; `None` while none does.
    pub(crate) fn waits_for_pressure(&self) -> Option<MemoryPressure> {
        self.held_run.and(self.pressure).filter(|_| !self.is_unsaved())
    }
}
