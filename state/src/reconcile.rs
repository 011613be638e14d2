//! Compares saved workers with the panes that exist, and decides what became of each run.
//!
//! Called when the daemon starts and when the tmux server was replaced. The daemon lists the panes and reads the
//! files of the wrappers; this module decides; the engine acts.

use crate::engine::{Event, Phase, SpawnError, Worker};
use crate::model::{Exit, Run};

/// Why a run failed whose wrapper started no agent.
const UNSTARTED: &str = "swarm's wrapper in the pane ended before it started the agent";

/// The facts about one run of one worker after a restart of the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunEvidence {
    /// Its pane exists and the wrapper in it is alive.
    pub alive: bool,
    /// Its pane exists but is dead, with the exit that tmux reports, if any.
    pub dead: Option<Option<Exit>>,
    /// The exit that the wrapper recorded.
    pub recorded: Option<Exit>,
    /// The wrapper recorded that its pane was closed while the agent ran.
    pub closed_under_it: bool,
    /// The wrapper recorded that it could not start the agent for a reason of its own.
    pub unstarted: bool,
    /// The wrapper recorded that the agent had started.
    pub started: bool,
    /// No wrapper has read its orders.
    pub unread: bool,
    /// The tmux server (same process) that held the pane is there; `None` if something at its socket does not answer.
    pub same_server: Option<bool>,
}

/// True when the wrapper is gone, only the tmux server can report how the run ended, and it does not answer. The
/// daemon then waits for the server, for a bounded time.
pub fn needs_server(worker: &Worker, seen: RunEvidence) -> bool {
    let has_run = worker.has_pane() && !matches!(worker.phase(), Phase::Evaluating { .. });
    has_run && !seen.alive && ended(worker, seen).is_none()
}

/// The event for the engine about its current run; `None` without a current run, or when [`needs_server`] holds.
pub fn finding(worker: &Worker, seen: RunEvidence) -> Option<Event> {
    let run = worker.run();
    match worker.phase() {
        Phase::Idle | Phase::BackingOff { .. } | Phase::Parked | Phase::Stopped { .. } => {
            return seen.alive.then_some(Event::Adopted(run));
        }
        Phase::Lost => return seen.alive.then_some(Event::Adopted(run)),
        // The exit was seen; its output may still be in the pane. Judging again is harmless.
        Phase::Evaluating { .. } => return Some(Event::Adopted(run)),
        Phase::Spawning { .. }
        | Phase::Starting { .. }
        | Phase::Prompting { .. }
        | Phase::Running { .. }
        | Phase::Ending { .. } => {}
    }
    if seen.alive { Some(Event::Adopted(run)) } else { ended(worker, seen) }
}

/// How a run ended whose wrapper is gone; `None` when only the tmux server can report it and does not answer.
fn ended(worker: &Worker, seen: RunEvidence) -> Option<Event> {
    let run = worker.run();
    let spawning = matches!(worker.phase(), Phase::Spawning { .. });
    let unstarted = Some(Event::SpawnFailed(run, SpawnError::Helper(UNSTARTED.into())));
    match (seen.recorded, seen.dead) {
        (Some(_), _) if seen.unstarted => unstarted,
        (Some(exit), _) if !seen.closed_under_it => Some(Event::Exited(run, exit)),
        (None, Some(_)) if seen.unread => unstarted,
        (None, Some(said)) => Some(Event::Exited(run, said.unwrap_or(Exit::Unknown))),
        (None, None) if spawning && !seen.started => Some(Event::NeverStarted(run)),
        (Some(_) | None, _) => {
            seen.same_server.map(|same| if same { Event::PaneLost(run) } else { Event::ServerLost(run) })
        }
    }
}

/// The identity of a pane, from its tmux options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneClaim {
    /// The run in the pane's options.
    pub run: Run,
    /// No process runs in the pane.
    pub dead: bool,
}

