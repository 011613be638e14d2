//! The attention that a worker needs from a person, and the order in which workers are shown by it.
//!
//! Everything that shows or announces workers uses this one definition. Deliberately absent: the next step for the
//! person ([`crate::advice`]).

use serde::Serialize;

use crate::cause::Cause;
use crate::model::Status;
use crate::notice::PauseBy;

/// The groups of workers, in the order in which a person should look at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// Only a person can continue it.
    NeedsYou,
    /// Its work has failed, or its agent cannot be reached.
    FailedOrLost,
    /// Its agent or its checks work.
    Working,
    /// The worker continues later, by itself or when a person resumes it.
    Parked,
    /// The worker has finished with success, and no person has looked at it since.
    FinishedUnseen,
    /// All others: killed, or finished and seen.
    Rest,
}

crate::word_table!(
    pub Attention,
    title,
    [
        (NeedsYou, "needs you"),
        (FailedOrLost, "failed or lost"),
        (Working, "working"),
        (Parked, "parked"),
        (FinishedUnseen, "finished, unseen"),
        (Rest, "the rest")
    ]
);

impl Attention {
    /// The group of a worker. `is_seen`: a person has looked at it since it finished.
    pub fn of(status: Status, cause: Option<&Cause>, is_seen: bool) -> Self {
        match status {
            Status::Waiting => waiting(cause),
            Status::Paused => paused(cause),
            Status::Lost | Status::Unreachable => Self::FailedOrLost,
            Status::Failed if !is_seen => Self::FailedOrLost,
            Status::Done if !is_seen => Self::FinishedUnseen,
            Status::Failed | Status::Done | Status::Killed => Self::Rest,
            Status::Starting | Status::Running | Status::Retrying => Self::Working,
        }
    }
}

/// The group of a worker that waits. A worker whose cause only another version knows may wait for a person.
fn waiting(cause: Option<&Cause>) -> Attention {
    match cause {
        Some(Cause::Outage { outage, .. }) if !outage.needs_person() => Attention::Parked,
        Some(Cause::MemoryPressure { .. } | Cause::Quota { .. }) => Attention::Parked,
        // No agent works, and the person who holds the worker knows.
        Some(Cause::Held { .. }) => Attention::Parked,
        _ => Attention::NeedsYou,
    }
}

/// The group of a paused loop: a person who paused it knows.
fn paused(cause: Option<&Cause>) -> Attention {
    match cause {
        Some(Cause::Paused { by: PauseBy::User | PauseBy::Shutdown, .. }) => Attention::Parked,
        _ => Attention::NeedsYou,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::HoldBy;
    use crate::outage::OutageKind;

    #[test]
    fn the_group_of_each_worker() {
        let outage = |outage| Cause::Outage { outage, message: "m".into(), until: None, retry_seconds: 5 };
        let paused = |by| Cause::Paused { by, detail: None };
        let held = |by| Cause::Held { by, since: chrono::DateTime::UNIX_EPOCH.fixed_offset() };
        let disk = Cause::DiskFull { error: "no space left".into() };
        let pressure = Cause::MemoryPressure { percent: 34, limit: 20 };
        for (status, cause, is_seen, group) in [
            (Status::Starting, None, false, Attention::Working),
            (Status::Running, Some(paused(PauseBy::NoProgress)), false, Attention::Working),
            (Status::Retrying, None, false, Attention::Working),
            (Status::Running, Some(held(HoldBy::Typing)), false, Attention::Working),
            (Status::Running, Some(held(HoldBy::Command)), false, Attention::Working),
            (Status::Waiting, Some(held(HoldBy::Command)), false, Attention::Parked),
            (Status::Waiting, None, false, Attention::NeedsYou),
            (
                Status::Waiting,
                Some(Cause::NeedsPerson { text: "asks".into(), answerable: true }),
                true,
                Attention::NeedsYou,
            ),
            (Status::Waiting, Some(outage(OutageKind::Login)), false, Attention::NeedsYou),
            (Status::Waiting, Some(outage(OutageKind::Limit)), false, Attention::Parked),
            (Status::Waiting, Some(pressure), false, Attention::Parked),
            (Status::Waiting, Some(disk), false, Attention::NeedsYou),
            (Status::Paused, Some(paused(PauseBy::User)), false, Attention::Parked),
            (Status::Paused, Some(paused(PauseBy::Shutdown)), false, Attention::Parked),
            (Status::Paused, Some(paused(PauseBy::StoryStuck)), false, Attention::NeedsYou),
            (Status::Paused, None, false, Attention::NeedsYou),
            (Status::Lost, Some(Cause::Lost { host: None }), true, Attention::FailedOrLost),
            (Status::Unreachable, None, false, Attention::FailedOrLost),
            (Status::Failed, None, false, Attention::FailedOrLost),
            (Status::Failed, None, true, Attention::Rest),
            (Status::Done, None, false, Attention::FinishedUnseen),
            (Status::Done, None, true, Attention::Rest),
            (Status::Killed, None, false, Attention::Rest),
        ] {
            assert_eq!(Attention::of(status, cause.as_ref(), is_seen), group, "{status} {cause:?}");
        }
    }

    #[test]
    fn groups_sort_in_the_order_of_the_list() {
        assert!(Attention::ALL.is_sorted());
    }
}
