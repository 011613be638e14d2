//! Decides what a follower prints and when it ends. Pure, so that every end can be tested.
//!
//! Its input are notices, snapshots and signals; its output are actions for [`super`]. Deliberately absent: the
//! connection and the clock.

use swarm_state::advice::{Situation, next_step};
use swarm_state::cause::Cause;
use swarm_state::ends::LoopEnd;
use swarm_state::model::{LoopStatus, Status};
use swarm_state::notice::{Entry, PauseBy, StopReason};

use crate::client::worker::is_paused;
use crate::protocol::{Notice, Snapshot, WorkerView};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FollowAction {
    Print(String),
    /// Prints a line to stderr.
    Note(String),
    Pause,
    End(FollowEnd),
}

/// How a follower ends; by default, with success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FollowEnd {
    pub(super) code: u8,
    /// Printed as `swarm: error: …`.
    pub(super) error: Option<String>,
    pub(super) hint: Option<String>,
}

/// The state of one followed loop.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    name: String,
    /// When the worker was spawned. It identifies the worker: another one of the same name has another time.
    started: String,
    /// The sequence number of the last notice that was read.
    seen: u64,
    /// Notices up to here were sent again after a reconnect; the snapshot is newer than they are.
    repeated: u64,
    /// This follower requested the current pause.
    pub(super) asked: bool,
    /// The loop is paused.
    paused: bool,
    /// No agent works.
    no_agent: bool,
    /// How the loop ended according to the last snapshot. Its last notices may arrive later.
    pending: Option<FollowEnd>,
    /// The daemon has paused the loop because it stops, or has stopped.
    pub(super) daemon_stopped: bool,
}

impl Machine {
    pub(super) fn new(worker: &WorkerView, seq: u64) -> Self {
        Self {
            name: worker.name.clone(),
            started: worker.started.clone(),
            seen: seq,
            repeated: seq,
            ..Self::default()
        }
    }

    pub(super) fn stopped(&mut self) -> FollowEnd {
        self.daemon_stopped = true;
        self.resumable(Status::Paused, None)
    }

    /// The end that the last snapshot showed and no notice has confirmed yet.
    pub(super) fn pending(&self) -> Option<&FollowEnd> {
        self.pending.as_ref()
    }

