//! What a follower makes of what it hears: pure, so that every ending is a test.
//!
//! It is fed notices, snapshots and signals, and says what to print, when to pause and when to end. It
//! knows no connection and no clock.

use serde_json::Value;
use swarm_state::ends::LoopEnd;
use swarm_state::model::Status;
use swarm_state::notice::{Entry, PauseBy, StopReason};

use crate::client::worker::loop_status;
use crate::protocol::{Notice, Snapshot, WorkerView};

/// What the follower does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Prints a line.
    Print(String),
    /// Says something on stderr.
    Note(String),
    /// Asks the daemon to pause the loop.
    Pause,
    /// Ends.
    End(End),
}

/// How a follower ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) code: u8,
    /// Said as `swarm: error: …`.
    pub(super) error: Option<String>,
    pub(super) hint: Option<String>,
}

/// One followed loop.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    name: String,
    /// When the worker was spawned: another one of the same name has another time.
    started: String,
    /// The last notice that was taken.
    seen: u64,
    /// Notices up to here were repeated after a new connection; the snapshot knows better what holds now.
    repeated: u64,
    /// This follower wants the loop paused.
    asked: bool,
    /// The loop is paused.
    paused: bool,
    /// How it ended, by the last snapshot. Its last notices may still be on their way.
    pending: Option<End>,
}

impl Machine {
    pub(super) fn new(worker: &WorkerView, seq: u64) -> Self {
        Self {
            name: worker.name.clone(),
            started: worker.started.clone(),
            seen: seq,
            repeated: seq,
            asked: false,
            paused: false,
            pending: None,
        }
    }

    /// Whether this follower has asked for the pause that holds, or wants to.
    pub(super) fn asked(&self) -> bool {
        self.asked
    }

    /// The end that the last snapshot told of, if no notice has told it by now.
    pub(super) fn pending(&self) -> Option<&End> {
        self.pending.as_ref()
    }

    /// A notice came.
    pub(super) fn notice(&mut self, notice: &Notice) -> Vec<Act> {
        if notice.worker != self.name || notice.seq <= self.seen {
            return vec![];
        }
        self.seen = notice.seq;
        let mut acts: Vec<Act> = notice.entry.follow_line(&self.name).map(Act::Print).into_iter().collect();
        let holds_now = notice.seq > self.repeated;
        let end = match &notice.entry {
            Entry::LoopComplete { .. } => Some(End::done()),
            Entry::LoopFailed { reason, .. } | Entry::Stopped { reason } => Some(self.over(reason)),
            Entry::Lost { .. } if holds_now => Some(self.resumable()),
            Entry::Paused { by } if holds_now && !by.is_user() => Some(self.resumable()),
            Entry::Paused { by } => {
                self.paused = true;
                self.parked(*by == PauseBy::User && !notice.status.is_live())
            }
            Entry::Resumed => {
                (self.paused, self.asked) = (false, false);
                self.goes_on(holds_now);
                None
            }
            Entry::IterationStarted { .. } => {
                self.goes_on(holds_now);
                None
            }
            Entry::IterationEnded { .. } | Entry::IterationFailed { .. } => self.parked(true),
            Entry::Started { .. }
            | Entry::Ready { .. }
            | Entry::Idle { .. }
            | Entry::Cleaned
            | Entry::PromptSent { .. }
            | Entry::PromptFailed { .. }
            | Entry::Waiting { .. }
            | Entry::Inactivity { .. }
            | Entry::InactivityExtended { .. }
            | Entry::OutOfTime { .. }
            | Entry::Outage { .. }
            | Entry::Checked { .. }
            | Entry::GatesMissed { .. }
            | Entry::GatesHeld { .. }
            | Entry::DonePatternMatched { .. }
            | Entry::RunEnded { .. }
            | Entry::Lost { .. }
            | Entry::Warning { .. } => self.parked(!notice.status.is_live()),
        };
        acts.extend(end.map(Act::End));
        acts
    }

    /// What a snapshot told of is over; a notice from before that snapshot says nothing about it.
    fn goes_on(&mut self, holds_now: bool) {
        self.pending = self.pending.take().filter(|_| !holds_now);
    }

