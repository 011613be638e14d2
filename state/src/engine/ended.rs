//! Decides whether an ended run counts as a success or a failure, and names the reason.

use super::{Phase, Why, Worker};
use crate::gates::Verdict;
use crate::model::Exit;
use crate::notice::{Counts, Entry, IterationExit, StopReason};

/// How an iteration's run ended, for its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The kind of end.
    pub exit: IterationExit,
    /// Why, as a phrase.
    pub reason: String,
}

pub(super) fn kind(why: Option<Why>, exit: Exit) -> IterationExit {
    why.map_or(IterationExit::Exit(exit), Why::iteration_exit)
}

/// The kind of end once the output was read: a success whose screen shows a failed last request is an API error.
pub(super) fn kind_evaluated(why: Option<Why>, exit: Exit, verdict: &Verdict) -> IterationExit {
    let ended = kind(why, exit);
    if verdict.api_error.is_some() && ended.fails_by_api_error() { IterationExit::ApiError } else { ended }
}

impl Worker {
    /// How the run ended whose gates are being evaluated; `None` for a plain worker and in any other phase.
    pub fn ended(&self) -> Option<Ended> {
        let Phase::Evaluating { exit, why } = self.phase else { return None };
        let detail = self.ralph.as_ref()?.detail.clone();
        let exit = kind(why, exit);
        Some(Ended { exit, reason: detail.unwrap_or_else(|| exit.phrase()) })
    }

    /// The same if its prompt was delivered after all: the report of the exit may arrive first.
    pub fn ended_delivered(&self) -> Option<Ended> {
        let Phase::Evaluating { exit, why: Some(Why::Undelivered) } = self.phase else { return self.ended() };
        let exit = kind(None, exit);
        self.ralph.as_ref().map(|_| Ended { exit, reason: exit.phrase() })
    }

    /// Why swarm ended the last run, as a phrase; `None` when its agent exited by itself or a run is alive.
    pub fn ended_by_swarm(&self) -> Option<String> {
        self.last_exit?;
        let Some(ralph) = &self.ralph else {
            let Phase::Stopped { reason } = &self.phase else { return None };
            return matches!(reason, StopReason::Complete | StopReason::Killed).then(|| reason.text());
        };
        let (_, last_end) = ralph.last_end.as_ref()?;
        let (exit, message) = if let Entry::IterationFailed { exit, message, .. } = last_end {
            (*exit, message.clone())
        } else if let Entry::IterationEnded { exit, .. } = last_end {
            (*exit, None)
        } else {
            return None;
        };
        let by_itself = matches!(exit, IterationExit::Exit(_) | IterationExit::Outage);
        (!by_itself).then(|| message.unwrap_or_else(|| exit.phrase()))
    }

    /// Counts the end of an iteration; true if it failed.
    pub(super) fn count_end(&mut self, ended: IterationExit) -> bool {
        let Some(ralph) = &mut self.ralph else { return false };
        let counts = ended.counts_as();
        if counts == Counts::Success {
            (ralph.failures, ralph.succeeded) = (0, true);
        }
        counts == Counts::Failure
    }
}