    pub(super) fn notice(&mut self, notice: &Notice) -> Vec<FollowAction> {
        if notice.worker != self.name || notice.seq <= self.seen {
            return vec![];
        }
        (self.seen, self.no_agent) = (notice.seq, !notice.status.is_live());
        let mut acts: Vec<FollowAction> =
            notice.entry.follow_line(&self.name).map(FollowAction::Print).into_iter().collect();
        let holds_now = notice.seq > self.repeated;
        let end = match &notice.entry {
            Entry::LoopComplete { .. } => Some(FollowEnd::default()),
            Entry::LoopFailed { reason, .. } | Entry::Stopped { reason } => Some(self.over(reason)),
            Entry::Lost { .. } if holds_now => Some(self.resumable(Status::Lost, None)),
            Entry::Paused { by: PauseBy::Shutdown } if holds_now => Some(self.stopped()),
            Entry::Paused { by } if holds_now && !by.is_user() => {
                Some(self.resumable(Status::Paused, Some(&Cause::Paused { by: *by, detail: None })))
            }
            Entry::Paused { by } => {
                self.paused = true;
                self.end_if_parked(*by == PauseBy::User && self.no_agent)
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
            // The last gates may still complete a loop that was paused meanwhile; the notice of its end follows.
            Entry::IterationEnded { .. } | Entry::IterationFailed { .. } => {
                self.end_if_parked(notice.status == Status::Paused)
            }
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
            | Entry::StoryStarted { .. }
            | Entry::CheckStarted { .. }
            | Entry::Checked { .. }
            | Entry::GatesMissed { .. }
            | Entry::GatesHeld { .. }
            | Entry::DonePatternMatched { .. }
            | Entry::RunEnded { .. }
            | Entry::Held { .. }
            | Entry::Released
            | Entry::Lost { .. }
            | Entry::Warning { .. } => self.end_if_parked(self.no_agent),
        };
        acts.extend(end.map(FollowAction::End));
        acts
    }

    /// Drops the end that a snapshot showed, unless the notice is older than the snapshot.
    fn goes_on(&mut self, holds_now: bool) {
        self.pending = self.pending.take().filter(|_| !holds_now);
    }

    pub(super) fn snapshot(&mut self, snapshot: &Snapshot) -> Vec<FollowAction> {
        if snapshot.seq < self.seen {
            // Another daemon counts from a lower number, since the clock was set back. All its notices are new.
            self.seen = 0;
        }
        self.repeated = snapshot.seq.max(self.seen);
        let note =
            || FollowAction::Note(format!("some lines were missed; see: swarm ralph logs {}", self.name));
        let acts = snapshot.gap.then(note).into_iter().collect();
        match snapshot.workers.iter().find(|w| w.name == self.name) {
            Some(worker) => self.view(worker),
            None => {
                self.pending = Some(FollowEnd::failed(format!("worker '{}' no longer exists", self.name)))
            }
        }
        acts
    }

    pub(super) fn view(&mut self, worker: &WorkerView) {
        self.pending = if worker.started == self.started {
            (self.paused, self.no_agent) = (is_paused(worker), !worker.status.is_live());
            self.verdict(worker)
        } else {
            Some(FollowEnd::failed(format!("worker '{}' was replaced by another", self.name)))
        };
    }

    fn verdict(&self, worker: &WorkerView) -> Option<FollowEnd> {
        let metadata = worker.metadata();
        let slug = metadata.reason.unwrap_or_default();
        let why = || worker.reason.clone().unwrap_or_else(|| slug.replace('_', " "));
        match metadata.status? {
            status @ (LoopStatus::Stopped | LoopStatus::Failed) => Some(match LoopEnd::from_word(slug) {
                Some(LoopEnd::Killed) => self.over(&StopReason::Killed),
                // A loop whose gates never held has failed; the word is the same.
                Some(end) if end.exit_code(status == LoopStatus::Failed) == 0 => FollowEnd::default(),
                Some(_) | None => FollowEnd { error: Some(why()), ..self.gave_up() },
            }),
            LoopStatus::Running => {
                (worker.status == Status::Lost).then(|| self.resumable(Status::Lost, None))
            }
            // Nobody is about to resume it.
            LoopStatus::Paused if metadata.paused_by.is_some_and(|by| !by.is_user()) => {
                Some(self.resumable(Status::Paused, worker.cause.as_ref()))
            }
            LoopStatus::Paused => self.end_if_parked(self.no_agent),
        }
    }

    /// Handles Ctrl-C or SIGTERM: the first one pauses the loop, the second one detaches.
    pub(super) fn interrupt(&mut self) -> Vec<FollowAction> {
        let name = &self.name;
        if self.asked {
            let hint = Some(format!("swarm ralph resume {name}"));
            return vec![FollowAction::End(FollowEnd { code: 130, error: None, hint })];
        }
        self.asked = true;
        let note = match self.paused && self.no_agent {
            true => format!("{name} is already paused"),
            false => format!("pausing {name}: its current agent finishes first (Ctrl-C again: detach)"),
        };
        vec![FollowAction::Note(note), FollowAction::Pause]
    }

    /// Ends a follower whose pause took effect. `no_agent`: no agent is working any more.
    fn end_if_parked(&self, no_agent: bool) -> Option<FollowEnd> {
        (self.asked && self.paused && no_agent).then(|| self.resumable(Status::Paused, None))
    }

    /// Exit status 1, with the hint how to resume a lost or paused loop.
    pub(super) fn resumable(&self, status: Status, cause: Option<&Cause>) -> FollowEnd {
        let code = LoopEnd::Lost.exit_code(true);
        FollowEnd { code, error: None, hint: self.next_step("to go on", status, cause) }
    }

    /// Exit status 1 of a finished loop, with the hint where to see what happened.
    fn gave_up(&self) -> FollowEnd {
        let code = LoopEnd::Failed.exit_code(true);
        FollowEnd { code, error: None, hint: self.next_step("what happened", Status::Failed, None) }
    }

    /// The hint for a loop in this state, after the words that lead to it.
    fn next_step(&self, lead: &str, status: Status, cause: Option<&Cause>) -> Option<String> {
        let (name, is_loop, is_paused, raise) = (&self.name, true, status == Status::Paused, None);
        let situation = Situation { name, status, is_loop, is_paused, cause, raise };
        next_step(&situation).map(|step| format!("{lead}: {step}"))
    }

    fn over(&self, reason: &StopReason) -> FollowEnd {
        let code = reason.exit_code();
        match reason {
            StopReason::Prompt(message) | StopReason::SpawnFailed(message) => {
                FollowEnd { code, error: Some(message.clone()), ..self.gave_up() }
            }
            reason if *reason == StopReason::Killed || reason.is_success() => {
                FollowEnd { code, ..FollowEnd::default() }
            }
            _ => FollowEnd { code, ..self.gave_up() },
        }
    }
}

impl FollowEnd {
    fn failed(error: String) -> Self {
        Self { code: 1, error: Some(error), hint: None }
    }
}

#[cfg(test)]
mod tests;