    /// A subscription began.
    pub(super) fn snapshot(&mut self, snapshot: &Snapshot) -> Vec<Act> {
        if snapshot.seq < self.seen {
            // Another daemon counts anew: the clock was put back. All that it has to tell is news.
            self.seen = 0;
        }
        self.repeated = snapshot.seq.max(self.seen);
        let mut acts = vec![];
        if snapshot.gap {
            acts.push(Act::Note("some lines were missed; see: swarm ralph logs ".to_owned() + &self.name));
        }
        match snapshot.workers.iter().find(|w| w.name == self.name) {
            Some(worker) => self.view(worker),
            None => self.pending = Some(End::failed(format!("worker '{}' is gone", self.name))),
        }
        acts
    }

    /// The worker is like this now.
    pub(super) fn view(&mut self, worker: &WorkerView) {
        self.pending = if worker.started == self.started {
            self.paused = loop_status(worker) == "paused";
            self.verdict(worker)
        } else {
            Some(End::failed(format!("worker '{}' was replaced by another", self.name)))
        };
    }

    fn verdict(&self, worker: &WorkerView) -> Option<End> {
        let text = |key: &str| worker.metadata.get(key).and_then(Value::as_str).unwrap_or_default();
        let why = || worker.reason.clone().unwrap_or_else(|| text("reason").replace('_', " "));
        match (loop_status(worker), text("reason")) {
            (status @ ("stopped" | "failed"), slug) => Some(match LoopEnd::from_word(slug) {
                Some(LoopEnd::Killed) => self.over(&StopReason::Killed),
                // A loop whose gates did not hold has failed; the word is the same.
                Some(end) if end.exit_code(status == "failed") == 0 => End::done(),
                Some(_) | None => End { error: Some(why()), ..self.gave_up() },
            }),
            ("running", _) if worker.status == Status::Lost => Some(self.resumable()),
            // What nobody at a terminal asked for: it does not go on by itself.
            ("paused", _) if matches!(text("paused_by"), "shutdown" | "no_progress" | "budget_unseen") => {
                Some(self.resumable())
            }
            ("paused", _) => self.parked(!worker.status.is_live()),
            _ => None,
        }
    }

    /// Ctrl-C or SIGTERM: the first pauses, the second leaves.
    pub(super) fn interrupt(&mut self) -> Vec<Act> {
        let name = &self.name;
        if self.asked {
            let hint = Some(format!("swarm ralph resume {name}"));
            return vec![Act::End(End { code: 130, error: None, hint })];
        }
        self.asked = true;
        let note = format!("pausing {name}: its current agent may finish (Ctrl-C again: leave it alone)");
        vec![Act::Note(note), Act::Pause]
    }

    /// The daemon took the pause, and the worker is like this.
    pub(super) fn pause_taken(&mut self, worker: &WorkerView) {
        self.view(worker);
    }

    /// The end of a follower whose pause took effect: `true` when no agent is at work any more.
    fn parked(&self, no_agent: bool) -> Option<End> {
        (self.asked && self.paused && no_agent).then(|| self.resumable())
    }

    /// Exit status 1 of a loop that can go on, and how.
    pub(super) fn resumable(&self) -> End {
        let code = LoopEnd::Lost.exit_code(true);
        End { code, error: None, hint: Some(format!("to go on: swarm ralph resume {}", self.name)) }
    }

    /// Exit status 1 of a loop that is over: it cannot be resumed, only looked into.
    fn gave_up(&self) -> End {
        let code = LoopEnd::Failed.exit_code(true);
        End { code, error: None, hint: Some(format!("what happened: swarm ralph logs {}", self.name)) }
    }

    /// The end of the follower when the loop has stopped for `reason`.
    fn over(&self, reason: &StopReason) -> End {
        let code = reason.exit_code();
        match reason {
            StopReason::Killed => End { code, error: None, hint: None },
            StopReason::Prompt(message) => End { code, error: Some(message.clone()), ..self.gave_up() },
            reason if reason.is_success() => End { code, error: None, hint: None },
            _ => End { code, ..self.gave_up() },
        }
    }
}

impl End {
    fn done() -> Self {
        Self { code: 0, error: None, hint: None }
    }

    fn failed(error: String) -> Self {
        Self { code: 1, error: Some(error), hint: None }
    }
}

#[cfg(test)]
mod tests;
