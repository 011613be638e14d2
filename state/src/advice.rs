//! Derives the next step that swarm suggests to a person from the status and cause of a worker or loop.
//!
//! `status`, `ralph status`, `why`, `attach` and `wait` all use it, so that they agree. Deliberately absent: facts that
//! only a report has, such as changed checks and a worktree to merge.

use crate::cause::Cause;
use crate::ends::StopReason;
use crate::engine::RELEASE_DELAY;
use crate::model::Status;
use crate::notice::{HoldBy, PauseBy};
use crate::profiles::YES_OR_NO;

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
    /// Why it is in its state; `None` also where a later daemon's cause is unknown here.
    pub cause: Option<&'a Cause>,
    /// The limits to raise before a loop that ended at a limit can continue; `None` if it cannot.
    pub raise: Option<&'a [String]>,
}

/// The next step, one line; `None` where there is nothing to do and nothing to wait for.
pub fn next_step(of: &Situation<'_>) -> Option<String> {
    let name = of.name;
    Some(match (of.status, of.cause) {
        (_, Some(Cause::Held { by: HoldBy::Typing, .. })) => {
            let seconds = RELEASE_DELAY.as_secs();
            format!("swarm goes on {seconds} s after you detach; at once: swarm release {name}")
        }
        (_, Some(Cause::Held { by: HoldBy::Command, .. })) => format!("swarm release {name}"),
        (Status::Waiting, cause) => while_waiting(name, cause),
        (_, Some(Cause::EarlierSwarm { .. })) => clean_later(name),
        (Status::Lost, _) => start_again(name, of.is_loop),
        (_, Some(Cause::Paused { by: PauseBy::BudgetUnseen, .. })) => format!(
            "make the agent print its usage (claude -p --output-format json), or remove the limit that you have set \
             (swarm ralph set {name} max_cost=none, or max_tokens=none); then swarm ralph resume {name}"
        ),
        (_, Some(Cause::Paused { by: PauseBy::CannotCheck, .. })) => {
            format!("fix that, then swarm ralph resume {name}")
        }
        (_, Some(Cause::Paused { by: PauseBy::NoProgress, .. })) => format!(
            "look at the iterations (swarm report {name}), and change the task \
             (swarm ralph set {name} prompt_file=FILE); then swarm ralph resume {name}"
        ),
        (_, Some(Cause::Paused { by: PauseBy::StoryStuck, .. })) => {
            review(name, "fix it, the story or its checks")
        }
        (_, Some(Cause::Paused { by: PauseBy::HeldOut, .. })) => {
            review(name, "fix the task or the hidden check")
        }
        _ if of.is_paused => format!("swarm ralph resume {name}"),
        // After failures alone, the reason comes first.
        (Status::Done | Status::Failed, Some(Cause::Stopped { reason, .. }))
            if !matches!(reason, StopReason::Failures(_) | StopReason::AllFailed)
                && let Some(changes) = of.raise =>
        {
            format!("to continue it: {}", raise_and_resume(name, changes))
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

/// The step for a loop whose agent does not get further by itself.
fn review(name: &str, change: &str) -> String {
    format!("look at the work (swarm ralph diff {name}), and {change}; then swarm ralph resume {name}")
}

fn while_waiting(name: &str, cause: Option<&Cause>) -> String {
    match cause {
        Some(Cause::DiskFull { .. }) => {
            "make room on the disk, or fix the error; swarm then goes on by itself".to_owned()
        }
        Some(Cause::MemoryPressure { .. }) => {
            "swarm goes on by itself; to free memory, end other programs or workers".to_owned()
        }
        Some(Cause::Outage { outage, .. }) if outage.needs_person() => format!(
            "log in with the agent's own command, then: swarm ralph resume {name}; \
             with another key: swarm ralph resume {name} --env KEY"
        ),
        Some(Cause::Outage { .. }) => {
            format!("swarm goes on by itself; to try at once: swarm ralph resume {name}")
        }
        Some(Cause::Quota { .. }) => format!(
            "swarm goes on by itself; to go on at once: swarm ralph resume {name}; \
             for all parked loops: swarm ralph resume --all --now"
        ),
        Some(Cause::NeedsPerson { answerable: true, .. }) => {
            format!("swarm answer {name} yes, no, always or a text; or: swarm attach {name}")
        }
        Some(Cause::NeedsPerson { text, .. }) if text == YES_OR_NO => {
            format!("answer as it asks (swarm send {name} y), or: swarm attach {name}")
        }
        _ => format!("the agent waits for you: swarm attach {name}"),
    }
}

/// The command that continues a loop that ended at limits, after the changes that `ralph set` has to make.
pub fn raise_and_resume(name: &str, changes: &[String]) -> String {
    let resume = format!("swarm ralph resume {name}");
    if changes.is_empty() {
        resume
    } else {
        format!("swarm ralph set {name} {} && {resume}", changes.join(" "))
    }
}

/// The step after the memory of a worker reached its cap, which a respawn does not change.
pub fn raise_memory(name: &str) -> String {
    format!(
        "a respawn keeps the memory cap; to raise it, start {name} again with the options that it had, --replace and \
         a higher --memory"
    )
}

/// The step for a worker of an earlier swarm.
pub fn clean_later(name: &str) -> String {
    format!("once it has ended there, remove it from the list: swarm clean {name}")
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
        let asks = Cause::NeedsPerson { text: "trust dialog".into(), answerable: false };
        let answer = "swarm answer a yes, no, always or a text; or: swarm attach a";
        let held_open = Cause::NeedsPerson { text: "Bash: make".into(), answerable: true };
        let failed = Cause::stopped(StopReason::AllFailed);
        let disk = Cause::DiskFull { error: "no space left".into() };
        let earlier = Cause::EarlierSwarm { status: "running".into() };
        let room = "make room on the disk, or fix the error; swarm then goes on by itself";
        let (plain, looping, held) = ((false, false), (true, false), (true, true));
        for (status, (is_loop, is_paused), cause, step) in [
            (Status::Starting, looping, None, ""),
            (Status::Running, plain, None, ""),
            (Status::Done, looping, None, ""),
            (Status::Waiting, looping, Some(&asks), "the agent waits for you: swarm attach a"),
            (Status::Waiting, held, Some(&asks), "the agent waits for you: swarm attach a"),
            (Status::Waiting, looping, Some(&held_open), answer),
            // The cause of an older or later daemon is not known.
            (Status::Waiting, looping, None, "the agent waits for you: swarm attach a"),
            (Status::Waiting, plain, Some(&disk), room),
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
            (Status::Lost, looping, Some(&Cause::Lost { host: None }), "swarm ralph resume a"),
            (Status::Lost, plain, Some(&Cause::Lost { host: None }), "swarm respawn a"),
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
            let next = next_step(&Situation { name: "a", status, is_loop, is_paused, cause, raise: None });
            assert_eq!(next.unwrap_or_default(), step, "{status:?} {cause:?}");
        }
    }

    #[test]
    fn yes_or_no_question_on_the_screen_is_answered_with_send() {
        let cause = Some(&Cause::NeedsPerson { text: YES_OR_NO.into(), answerable: false });
        let (name, is_loop, is_paused, raise) = ("a", false, false, None);
        let of = Situation { name, status: Status::Waiting, is_loop, is_paused, cause, raise };
        let step = "answer as it asks (swarm send a y), or: swarm attach a";
        assert_eq!(next_step(&of).as_deref(), Some(step));
    }

    #[test]
    fn each_pause_has_its_next_step() {
        let limit = "make the agent print its usage (claude -p --output-format json), or remove the limit that you have set \
                     (swarm ralph set a max_cost=none, or max_tokens=none); then swarm ralph resume a";
        let stalled = "look at the iterations (swarm report a), and change the task \
                       (swarm ralph set a prompt_file=FILE); then swarm ralph resume a";
        let look = |change| {
            format!("look at the work (swarm ralph diff a), and {change}; then swarm ralph resume a")
        };
        for (by, step) in [
            (PauseBy::User, "swarm ralph resume a".to_owned()),
            (PauseBy::Shutdown, "swarm ralph resume a".to_owned()),
            (PauseBy::CannotCheck, "fix that, then swarm ralph resume a".to_owned()),
            (PauseBy::BudgetUnseen, limit.to_owned()),
            (PauseBy::NoProgress, stalled.to_owned()),
            (PauseBy::StoryStuck, look("fix it, the story or its checks")),
            (PauseBy::HeldOut, look("fix the task or the hidden check")),
        ] {
            let cause = Some(&Cause::Paused { by, detail: None });
            // A loop that pauses after its iteration still runs.
            for status in [Status::Running, Status::Paused] {
                let (name, is_loop, is_paused, raise) = ("a", true, true, None);
                let of = Situation { name, status, is_loop, is_paused, cause, raise };
                assert_eq!(next_step(&of).as_deref(), Some(step.as_str()));
            }
        }
    }

    #[test]
    fn next_step_of_a_held_worker_is_its_release() {
        let typed = "swarm goes on 30 s after you detach; at once: swarm release a";
        for (status, by, step) in
            [(Status::Running, HoldBy::Typing, typed), (Status::Waiting, HoldBy::Command, "swarm release a")]
        {
            let cause = Some(&Cause::Held { by, since: chrono::DateTime::UNIX_EPOCH.fixed_offset() });
            let (name, is_loop, is_paused, raise) = ("a", true, false, None);
            let of = Situation { name, status, is_loop, is_paused, cause, raise };
            assert_eq!(next_step(&of).as_deref(), Some(step));
        }
    }

    #[test]
    fn a_loop_that_ended_at_a_limit_can_be_continued() {
        let both = "to continue it: swarm ralph set a max_cost=2.00 max_time=3h && swarm ralph resume a";
        for (status, reason, raise, step) in [
            (Status::Failed, StopReason::Failures(5), Some("max_failures=10"), "swarm why a"),
            (Status::Failed, StopReason::NoGate, None, "swarm why a"),
            (Status::Killed, StopReason::Killed, None, ""),
            (
                Status::Done,
                StopReason::MaxIterations,
                Some("max_iterations=14"),
                "to continue it: swarm ralph set a max_iterations=14 && swarm ralph resume a",
            ),
            (Status::Failed, StopReason::OutOfTime(5400), Some("max_cost=2.00 max_time=3h"), both),
            // The limit was raised since.
            (Status::Done, StopReason::MaxIterations, Some(""), "to continue it: swarm ralph resume a"),
            // Its files are gone.
            (Status::Done, StopReason::MaxIterations, None, ""),
            (Status::Failed, StopReason::OutOfTime(5400), None, "swarm why a"),
        ] {
            let cause = Cause::stopped(reason);
            let raise = raise.map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
            let (name, is_loop, is_paused, raise) = ("a", true, false, raise.as_deref());
            let of = Situation { name, status, is_loop, is_paused, cause: Some(&cause), raise };
            assert_eq!(next_step(&of).unwrap_or_default(), step, "{cause:?}");
        }
    }
}
