//! What a fresh daemon makes of what it finds: saved workers against the panes that exist.
//!
//! Used at the daemon's start and whenever the tmux server turns out to be another one. Pure: the edge
//! lists panes and reads the marks that the pane's wrapper left, this decides, the engine acts.

use crate::engine::{Event, Phase, Worker};
use crate::model::{Exit, Run};

/// What is known of one run of one worker after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Its pane exists and the wrapper in it is alive.
    pub alive: bool,
    /// Its pane exists but is dead; what tmux says of the exit, if it says anything.
    pub dead: Option<Option<Exit>>,
    /// What the wrapper wrote down.
    pub recorded: Option<Exit>,
    /// The wrapper wrote down that its pane was closed under it.
    pub closed_under_it: bool,
    /// The wrapper wrote down that the agent had started.
    pub started: bool,
    /// The tmux server that held the pane is still there (the same process).
    pub same_server: bool,
}

/// The event that tells the engine what became of its current run; `None` when it has none to ask about.
pub fn finding(worker: &Worker, seen: Evidence) -> Option<Event> {
    let run = worker.run();
    let spawning = match worker.phase() {
        Phase::Idle | Phase::BackingOff { .. } | Phase::Parked | Phase::Stopped { .. } => {
            return seen.alive.then_some(Event::Adopted(run));
        }
        Phase::Lost => return seen.alive.then_some(Event::Adopted(run)),
        // The exit was seen; its output may still be in the pane. Judging again is harmless.
        Phase::Judging { .. } => return Some(Event::Adopted(run)),
        Phase::Spawning { .. } => true,
        Phase::Starting { .. } | Phase::Prompting { .. } | Phase::Running { .. } | Phase::Ending { .. } => {
            false
        }
    };
    Some(if seen.alive { Event::Adopted(run) } else { ended(run, seen, spawning) })
}

fn ended(run: Run, seen: Evidence, spawning: bool) -> Event {
    match (seen.recorded, seen.dead) {
        (Some(exit), _) if !seen.closed_under_it => Event::Exited(run, exit),
        (None, Some(said)) => Event::Exited(run, said.unwrap_or(Exit::Unknown)),
        (None, None) if spawning && !seen.started => Event::NeverStarted(run),
        (Some(_) | None, _) if seen.same_server => Event::PaneLost(run),
        (Some(_) | None, _) => Event::ServerLost(run),
    }
}

/// A pane that claims to be a worker's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The worker's name as the pane has it.
    pub worker: &'a str,
    /// The run as the pane has it.
    pub run: Run,
}

/// True when a pane belongs to no saved worker's current run: it is left over and is ended.
pub fn is_orphan<'a>(claim: &Claim<'_>, mut saved: impl Iterator<Item = (&'a str, &'a Worker)>) -> bool {
    !saved.any(|(name, worker)| name == claim.worker && worker.run() == claim.run)
}
