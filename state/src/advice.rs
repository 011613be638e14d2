//! Derives the next step that swarm suggests to a person from the status and cause of a worker or loop.
//!
//! `status`, `ralph status`, `why`, `attach` and `wait` all use it, so that they agree. Deliberately absent: facts that
//! only a report has, such as changed checks and a worktree to merge.

use crate::cause::Cause;
use crate::ends::StopReason;
use crate::model::Status;
use crate::notice::PauseBy;

/// The facts that the next step depends on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The worker's name.
    pub name: &'a str,
    /// The worker's status.
    pub status: Status,
    /// Whether it is a loop.
    pub is_loop: bool,
    /// Whether it is a paused loop.
    pub is_paused: bool,
    /// The current or last iteration of a loop; 0 before the first, and for a plain worker.
    pub iteration: u32,
    /// Why it is in its state; `None` also where a later daemon's cause is unknown here.
    pub cause: Option<&'a Cause>,
}

/// The next step, one line; `None` where there is nothing to do and nothing to wait for.
pub fn next_step(of: &Situation<'_>) -> Option<String> {
    let name = of.name;
    Some(match (of.status, of.cause) {
        (Status::Waiting, Some(Cause::DiskFull { .. })) => {
            "make room on the disk; swarm then goes on by itself".to_owned()
        }
        (Status::Waiting, Some(Cause::Outage { outage, .. })) if outage.needs_person() => format!(
            "log in with the agent's own command, then: swarm ralph resume {name}; \
             with another key: swarm ralph resume {name} --env KEY"
        ),
        (Status::Waiting, Some(Cause::Outage { .. })) => {
            format!("swarm goes on by itself; to try at once: swarm ralph resume {name}")
        }
        (Status::Waiting, _) => format!("the agent waits for you: swarm attach {name}"),
        (_, Some(Cause::EarlierSwarm { .. })) => {
            format!("once it has ended there, remove it from the list: swarm clean {name}")
        }
        (Status::Lost, _) => start_again(name, of.is_loop),
        (_, Some(Cause::Paused { by: PauseBy::BudgetUnseen })) => format!(
            "make the agent print its cost (claude -p --output-format json), or set prices in the settings; \
             for one more iteration: swarm ralph resume {name}"
        ),
        (_, Some(Cause::Paused { by: PauseBy::HeldOut })) => format!(
            "review the work (swarm ralph diff {name}), and fix the task or the hidden check; \
             for more tries: swarm ralph resume {name}"
        ),
        _ if of.is_paused => format!("swarm ralph resume {name}"),
        // After failures alone, the reason comes first.
        (Status::Done | Status::Failed, Some(Cause::Stopped { reason, .. }))
            if !matches!(reason, StopReason::Failures(_) | StopReason::AllFailed)
                && let Some(command) = raise_and_resume(name, reason.raised(of.iteration, 0)) =>
        {
            format!("to continue it: {command}")
        }
        (Status::Failed, _) => format!("swarm why {name}"),
        (Status::Unreachable, _) => {
            "swarm goes on by itself when tmux answers again: swarm doctor".to_owned()
        }
        (Status::Retrying, _) => {
            format!("swarm tries again by itself; to give up: swarm kill {name}")
        }
        // A paused loop was answered above.
        (Status::Starting | Status::Running | Status::Paused | Status::Done | Status::Killed, _) => {
            return None;
        }
    })
}

/// The command that continues a loop that ended at limits; `changes` are those of [`StopReason::raised`]. `None`
/// without changes.
pub fn raise_and_resume(name: &str, changes: impl IntoIterator<Item = String>) -> Option<String> {
    let changes: Vec<String> = changes.into_iter().collect();
    let changes = Some(changes.join(" ")).filter(|text| !text.is_empty())?;
    Some(format!("swarm ralph set {name} {changes} && swarm ralph resume {name}"))
}

