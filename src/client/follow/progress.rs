//! Formats the progress line of a followed loop from its notices. Pure.
//!
//! Deliberately absent: the terminal. [`crate::out`] draws, cuts and erases the line.

use std::time::Duration;

use swarm_state::notice::{Entry, dollars, duration};

use crate::protocol::Notice;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    iteration: u32,
    max: u32,
    phase: String,
    /// Millionths of a US dollar.
    cost: u64,
    /// The last check that was run, and whether it passed.
    check: Option<(bool, String)>,
}

impl Progress {
    pub(super) fn new(max: u32) -> Self {
        Self { iteration: 1, max, phase: "starting".into(), cost: 0, check: None }
    }

    /// Reads a notice. Returns whether an iteration ended, after which there may be a new cost.
    pub(super) fn notice(&mut self, notice: &Notice) -> bool {
        self.phase = notice.status.as_str().replace('_', " ");
        match &notice.entry {
            Entry::IterationStarted { iteration, max } => (self.iteration, self.max) = (*iteration, *max),
            Entry::StoryStarted { mode, story, .. } => self.phase = format!("{mode} {story}"),
            Entry::CheckStarted { iteration, check } => {
                let phase = if *iteration == 0 { "baseline" } else { "checking" };
                self.phase = format!("{phase} {check}");
            }
            Entry::Checked { iteration, check, passed, .. } => {
                self.phase = if *iteration == 0 { "baseline" } else { "checking" }.into();
                self.check = Some((*passed, check.clone()));
            }
            Entry::Paused { .. } => self.phase = "paused".into(),
            Entry::Outage { message, .. } => self.phase = format!("waiting: {message}"),
            _ => {}
        }
        matches!(
            notice.entry,
            Entry::Outage { .. } | Entry::IterationEnded { .. } | Entry::IterationFailed { .. }
        )
    }

    pub(super) fn spent(&mut self, dollars: f64) {
        self.cost = (dollars * 1e6).round() as u64;
    }

    /// Formats `iteration 2/25 · running · 3m 12s · $0.12 · last check FAIL cargo test`.
    pub(super) fn text(&self, elapsed: Duration) -> String {
        let mut text = format!(
            "iteration {}/{} · {} · {}",
            self.iteration,
            self.max,
            self.phase,
            duration(elapsed.as_secs(), " ")
        );
        if self.cost > 0 {
            text += &format!(" · {}", dollars(self.cost));
        }
        if let Some((passed, check)) = &self.check {
            text += &format!(" · last check {} {check}", if *passed { "PASS" } else { "FAIL" });
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use swarm_state::model::Status;
    use swarm_state::notice::PauseBy;

    use super::*;

    fn notice(status: Status, entry: Entry) -> Notice {
        Notice { seq: 1, worker: "a".into(), at: "2026-01-01T10:00:00+01:00".into(), status, entry }
    }

    #[test]
    fn progress_line_shows_the_latest_notice() {
        let mut progress = Progress::new(25);
        let mut after = |status, entry, seconds| {
            progress.notice(&notice(status, entry));
            progress.text(Duration::from_secs(seconds))
        };
        let check =
            |iteration, passed| Entry::Checked { iteration, check: "cargo test".into(), passed, seconds: 1 };
        let line = after(Status::Starting, check(0, false), 1);
        assert_eq!(line, "iteration 1/25 · baseline · 1s · last check FAIL cargo test");
        let start = Entry::IterationStarted { iteration: 2, max: 25 };
        assert!(after(Status::Starting, start, 2).starts_with("iteration 2/25 · starting · 2s"));
        let line = after(Status::Running, Entry::Started { run: 2 }, 192);
        assert_eq!(line, "iteration 2/25 · running · 3m 12s · last check FAIL cargo test");
        assert!(
            after(Status::Running, check(2, true), 3).ends_with("checking · 3s · last check PASS cargo test")
        );
        let outage = Entry::Outage { iteration: 2, message: "limit".into(), wait: 9, parked: false };
        assert!(after(Status::Waiting, outage, 4).contains(" · waiting: limit · 4s"));
        assert!(after(Status::Paused, Entry::Paused { by: PauseBy::User }, 4).contains(" · paused · "));
        progress.spent(0.12);
        assert!(progress.text(Duration::ZERO).contains(" · 0s · $0.12 · last check "));
    }
}
