//! A worker's status and its cause: derived from the state, never stored.

use super::{Phase, Watch, Why, Worker};
use crate::cause::Cause;
use crate::model::{Exit, LoopStatus, Status};
use crate::notice::{Entry, PauseBy, StopReason};
use crate::outage::Outage;
use crate::quota::Park;

impl Worker {
    /// The worker's status.
    pub fn status(&self) -> Status {
        let live = |calm: Status| match (self.reachable, &self.trouble) {
            (false, _) => Status::Unreachable,
            // The person who types handles the dialog.
            (true, Some(_)) if self.is_held_by_typing() => calm,
            (true, Some(_)) => Status::Waiting,
            (true, None) => calm,
        };
        match &self.phase {
            Phase::Idle | Phase::Spawning { .. } | Phase::Starting { .. } | Phase::Prompting { .. } => {
                live(Status::Starting)
            }
            Phase::Running { .. } | Phase::Ending { .. } | Phase::Evaluating { .. } => live(Status::Running),
            Phase::BackingOff { .. } if self.outage().is_some() || self.is_held() => Status::Waiting,
            Phase::BackingOff { .. } => Status::Retrying,
            Phase::Parked => Status::Paused,
            Phase::Lost => Status::Lost,
            Phase::Stopped { reason } => reason.status(),
        }
    }

    /// True when it was killed, or is being killed.
    pub fn is_killed(&self) -> bool {
        self.phase.end_reason() == Some(Why::Kill)
            || matches!(self.phase, Phase::Stopped { reason: StopReason::Killed })
    }

    /// True when the run that is about to start should not: the worker was killed or is held, or its loop paused.
    pub fn is_held_back(&self) -> bool {
        self.is_killed() || self.is_held() || self.ralph.as_ref().is_some_and(|ralph| ralph.paused.is_some())
    }

    pub(super) fn is_typing(&self) -> bool {
        matches!(&self.phase, Phase::Running { watch } if watch.typing > 0)
    }

    /// True while swarm ends the run or judges it: the agent would not read typed text.
    pub fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending { .. } | Phase::Evaluating { .. })
    }

    /// True if the agent showed its input box at the last look.
    pub fn is_ready(&self) -> bool {
        self.calm_watch().is_some_and(|watch| watch.ready)
    }

    /// True while the agent's turn has ended, by its hook or its screen.
    pub fn is_idle(&self) -> bool {
        self.calm_watch().is_some_and(Watch::idle)
    }

    /// Returns the observations of a running agent that needs no person.
    fn calm_watch(&self) -> Option<&Watch> {
        let Phase::Running { watch } = &self.phase else { return None };
        (self.reachable && self.trouble.is_none()).then_some(watch)
    }

    /// True while the agent is starting normally: nothing can be typed yet, and a ready screen, a report that there
    /// is none, or its end will follow.
    pub fn is_starting_up(&self) -> bool {
        let Phase::Starting { watch, .. } = &self.phase else { return false };
        // A held agent stays in this phase, since its prompt is not delivered.
        let is_left_alone = self.is_held() && watch.ready;
        self.trouble.is_none() && !is_left_alone
    }

    /// Why the worker is in its state, as text.
    pub fn reason(&self) -> Option<String> {
        self.cause().map(|cause| cause.text())
    }

    /// The cause of a held worker. A request of the agent is more important, because the person may be away.
    fn held_cause(&self) -> Option<Cause> {
        let (by, since) = self.held_by()?;
        if matches!(self.phase, Phase::Stopped { .. } | Phase::Lost | Phase::Parked | Phase::Ending { .. }) {
            return None;
        }
        let asks = self.trouble.is_some() && self.has_pane() && !self.is_held_by_typing();
        (!asks).then_some(Cause::Held { by, since })
    }

    /// Why the worker is in its state, if there is a reason.
    pub fn cause(&self) -> Option<Cause> {
        self.held_cause().or_else(|| self.own_cause())
    }

    fn own_cause(&self) -> Option<Cause> {
        match &self.phase {
            Phase::Stopped { reason } => {
                let last_end = || self.restarts.as_ref()?.last_end.clone();
                let failure = if !reason.shows_failure() {
                    None
                } else if self.ralph.is_some() {
                    self.failure()
                } else {
                    last_end()
                };
                let is_explained = reason.shows_failure() || matches!(reason, StopReason::Exited(_));
                let out_of_memory = is_explained && matches!(self.last_exit, Some(Exit::OutOfMemory(_)));
                Some(Cause::Stopped { reason: reason.clone(), failure, out_of_memory })
            }
            Phase::Lost => Some(Cause::Lost { host: None }),
            Phase::BackingOff { delay, .. } => self.wait_cause(delay.as_secs()),
            Phase::Ending { why, .. } => Some(Cause::Ending { why: *why }),
            Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Evaluating { .. }
            | Phase::Parked
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. } => {
                let paused = || {
                    let ralph = self.ralph.as_ref()?;
                    let by = ralph.paused?;
                    let details = [
                        (PauseBy::CannotCheck, &ralph.cannot_check),
                        (PauseBy::StoryStuck, &ralph.story_stuck),
                    ];
                    let detail = details.into_iter().find(|(of, _)| *of == by);
                    let detail = detail.and_then(|(_, detail)| detail.clone());
                    Some(Cause::Paused { by, detail })
                };
                let what = self.trouble.as_ref().map(|trouble| trouble.what.clone());
                what.map(|text| Cause::NeedsPerson { text, answerable: false }).or_else(paused)
            }
        }
    }

    /// Why the worker waits for its next run, which it starts `retry_seconds` after the last one.
    fn wait_cause(&self, retry_seconds: u64) -> Option<Cause> {
        let restart = || Some(Cause::Restart { text: self.restarts.as_ref()?.reason()? });
        let quota = || {
            let Park { account, limit, used, until } = self.ralph.as_ref()?.park.clone()?;
            Some(Cause::Quota { account, window: limit, used, until })
        };
        let outage = || {
            let Outage { kind, message, until } = self.outage()?.clone();
            Some(Cause::Outage { outage: kind, message, until, retry_seconds })
        };
        let backoff = || {
            let ralph = self.ralph.as_ref()?;
            let (failures, max_failures) = (ralph.failures, ralph.budgets.max_failures);
            Some(Cause::Backoff { retry_seconds, failure: self.failure(), failures, max_failures })
        };
        restart().or_else(quota).or_else(outage).or_else(backoff)
    }

    /// Why the current or last iteration failed; `None` when it did not.
    pub fn failure(&self) -> Option<String> {
        let ralph = self.ralph.as_ref()?;
        match &ralph.last_end {
            Some((of, Entry::IterationFailed { exit, message, .. })) if *of == ralph.iteration => {
                Some(message.clone().unwrap_or_else(|| exit.phrase()))
            }
            _ => None,
        }
    }

    /// The status of its loop; `None` for a plain worker.
    pub fn loop_status(&self) -> Option<LoopStatus> {
        let ralph = self.ralph.as_ref()?;
        if let Phase::Stopped { reason } = &self.phase {
            return Some(reason.loop_status());
        }
        Some(if ralph.paused.is_some() { LoopStatus::Paused } else { LoopStatus::Running })
    }
}