/// The command that goes on with a worker whose tmux server went away.
pub fn start_again(name: &str, is_loop: bool) -> String {
    if is_loop { format!("swarm ralph resume {name}") } else { format!("swarm respawn {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outage::OutageKind;

    #[test]
    fn the_next_step_for_each_situation() {
        let outage = |outage| Cause::Outage { outage, message: "m".into(), until: None, retry_seconds: 5 };
        let asks = Cause::NeedsPerson { text: "trust dialog".into() };
        let failed = Cause::Stopped { reason: StopReason::AllFailed, failure: None };
        let paused = |by| Cause::Paused { by };
        let disk = Cause::DiskFull { error: "no space left".into() };
        let earlier = Cause::EarlierSwarm { status: "running".into() };
        let (plain, looping, held) = ((false, false), (true, false), (true, true));
        for (status, (is_loop, is_paused), cause, step) in [
            (Status::Starting, looping, None, ""),
            (Status::Running, plain, None, ""),
            (Status::Done, looping, None, ""),
            (Status::Waiting, looping, Some(&asks), "the agent waits for you: swarm attach a"),
            (Status::Waiting, held, Some(&asks), "the agent waits for you: swarm attach a"),
            // The cause of an older or later daemon is not known.
            (Status::Waiting, looping, None, "the agent waits for you: swarm attach a"),
            (Status::Waiting, plain, Some(&disk), "make room on the disk; swarm then goes on by itself"),
            (
                Status::Waiting,
                looping,
                Some(&outage(OutageKind::Limit)),
                "swarm goes on by itself; to try at once: swarm ralph resume a",
            ),
            (
                Status::Waiting,
                looping,
                Some(&outage(OutageKind::Login)),
                "log in with the agent's own command, then: swarm ralph resume a; with another key: swarm ralph resume a --env KEY",
            ),
            (Status::Paused, held, Some(&paused(PauseBy::User)), "swarm ralph resume a"),
            (Status::Running, held, Some(&paused(PauseBy::NoProgress)), "swarm ralph resume a"),
            (
                Status::Paused,
                held,
                Some(&paused(PauseBy::BudgetUnseen)),
                "make the agent print its cost (claude -p --output-format json), or set prices in the settings; for one more iteration: swarm ralph resume a",
            ),
            (Status::Lost, looping, Some(&Cause::Lost), "swarm ralph resume a"),
            (Status::Lost, plain, Some(&Cause::Lost), "swarm respawn a"),
            (Status::Failed, looping, Some(&failed), "swarm why a"),
            (Status::Failed, plain, Some(&failed), "swarm why a"),
            (
                Status::Running,
                looping,
                Some(&earlier),
                "once it has ended there, remove it from the list: swarm clean a",
            ),
            (
                Status::Unreachable,
                looping,
                None,
                "swarm goes on by itself when tmux answers again: swarm doctor",
            ),
            (Status::Retrying, plain, None, "swarm tries again by itself; to give up: swarm kill a"),
        ] {
            let next = next_step(&Situation { name: "a", status, is_loop, is_paused, iteration: 7, cause });
            assert_eq!(next.unwrap_or_default(), step, "{status:?} {cause:?}");
        }
    }

    #[test]
    fn failed_held_out_checks_call_for_a_review() {
        let cause = Some(&Cause::Paused { by: PauseBy::HeldOut });
        let (name, is_loop, is_paused, iteration) = ("a", true, true, 3);
        let of = Situation { name, status: Status::Paused, is_loop, is_paused, iteration, cause };
        let step = "review the work (swarm ralph diff a), and fix the task or the hidden check; \
                    for more tries: swarm ralph resume a";
        assert_eq!(next_step(&of).as_deref(), Some(step));
    }

    #[test]
    fn a_loop_that_ended_at_a_limit_can_be_continued() {
        for (status, reason, step) in [
            (Status::Failed, StopReason::Failures(5), "swarm why a"),
            (Status::Failed, StopReason::NoGate, "swarm why a"),
            (Status::Killed, StopReason::Killed, ""),
            (
                Status::Done,
                StopReason::MaxIterations,
                "to continue it: swarm ralph set a max_iterations=14 && swarm ralph resume a",
            ),
            (
                Status::Failed,
                StopReason::OutOfTime(5400),
                "to continue it: swarm ralph set a max_time=3h0m0s && swarm ralph resume a",
            ),
        ] {
            let cause = Cause::Stopped { reason, failure: None };
            let (name, is_loop, is_paused, iteration) = ("a", true, false, 7);
            let of = Situation { name, status, is_loop, is_paused, iteration, cause: Some(&cause) };
            assert_eq!(next_step(&of).unwrap_or_default(), step, "{cause:?}");
        }
    }
}
