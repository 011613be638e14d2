//! Looks at the screens of one tmux server: one listing per round, and a capture only of panes that printed.
//!
//! A look runs in a task and carries the server's filter with it, so that there is never more than one look at a
//! server, and a tmux that hangs delays only its own workers.

use std::path::Path;

use swarm_state::engine::Event;
use swarm_state::model::WorkerName;

use crate::daemon::messages::{LookRound, LookTarget, PaneLook};
use crate::paths::Paths;
use crate::store::write_unsynced;
use crate::tmux::watch::{ChangeFilter, PaneChange};
use crate::tmux::{Health, Tmux, pane_number};

/// Lines of the screen that are shown for a worker that waits for a person.
const MAX_LAST_LINES: usize = 12;

/// Rows of history that are read too, so that lines that scrolled away between two looks are seen.
const HISTORY_ROWS: u32 = 200;

/// The text of the last look, in the folder of its run.
const LAST_SCREEN_FILE: &str = "screen";

/// The screen at the last look at a run; empty if there was no look.
pub(crate) fn last_look(run_dir: &Path) -> String {
    std::fs::read(run_dir.join(LAST_SCREEN_FILE))
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .unwrap_or_default()
}

/// Looks once at all targets on one server. `filter` is the server's, and returns with what was seen.
pub(crate) async fn look(
    mut filter: ChangeFilter,
    server: Option<String>,
    tmux: &Tmux,
    paths: &Paths,
    targets: Vec<LookTarget>,
) -> LookRound {
    // Taken before the listing is sent: what is printed in the same second must be looked at again.
    let sent = chrono::Utc::now().timestamp();
    let mut looks = vec![];
    let mut unreachable = vec![];
    let mut clients = None;
    match tmux.glance().await {
        Ok((panes, at_once)) => {
            clients = Some(at_once);
            filter.take(&panes, sent);
            let mut dirty = vec![];
            for target in targets {
                let said = pane_number(&target.pane.id).map_or(PaneChange::Absent, |pane| filter.said(pane));
                match said {
                    // The watch on its process reports it.
                    PaneChange::Absent => {}
                    PaneChange::Quiet(size) if target.anyhow => dirty.push((target, size)),
                    PaneChange::Quiet(_) => {
                        let event = Event::Quiet(target.pane.run);
                        looks.push((target.name, PaneLook { pane: target.pane, event, screen: None }));
                    }
                    PaneChange::Dirty(size) => dirty.push((target, size)),
                }
            }
            if !dirty.is_empty() {
                capture(&mut filter, tmux, paths, dirty, &mut looks).await;
                // Again, so that a person who has begun to type meanwhile is seen.
                clients = tmux.clients().await.ok();
            }
        }
        Err(error) => {
            // The watches on its processes report a server that is gone.
            if matches!(tmux.health().await, Health::Unresponsive) {
                tracing::warn!(%error, "tmux does not answer");
                unreachable.extend(targets.into_iter().map(|t| t.name));
            }
        }
    }
    LookRound { server, filter, looks, clients, unreachable }
}

/// Captures those that printed and reads what they show.
async fn capture(
    filter: &mut ChangeFilter,
    tmux: &Tmux,
    paths: &Paths,
    dirty: Vec<(LookTarget, (u16, u16))>,
    looks: &mut Vec<(WorkerName, PaneLook)>,
) {
    let wanted = |target: &LookTarget| (target.pane.id.clone(), if target.whole { HISTORY_ROWS } else { 0 });
    let wanted: Vec<_> = dirty.iter().map(|(target, _)| wanted(target)).collect();
    let texts = tmux.screens(&wanted).await;
    for ((target, size), text) in dirty.into_iter().zip(texts) {
        let LookTarget { name, pane, reader, .. } = target;
        let reading = text.as_deref().and_then(|text| Some(reader.lock().ok()?.read(text, size)));
        let (Some(mut reading), Some(text)) = (reading, text) else {
            // The pane printed and was not read: the next look must read it.
            if let Some(pane) = pane_number(&pane.id) {
                filter.forget(pane);
            }
            continue;
        };
        // Kept for the log, should the pane vanish. Without it the log would at worst be empty.
        let file = paths.run_dir(&name, pane.run).join(LAST_SCREEN_FILE);
        drop(write_unsynced(&file, text.as_bytes()));
        reading.rows.1 = pane_number(&pane.id).map_or(0, |pane| filter.history(pane));
        let event = Event::Screen(pane.run, reading);
        looks.push((name, PaneLook { pane, event, screen: Some(last_lines(&text)) }));
    }
}

/// The end of a text, with at most [`MAX_LAST_LINES`] lines that are not empty.
fn last_lines(text: &str) -> String {
    let (mut start, mut kept) = (text.len() + 1, 0);
    for line in text.rsplit('\n') {
        if kept == MAX_LAST_LINES {
            break;
        }
        start -= line.len() + 1;
        kept += usize::from(!line.trim().is_empty());
    }
    text[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_are_counted_without_empty_ones() {
        let text: String = (0..30).map(|n| format!("line {n}\n\n")).collect();
        assert!(last_lines(&text).starts_with("line 18\n\nline 19\n"));
        for text in ["", "\n", "a", "a\nb", "\n\na\n"] {
            assert_eq!(last_lines(text), text);
        }
    }
}
