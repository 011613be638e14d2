//! Transitions for a question or a permission dialog during work, which waits for a person.
//!
//! While the agent of a loop waits for an answer, silence does not end it. After the question timeout the iteration
//! fails, with the question as its reason. A plain worker, and a dialog at start, waits without limit.

use std::time::Duration;

use super::{Effect, Now, Trouble, TroubleKind, Why, Worker};
use crate::notice::{Entry, duration};

impl TroubleKind {
    fn is_question(self) -> bool {
        match self {
            Self::Dialog | Self::Asked => true,
            Self::Startup | Self::NotReady | Self::Prompt => false,
        }
    }
}

impl Worker {
    pub(super) fn need_person(&mut self, kind: TroubleKind, what: &str, now: Now) -> Vec<Effect> {
        // The screen and a hook report the same question with different texts: the first report counts.
        let asked = self.trouble.as_ref().and_then(|known| known.since);
        let since = kind.is_question().then(|| asked.unwrap_or(now.mono));
        self.trouble = Some(Trouble { kind, what: what.to_owned(), since });
        vec![Effect::Persist, Effect::Notify(Entry::Waiting { run: self.run.0, reason: what.to_owned() })]
    }

    /// When the open question reaches the question timeout; `None` without a question or a limit.
    pub(super) fn question_deadline(&self) -> Option<Duration> {
        let ralph = self.ralph.as_ref().filter(|l| l.paused.is_none() && l.question_timeout > 0)?;
        if self.is_held() {
            return None;
        }
        let has_agent = self.reachable && self.wants_screen();
        let since = self.trouble.as_ref().filter(|_| has_agent)?.since?;
        Some(since.saturating_add(Duration::from_secs(ralph.question_timeout)))
    }

    pub(super) fn unanswered(&mut self, now: Now) -> Option<Vec<Effect>> {
        if now.mono < self.question_deadline()? {
            return None;
        }
        let timeout = duration(self.ralph.as_ref()?.question_timeout, " ");
        let what = &self.trouble.as_ref()?.what;
        let detail = format!("not answered within {timeout}: {what}");
        Some(self.end_because(Why::Unanswered, detail, now))
    }

    /// Restarts the question's timer: time in which no person could answer the question does not count.
    pub(super) fn restart_question_timer(&mut self, now: Now) {
        if let Some(trouble) = &mut self.trouble {
            trouble.since = trouble.since.map(|_| now.mono);
        }
    }
}
