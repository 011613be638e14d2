//! Notices: events of a worker as data, and their text.
//!
//! The engine emits an [`Entry`] for each event that a person may care about. The daemon sends it to subscribers (the
//! wire form is this type's serde form and is append-only) and writes [`Entry::log_lines`] to `iterations.log`. A
//! following client prints [`Entry::follow_line`]. The texts are those of the ralph document, or swarm's own if it
//! has none.

use serde::{Deserialize, Serialize};

use crate::model::is_default;
use crate::tasks::IterationMode;

mod lines;
mod reason;

#[cfg(test)]
mod tests;

pub use reason::{Counts, HoldBy, IterationExit, PauseBy};

pub use crate::ends::StopReason;
pub use crate::words::{counted, dollars, duration, named};

/// Something that happened to a worker. Times, timeouts and limits of time are whole seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "a field's name and its variant's text explain it")]
pub enum Entry {
    /// The pane of a run was created.
    Started { run: u64 },
    /// The agent shows its input box.
    Ready { run: u64 },
    /// The agent's turn has ended, by its screen: the input box has not changed for a few seconds.
    Idle { run: u64 },
    /// The agent accepted the prompt.
    PromptSent { run: u64 },
    /// The prompt could not be delivered. swarm leaves the agent alone.
    PromptFailed { run: u64, message: String },
    /// The agent waits for a person.
    Waiting { run: u64, reason: String },
    /// A loop's next iteration is about to start.
    IterationStarted { iteration: u32, max: u32 },
    /// An iteration ended and did not fail.
    IterationEnded { iteration: u32, exit: IterationExit, seconds: u64 },
    /// An iteration failed.
    IterationFailed {
        iteration: u32,
        exit: IterationExit,
        seconds: u64,
        /// Failures in a row, this one included.
        attempt: u32,
        /// Failures in a row that end the loop.
        limit: u32,
        /// Seconds until the next try; absent when the loop ends.
        backoff: Option<u64>,
        /// Details that `exit` does not have.
        message: Option<String>,
    },
    /// The screen did not change for the inactivity timeout. swarm is ending the agent.
    Inactivity {
        iteration: u32,
        timeout: u64,
        /// Whether another iteration may follow.
        restarting: bool,
    },
    /// The screen did not change, but the agent's processes use the CPU. swarm gives the agent more time.
    InactivityExtended { iteration: u32, timeout: u64 },
    /// An iteration works on a story of the task list.
    StoryStarted {
        iteration: u32,
        mode: IterationMode,
        /// The story's id.
        story: String,
        title: String,
        /// Stories that need no further iteration.
        done: u64,
        /// All stories.
        total: u64,
    },
    /// A check is being run.
    CheckStarted {
        /// The iteration that it runs after; 0: the baseline.
        iteration: u32,
        check: String,
    },
    /// A check was run.
    Checked {
        /// The iteration that it ran after; 0: the baseline.
        iteration: u32,
        check: String,
        passed: bool,
        seconds: u64,
    },
    /// The gates were checked at the end of an iteration, and not all hold.
    GatesMissed {
        iteration: u32,
        /// The gates that do not hold, one sentence for each.
        missing: Vec<String>,
    },
    /// Every gate holds.
    GatesHeld { iteration: u32 },
    /// An outage ended an iteration, which swarm repeats after a wait; or it delays the next one.
    Outage {
        iteration: u32,
        /// The CLI's message.
        message: String,
        /// Seconds until the next try.
        wait: u64,
        /// The iteration has not begun: the loops of the agent's account are parked.
        #[serde(default, skip_serializing_if = "is_default")]
        parked: bool,
    },
    /// The time limit of an iteration or of the loop was reached. swarm is ending the agent.
    OutOfTime {
        iteration: u32,
        limit: u64,
        /// True for the loop's limit.
        whole: bool,
    },
    /// The done pattern matched in new output.
    DonePatternMatched {
        /// The iteration (0 for a plain worker).
        iteration: u32,
    },
    /// A loop has finished successfully.
    LoopComplete { iterations: u32, reason: StopReason },
    /// A loop has finished without success.
    LoopFailed { iterations: u32, reason: StopReason },
    /// A loop was paused.
    Paused { by: PauseBy },
    /// A loop was resumed.
    Resumed,
    /// A person holds the worker: swarm starts and ends no run of it.
    Held { by: HoldBy },
    /// The hold has ended.
    Released,
    /// A run of a plain worker with a restart policy ended.
    RunEnded {
        run: u64,
        exit: IterationExit,
        /// Failures in a row, this one included; 0 after a success.
        attempt: u32,
        /// The maximum of restarts in a row.
        limit: u32,
        /// Seconds until the next run; absent when the worker has finished.
        backoff: Option<u64>,
        /// The error, when the command could not be started.
        message: Option<String>,
    },
    /// A plain worker has finished.
    Stopped { reason: StopReason },
    /// The tmux server went away.
    Lost {
        /// The reason, as far as it is known.
        reason: String,
    },
    /// A finished worker was deleted with its files.
    Cleaned,
    /// A warning for a person; the worker continues.
    Warning { message: String },
}

impl Entry {
    /// The word of every kind, as the serde form has it in `kind`.
    pub const KINDS: [&str; 30] = [
        "started",
        "ready",
        "idle",
        "prompt_sent",
        "prompt_failed",
        "waiting",
        "iteration_started",
        "iteration_ended",
        "iteration_failed",
        "inactivity",
        "inactivity_extended",
        "story_started",
        "check_started",
        "checked",
        "gates_missed",
        "gates_held",
        "outage",
        "out_of_time",
        "done_pattern_matched",
        "loop_complete",
        "loop_failed",
        "paused",
        "resumed",
        "held",
        "released",
        "run_ended",
        "stopped",
        "lost",
        "cleaned",
        "warning",
    ];

    /// The word of its kind.
    pub fn kind(&self) -> String {
        kind_of(self)
    }
}

/// The word of the kind of an enum whose serde form has it in `kind`.
pub(crate) fn kind_of(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value["kind"].as_str().unwrap_or_default().to_owned()
}
