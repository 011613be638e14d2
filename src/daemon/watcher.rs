//! Looking at screens: one listing a tick, a capture only of panes that printed.
//!
//! The watcher belongs to one tmux server. It goes away to look and comes back with what it saw, so there
//! is never more than one look at a server under way, and a tmux that hangs delays nobody but its own.

use swarm_state::engine::Event;
use swarm_state::model::{Pane, WorkerName};
use tokio::task::JoinSet;

use super::driver::SharedReader;
use crate::tmux::watch::Gate;
use crate::tmux::{Health, Tmux};

/// Lines of the screen that are kept for a worker that waits for a person.
const LAST_LINES: usize = 12;

/// Rows of history that are read beside the screen, so that a line that scrolled by between two looks is
/// seen too.
const HISTORY: u32 = 200;

/// Whom to look at.
pub(crate) struct Target {
    /// The worker.
    pub(crate) name: WorkerName,
    /// Its pane.
    pub(crate) pane: Pane,
    /// What reads it.
    pub(crate) reader: SharedReader,
    /// A pattern is looked for: what scrolled by counts too.
    pub(crate) whole: bool,
}

/// What one look at one worker says.
pub(crate) struct Look {
    /// What was looked at.
    pub(crate) pane: Pane,
    /// For the engine.
    pub(crate) event: Event,
    /// The last lines of its screen, when it was captured.
    pub(crate) screen: Option<Vec<String>>,
}

/// What a round of looks brings back.
pub(crate) struct Looked {
    /// Which server.
    pub(crate) server: Option<String>,
    /// The watcher itself.
    pub(crate) watcher: Watcher,
    /// What was seen.
    pub(crate) looks: Vec<(WorkerName, Look)>,
    /// Workers of a tmux that did not answer.
    pub(crate) unreachable: Vec<WorkerName>,
}

/// Who looks at one server.
#[derive(Default)]
pub(crate) struct Watcher {
    gate: Gate,
}

impl Watcher {
    /// Looks once at all targets.
    pub(crate) async fn look(mut self, server: Option<String>, tmux: &Tmux, targets: Vec<Target>) -> Looked {
        // Taken before the listing is sent: what is printed in the same second must be looked at again.
        let sent = super::local_now().timestamp();
        let mut looks = vec![];
        let mut unreachable = vec![];
        match tmux.list().await {
            Ok(rows) => {
                let dirty = self.gate.dirty(&rows, sent);
                let mut captures = JoinSet::new();
                for target in targets {
                    // A pane that is dead or not listed is told of by the watch on its process.
                    let Some(row) = rows.iter().find(|row| row.pane == target.pane.id && !row.dead) else {
                        continue;
                    };
                    if dirty.contains(&row.pane) {
                        // At once: tmux answers them one after the other, without a turn of ours between.
                        captures.spawn(capture(tmux.clone(), target));
                    } else {
                        let event = Event::Quiet(target.pane.run);
                        looks.push((target.name, Look { pane: target.pane, event, screen: None }));
                    }
                }
                while let Some(captured) = captures.join_next().await {
                    match captured {
                        Ok(Ok(look)) => looks.push(look),
                        // It printed and was not read: the next look must read it.
                        Ok(Err(pane)) => self.gate.forget(&pane),
                        Err(error) => tracing::error!(%error, "a look failed"),
                    }
                }
            }
            Err(error) => {
                // A server that is gone is told by the watches on its processes.
                if matches!(tmux.health().await, Health::Unresponsive) {
                    tracing::warn!(%error, "tmux does not answer");
                    unreachable.extend(targets.into_iter().map(|t| t.name));
                }
            }
        }
        Looked { server, watcher: self, looks, unreachable }
    }
}

/// Reads one pane; gives back the pane's id when that cannot be done now.
async fn capture(tmux: Tmux, target: Target) -> Result<(WorkerName, Look), String> {
    let pane = &target.pane;
    let history = if target.whole { HISTORY } else { 0 };
    let Ok(Some(captured)) = tmux.capture(&pane.id, history).await else { return Err(pane.id.clone()) };
    let reading = target.reader.lock().map(|reader| reader.read(&captured.text, captured.size));
    let Ok(reading) = reading else { return Err(pane.id.clone()) };
    let event = Event::Screen(pane.run, reading);
    Ok((target.name, Look { pane: target.pane, event, screen: Some(last_lines(&captured.text)) }))
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    lines[from..].iter().map(|l| swarm_state::screen::printable(l.trim_end())).collect()
}
