//! Session loops: a Stop hook continues an agent's session until its promise is given.
//!
//! Two documents describe the machine, with other names: `/ralph-loop` and `/ulw-loop` feed a task back with a
//! reminder, `/do-it:ralph` feeds a project's contract back unchanged. This module has that machine once, pure:
//! the state, its file and the decision at a stop. Used by `swarm hook` and `swarm session`. Deliberately absent:
//! paths, locks, clocks, transcripts (the caller reads them) and printing.

mod book;
mod ceiling;
mod commands;
mod decide;
mod file;
mod preflight;
mod questions;
mod queue;
mod state;
mod stop;
mod texts;
mod words;

#[cfg(test)]
mod tests;

pub use book::{Book, Decision, DoItOptions, LastStop, LogLine, Mark, PromiseFound, StopKey};
pub use ceiling::{Ceiling, DEFAULT_CEILING, MAX_CEILING};
pub use commands::Command;
pub use decide::{cancel, decide, resume};
pub use file::{FileError, SessionFile};
pub use preflight::{Branch, Change, Doc, Missing, Project, ProjectType, Ready, preflight};
pub use questions::open_questions;
pub use queue::{Queue, QueueChange};
pub use state::{
    DO_IT_COMPLETE, DO_IT_FILE, DO_IT_PAUSE, MIN_TOOL_CALLS, Owner, RALPH_COMPLETE, SESSION_STATE_DIR,
    SessionId, SessionKind, SessionLoop, SessionStatus,
};
pub use stop::{After, Failure, Stop, StopAnswer, StopOutcome};
pub use texts::{block_text, brief, built_in_contract, start_text, substitute};
pub use words::{Words, do_it_words, loop_words};
