//! How a worker is, in the words that people are shown: derived, never stored.

use chrono::Timelike;

use super::{Phase, Restarts, Watch, Why, Worker};
use crate::ends::End;
use crate::model::{LoopStatus, Outcome, Status};
use crate::notice::{Entry, PauseBy, StopReason, duration};
use crate::outage::{GOES_ON, Outage};

impl Worker {
    /// The one word for how it is.
    pub fn status(&self) -> Status {
        let live = |calm: Status| match (self.reachable, &self.trouble) {
            (false, _) => Status::Unreachable,
            (true, Some(_)) => Status::Waiting,
            (true, None) => calm,
        };
        match &self.phase {
            Phase::Idle | Phase::Spawning { .. } | Phase::Starting { .. } | Phase::Prompting { .. } => {
                live(Status::Starting)
            }
            Phase::Running { .. } | Phase::Ending { .. } | Phase::Judging { .. } => live(Status::Running),
            Phase::BackingOff { .. } if self.outage().is_some() => Status::Waiting,
            Phase::BackingOff { .. } => Status::BackingOff,
            Phase::Parked => Status::Stopped,
            Phase::Lost => Status::Lost,
            Phase::Stopped { reason } if reason.is_success() => Status::Stopped,
            Phase::Stopped { reason: StopReason::Killed } => Status::Stopped,
            Phase::Stopped { .. } => Status::Failed,
        }
    }

    /// True when it was killed, or is being killed.
    pub fn is_killed(&self) -> bool {
        matches!(
            self.phase,
            Phase::Spawning { doomed: true }
                | Phase::Ending { why: Why::Kill, .. }
                | Phase::Judging { why: Some(Why::Kill), .. }
                | Phase::Stopped { reason: StopReason::Killed }
        )
    }

    /// True when the run that is about to start should not: the worker was killed, or its loop paused.
    pub fn is_held_back(&self) -> bool {
        self.is_killed() || self.ralph.as_ref().is_some_and(|ralph| ralph.paused.is_some())
    }

    /// How it has ended; `None` while it is not over (a paused or lost loop can go on).
    pub fn outcome(&self) -> Option<Outcome> {
        let Phase::Stopped { reason } = &self.phase else { return None };
        Some(if reason.is_success() {
            Outcome::Done
        } else if *reason == StopReason::Killed {
            Outcome::Killed
        } else {
            Outcome::Failed
        })
    }

    /// True while a person's text is being typed into the agent.
    pub(super) fn is_typing(&self) -> bool {
        matches!(&self.phase, Phase::Running { watch } if watch.typing > 0)
    }

    /// True while swarm ends the run or judges it: nothing that is typed would be read.
    pub fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending { .. } | Phase::Judging { .. })
    }

    /// True while the agent shows its input box, as far as the last look tells.
    pub fn is_ready(&self) -> bool {
        self.calm_watch().is_some_and(|watch| watch.ready)
    }

    /// True while the agent's turn is over, as it said or its screen tells.
    pub fn is_idle(&self) -> bool {
        self.calm_watch().is_some_and(Watch::idle)
    }

    /// What was seen of an agent that runs and needs nobody.
    fn calm_watch(&self) -> Option<&Watch> {
        match &self.phase {
            Phase::Running { watch } if self.reachable && self.trouble.is_none() => Some(watch),
            Phase::Running { .. }
            | Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => None,
        }
    }

    /// True while the run's agent is coming up as it should: nothing can be typed yet, and something will
    /// come of it: a ready screen, the news that there is none, or its end.
    pub fn comes_up(&self) -> bool {
        matches!(self.phase, Phase::Starting { .. }) && self.trouble.is_none()
    }

    /// Why it is so, in words, where there is something to say.
    pub fn reason(&self) -> Option<String> {
        let paused = self.ralph.as_ref().and_then(|l| l.paused).map(|by| match by {
            PauseBy::User => "paused".to_owned(),
            PauseBy::Shutdown => "paused when the daemon stopped".to_owned(),
            PauseBy::NoProgress => "paused: no progress".to_owned(),
            PauseBy::BudgetUnseen => format!("paused: {}", crate::budget::UNSEEN),
        });
        match &self.phase {
            Phase::Stopped { reason } => Some(match (reason, self.failure()) {
                // Of what went wrong last, these do not say anything.
                (
                    StopReason::Failures(_)
                    | StopReason::MaxIterations
                    | StopReason::AllFailed
                    | StopReason::Unverified,
                    Some(why),
                ) => {
                    format!("{}: {why}", reason.word())
                }
                (reason, _) => reason.word(),
            }),
            Phase::Lost => Some("the tmux server went away".to_owned()),
            Phase::BackingOff { delay, .. } => {
                let restart = self.restarts.as_ref().and_then(Restarts::reason);
                let outage = self.outage().map(|outage| outage_words(outage, delay.as_secs()));
                let why = self.failure().map(|why| format!(": {why}")).unwrap_or_default();
                restart
                    .or(outage)
                    .or_else(|| Some(format!("next try {}s after a failure{why}", delay.as_secs())))
            }
            Phase::Ending { why, .. } => Some(
                match why {
                    Why::Inactivity | Why::Silent => "ending: inactivity",
                    Why::Undelivered => "ending: its prompt was not delivered",
                    Why::Unanswered => "ending: its question was not answered",
                    Why::Done => "ending: done pattern matched",
                    Why::TurnOver => "ending: turn over",
                    Why::Timeout => "ending: the iteration is out of time",
                    Why::OutOfTime => "ending: the loop is out of time",
                    Why::ApiError => "ending: its API failed it",
                    Why::ContextSpent => "ending: its context is full",
                    Why::Kill => "ending: killed",
                }
                .to_owned(),
            ),
            Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. }
            | Phase::Judging { .. }
            | Phase::Parked => self.trouble.as_ref().map(|t| t.what.clone()).or(paused),
        }
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

    /// The document's word for how its loop is; `None` for a plain worker.
    pub fn loop_status(&self) -> Option<LoopStatus> {
        let ralph = self.ralph.as_ref()?;
        Some(match &self.phase {
            Phase::Stopped { reason } => End::of(reason).status(End::is_missed(reason)),
            Phase::Idle
            | Phase::Spawning { .. }
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost => {
                if ralph.paused.is_some() {
                    LoopStatus::Paused
                } else {
                    LoopStatus::Running
                }
            }
        })
    }
}

fn outage_words(outage: &Outage, delay: u64) -> String {
    if outage.kind.needs_person() {
        let delay = duration(delay, " ");
        return format!("needs you: {} (swarm retries within {delay})", outage.message);
    }
    match outage.until {
        Some(until) => {
            let (day, hour, minute) = (until.date_naive(), until.hour(), until.minute());
            format!("{} ({GOES_ON} at {day} {hour:02}:{minute:02})", outage.message)
        }
        None => format!("{} ({GOES_ON} within {})", outage.message, duration(delay, " ")),
    }
}