/// True when a pane belongs to no current run and must be closed. `worker` is the saved worker with the pane's name.
/// A live pane of a lost worker is kept: the worker is found again.
pub fn is_orphan(claim: PaneClaim, worker: Option<&Worker>) -> bool {
    let Some(worker) = worker.filter(|worker| worker.run() == claim.run) else { return true };
    !worker.has_pane() && (claim.dead || *worker.phase() != Phase::Lost)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::DateTime;

    use super::*;
    use crate::engine::{Now, Policy};
    use crate::gates::Verdict;

    const R: Run = Run(1);

    fn after(events: &[Event]) -> Worker {
        let now = Now { mono: Duration::ZERO, wall: DateTime::UNIX_EPOCH.fixed_offset() };
        let mut worker = Worker::looping(
            Policy { paste: false, ready_wait: false, ready_timeout: 30, one_shot: false },
            9,
            60,
        );
        for event in events {
            worker.step(event.clone(), now);
        }
        worker
    }

    fn spawning() -> Worker {
        after(&[Event::Start])
    }

    fn running() -> Worker {
        after(&[Event::Start, Event::Up(R)])
    }

    #[test]
    fn state_of_a_running_agent_follows_from_the_evidence() {
        let none = RunEvidence { same_server: Some(false), ..RunEvidence::default() };
        let here = RunEvidence { same_server: Some(true), started: true, ..none };
        let code = Some(Exit::Code(3));
        let rows = [
            ("alive", RunEvidence { alive: true, ..here }, Event::Adopted(R)),
            (
                "alive and just recorded",
                RunEvidence { alive: true, recorded: code, ..here },
                Event::Adopted(R),
            ),
            ("recorded", RunEvidence { recorded: code, ..here }, Event::Exited(R, Exit::Code(3))),
            (
                "recorded, server gone",
                RunEvidence { recorded: code, ..none },
                Event::Exited(R, Exit::Code(3)),
            ),
            ("dead, tmux knows", RunEvidence { dead: Some(code), ..here }, Event::Exited(R, Exit::Code(3))),
            (
                "dead, the record wins",
                RunEvidence { dead: Some(None), recorded: code, ..here },
                Event::Exited(R, Exit::Code(3)),
            ),
            ("dead, nobody knows", RunEvidence { dead: Some(None), ..here }, Event::Exited(R, Exit::Unknown)),
            (
                "closed under it",
                RunEvidence { recorded: code, closed_under_it: true, ..here },
                Event::PaneLost(R),
            ),
            (
                "dead, and nothing was read",
                RunEvidence { dead: Some(code), started: false, unread: true, ..here },
                Event::SpawnFailed(R, SpawnError::Helper(UNSTARTED.into())),
            ),
            (
                "the wrapper failed before the agent",
                RunEvidence { recorded: code, unstarted: true, started: false, ..here },
                Event::SpawnFailed(R, SpawnError::Helper(UNSTARTED.into())),
            ),
            ("vanished", here, Event::PaneLost(R)),
            (
                "closed with the server",
                RunEvidence { recorded: code, closed_under_it: true, ..none },
                Event::ServerLost(R),
            ),
            ("nothing, no server", none, Event::ServerLost(R)),
        ];
        for (what, seen, event) in rows {
            assert_eq!(finding(&running(), seen), Some(event), "{what}");
        }
    }

    #[test]
    fn only_a_spawn_can_have_never_started() {
        let none = RunEvidence { same_server: Some(false), ..RunEvidence::default() };
        for same_server in [Some(true), Some(false)] {
            let seen = RunEvidence { same_server, ..none };
            assert_eq!(finding(&spawning(), seen), Some(Event::NeverStarted(R)));
            assert_ne!(finding(&running(), seen), Some(Event::NeverStarted(R)));
        }
        let started = RunEvidence { started: true, ..none };
        assert_eq!(finding(&spawning(), started), Some(Event::ServerLost(R)));
        assert_eq!(
            finding(&spawning(), RunEvidence { same_server: Some(true), ..started }),
            Some(Event::PaneLost(R))
        );
        assert_eq!(finding(&spawning(), RunEvidence { alive: true, ..none }), Some(Event::Adopted(R)));
        let quick = RunEvidence { recorded: Some(Exit::Code(0)), ..started };
        assert_eq!(finding(&spawning(), quick), Some(Event::Exited(R, Exit::Code(0))));
    }

    #[test]
    fn unreachable_tmux_is_waited_for_only_without_other_evidence() {
        let silent = RunEvidence { started: true, ..RunEvidence::default() };
        let code = Some(Exit::Code(3));
        let rows = [
            ("vanished", silent, true),
            ("closed under it", RunEvidence { recorded: code, closed_under_it: true, ..silent }, true),
            ("alive", RunEvidence { alive: true, ..silent }, false),
            ("recorded", RunEvidence { recorded: code, ..silent }, false),
            ("the server answers", RunEvidence { same_server: Some(false), ..silent }, false),
        ];
        for (what, seen, waits) in rows {
            assert_eq!(needs_server(&running(), seen), waits, "{what}");
            assert_eq!(finding(&running(), seen).is_none(), waits, "{what}");
        }
        assert!(!needs_server(&spawning(), RunEvidence::default()), "it never started");
        for events in [&[][..], &[Event::Kill], &[Event::Start, Event::ServerLost(R)]] {
            assert!(!needs_server(&after(events), silent), "{events:?}: there is no run");
        }
        let judging = after(&[Event::Start, Event::Exited(R, Exit::Code(1))]);
        assert!(!needs_server(&judging, silent));
    }

    #[test]
    fn worker_without_a_run_is_adopted_only_with_a_live_pane() {
        let bad = [Event::Start, Event::Exited(R, Exit::Code(1)), Event::Evaluated(R, Verdict::default())];
        let lost = [Event::Start, Event::ServerLost(R)];
        for events in [&[][..], &bad, &lost, &[Event::Kill]] {
            let worker = after(events);
            assert_eq!(finding(&worker, RunEvidence::default()), None);
            let alive = RunEvidence { alive: true, ..RunEvidence::default() };
            assert_eq!(finding(&worker, alive), Some(Event::Adopted(worker.run())));
        }
        let judging = after(&[Event::Start, Event::Exited(R, Exit::Code(1))]);
        assert_eq!(finding(&judging, RunEvidence::default()), Some(Event::Adopted(R)), "judged again");
    }

    #[test]
    fn pane_without_a_current_run_is_an_orphan() {
        for (what, worker, live, dead) in [
            ("running", running(), false, false),
            ("judging", after(&[Event::Start, Event::Up(R), Event::Exited(R, Exit::Code(0))]), false, false),
            ("spawning", spawning(), false, false),
            ("killed as it began", after(&[Event::Start, Event::Kill]), false, false),
            ("lost", after(&[Event::Start, Event::Up(R), Event::ServerLost(R)]), false, true),
            (
                "lost and killed",
                after(&[Event::Start, Event::Up(R), Event::ServerLost(R), Event::Kill]),
                true,
                true,
            ),
            (
                "failed",
                after(&[Event::Start, Event::SpawnFailed(R, SpawnError::Other("no".into()))]),
                true,
                true,
            ),
        ] {
            let orphan = |run, dead| is_orphan(PaneClaim { run, dead }, Some(&worker));
            assert_eq!((orphan(R, false), orphan(R, true)), (live, dead), "{what}");
            assert!(orphan(Run(2), false) && orphan(Run(0), true), "{what}: another run");
        }
        assert!(is_orphan(PaneClaim { run: R, dead: false }, None), "nobody's");
    }
}
