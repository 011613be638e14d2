//! Looking at screens: one listing a tick, a capture only of panes that printed.
//!
//! The watcher belongs to one tmux server. It goes away to look and comes back with what it saw, so there
//! is never more than one look at a server under way, and a tmux that hangs delays nobody but its own.

use swarm_state::engine::Event;
use swarm_state::model::{Pane, WorkerName};

use super::driver::SharedReader;
use crate::tmux::watch::Gate;
use crate::tmux::{Health, Row, Tmux};

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
                for target in targets {
                    if let Some(row) = rows.iter().find(|row| row.pane == target.pane.id) {
                        let printed = dirty.contains(&row.pane);
                        let look = look_at(tmux, row, &target, printed).await;
                        match look {
                            Some(look) => looks.push((target.name, look)),
                            // It printed and was not read: the next look must read it.
                            None => self.gate.forget(&row.pane),
                        }
                    }
                    // A pane that is not listed is gone; the watch on its process tells how.
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

async fn look_at(tmux: &Tmux, row: &Row, target: &Target, printed: bool) -> Option<Look> {
    let pane = &target.pane;
    if row.dead {
        return None;
    }
    if !printed {
        return Some(Look { event: Event::Quiet(pane.run), screen: None });
    }
    let captured = tmux.capture(&pane.id, if target.whole { HISTORY } else { 0 }).await.ok()??;
    let reading = target.reader.lock().ok().map(|reader| reader.read(&captured.text, captured.size))?;
    Some(Look { event: Event::Screen(pane.run, reading), screen: Some(last_lines(&captured.text)) })
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    lines[from..].iter().map(|l| swarm_state::screen::printable(l.trim_end())).collect()
}
