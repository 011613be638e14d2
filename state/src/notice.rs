//! What happened, as a value, and the words for it.
//!
//! The engine emits an [`Entry`] for everything worth telling. The daemon sends it to those who listen
//! (the wire form is this type's serde form and is append-only), writes [`Entry::log_lines`] into
//! `iterations.log`, and the following client prints [`Entry::follow_line`]. The sentences are the ralph
//! document's; where it is silent they are ours.

use serde::{Deserialize, Serialize};

mod lines;
mod reason;

#[cfg(test)]
mod tests;

pub use reason::{Counts, IterationExit, PauseBy};

pub use crate::ends::StopReason;
pub use crate::words::{counted, dollars, duration, named};

/// Something that happened to a worker. Seconds are whole seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A run's pane is up.
    Started {
        /// The run.
        run: u64,
    },
    /// The agent's input box is there.
    Ready {
        /// The run.
        run: u64,
    },
    /// The agent's turn is over, as far as the screen tells: its input box is there and has not changed for
    /// a few seconds.
    Idle {
        /// The run.
        run: u64,
    },
    /// The prompt was delivered and taken.
    PromptSent {
        /// The run.
        run: u64,
    },
    /// The prompt could not be delivered; the agent is left alone.
    PromptFailed {
        /// The run.
        run: u64,
        /// What went wrong.
        message: String,
    },
    /// The agent waits for a person.
    Waiting {
        /// The run.
        run: u64,
        /// What it waits for.
        reason: String,
    },
    /// A loop's next iteration is about to start.
    IterationStarted {
        /// Its number.
        iteration: u32,
        /// The limit.
        max: u32,
    },
    /// An iteration ended and is no failure.
    IterationEnded {
        /// Its number.
        iteration: u32,
        /// How.
        exit: IterationExit,
        /// How long it took.
        seconds: u64,
    },
    /// An iteration failed.
    IterationFailed {
        /// Its number.
        iteration: u32,
        /// How.
        exit: IterationExit,
        /// How long it took.
        seconds: u64,
        /// How many failed in a row, this one counted.
        attempt: u32,
        /// How many in a row end the loop.
        limit: u32,
        /// Seconds until the next try; absent when there is none.
        backoff: Option<u64>,
        /// More than `exit` says, where there is more.
        message: Option<String>,
    },
    /// The screen did not change for the time-out, and the agent is being ended.
    Inactivity {
        /// The iteration.
        iteration: u32,
        /// The time-out, seconds.
        timeout: u64,
        /// Whether another iteration may follow.
        restarting: bool,
    },
    /// The screen did not change, but the agent's processes are computing: it gets more time.
    InactivityExtended {
        /// The iteration.
        iteration: u32,
        /// The time-out, seconds.
        timeout: u64,
    },
    /// A check was run.
    Checked {
        /// At the end of which iteration; 0: before the first.
        iteration: u32,
        /// The command.
        check: String,
        /// Whether it passed.
        passed: bool,
        /// How long it took.
        seconds: u64,
    },
    /// The gates of a loop were tried at the end of an iteration and not all hold.
    GatesMissed {
        /// The iteration.
        iteration: u32,
        /// What is missing, a sentence a gate.
        missing: Vec<String>,
    },
    /// Every gate holds.
    GatesHeld {
        /// The iteration.
        iteration: u32,
    },
    /// An iteration came to nothing through no fault of its own; it is done again after a wait.
    Outage {
        /// The iteration.
        iteration: u32,
        /// In the CLI's words.
        message: String,
        /// Seconds until the next try.
        wait: u64,
    },
    /// The time of an iteration or of the loop is up, and the agent is being ended.
    OutOfTime {
        /// The iteration.
        iteration: u32,
        /// The limit, seconds.
        limit: u64,
        /// True when it is the loop's.
        whole: bool,
    },
    /// The done pattern matched in new output.
    DonePatternMatched {
        /// The iteration (0 for a plain worker).
        iteration: u32,
    },
    /// A loop is over and did what was asked.
    LoopComplete {
        /// Iterations used.
        iterations: u32,
        /// Why it ended.
        reason: StopReason,
    },
    /// A loop is over and did not.
    LoopFailed {
        /// Iterations used.
        iterations: u32,
        /// Why it ended.
        reason: StopReason,
    },
    /// A loop was paused.
    Paused {
        /// By whom.
        by: PauseBy,
    },
    /// A loop goes on.
    Resumed,
    /// A run of a plain worker that is started again after its end is over.
    RunEnded {
        /// The run.
        run: u64,
        /// How.
        exit: IterationExit,
        /// How many failed in a row, this one counted; 0 when it ended well.
        attempt: u32,
        /// How many restarts in a row there may be.
        limit: u32,
        /// Seconds until the next run; absent when there is none.
        backoff: Option<u64>,
        /// What could not be done, when the command never started.
        message: Option<String>,
    },
    /// A plain worker has ended.
    Stopped {
        /// Why.
        reason: StopReason,
    },
    /// The tmux server went away under the worker.
    Lost {
        /// What is known.
        reason: String,
    },
    /// A worker that was over was forgotten, with all that was left of it.
    Cleaned,
    /// Something a person should know; the worker goes on.
    Warning {
        /// What.
        message: String,
    },
}
