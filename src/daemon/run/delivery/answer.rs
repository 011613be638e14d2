//! Types an answer into a dialog, key by key: most dialogs ignore a paste.
//!
//! [`swarm_state::screen::answers`] finds the answers that the dialog offers, and whether Enter completes one.

use std::time::Duration;

use swarm_state::screen::Blocked;
use swarm_state::screen::answers::{AfterKeys, Answer, Answers};
use tokio::time::{Instant, sleep};

use super::line;
use super::look::{AgentPane, LOOK_INTERVAL, PaneReading, in_the_way, look};
use crate::daemon::run::context::RunContext;
use crate::error::{Error, ErrorCode, Result};
use crate::procs;

/// How long the keys may take to answer by themselves, before Enter is pressed.
const KEYS_TIMEOUT: Duration = Duration::from_millis(2500);
/// How long a dialog may stay unchanged after Enter alone. Nothing more is pressed, so a slow agent loses nothing.
const ENTER_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct OpenDialog<'d> {
    pub at: AgentPane<'d>,
    /// The screen that shows the dialog, before any key.
    pub before: &'d PaneReading,
    pub answers: Answers,
}

impl OpenDialog<'_> {
    /// Types one of the answers. Presses Enter only if the keys alone did not answer the dialog, since a second dialog
    /// may follow, and only if Enter cannot choose anything else. Returns a warning if a dialog of the same kind is
    /// shown afterwards. Fails when the dialog ignores the keys.
    pub(crate) async fn answer(&self, answer: &Answer, enter: bool) -> Result<Option<String>> {
        let AgentPane { context, pane, .. } = self.at;
        let keys: Vec<String> = answer.keys.chars().map(String::from).collect();
        context.tmux.keys(&pane.id, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        if !enter {
            return Ok(None);
        }
        // A terminal in line mode keeps the keys until Enter.
        if procs::tty_is_cooked(pane.pid) {
            return line::enter(context, pane).await;
        }
        if answer.keys.is_empty() {
            context.tmux.keys(&pane.id, &["Enter"]).await?;
        }
        match self.after_keys(answer).await {
            Ok(Some((AfterKeys::NeedsEnter, _))) => {
                context.tmux.keys(&pane.id, &["Enter"]).await.map(|()| None)
            }
            Ok(Some((AfterKeys::Ignored, _))) => Err(self.not_accepted(answer)),
            Ok(Some((AfterKeys::Changed, dialog))) => {
                let name = &context.name;
                Ok(dialog.map(|d| format!("worker '{name}' shows a dialog again: {}", d.what)))
            }
            Ok(None) => Ok(None),
            // The answer ended the agent.
            Err(error) if error.code == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for the effect of the keys. `None`: another question or none replaced the dialog.
    async fn after_keys(&self, answer: &Answer) -> Result<Option<(AfterKeys, Option<Blocked>)>> {
        let kind = self.before.reading.blocked.as_ref().map(|dialog| &dialog.what);
        let start = Instant::now();
        loop {
            sleep(LOOK_INTERVAL).await;
            let now = look(self.at).await?;
            let after = self.answers.after_keys(answer, &self.before.text, &now.text);
            let dialog = now.reading.blocked;
            if after == AfterKeys::Changed && dialog.as_ref().map(|dialog| &dialog.what) != kind {
                return Ok(None);
            }
            let is_slow = after == AfterKeys::Ignored && answer.keys.is_empty();
            if start.elapsed() >= if is_slow { ENTER_TIMEOUT } else { KEYS_TIMEOUT } {
                return Ok(Some((after, dialog)));
            }
        }
    }

    fn not_accepted(&self, answer: &Answer) -> Error {
        let message = match answer.keys.as_str() {
            "" => "the agent did not react to Enter".to_owned(),
            keys => format!("the agent did not accept the answer '{keys}'"),
        };
        Error::conflict(message)
            .hint(format!("to see its screen and answer: swarm attach {}", self.at.context.name))
    }
}

/// The error for a text that is not an answer to the dialog.
pub(crate) fn not_offered(context: &RunContext, dialog: &Blocked, answers: &Answers) -> Error {
    let name = &context.name;
    in_the_way(context, Some(dialog)).hint(format!(
        "it accepts: {answers} (swarm send {name} ''); or answer in its window: swarm attach {name}"
    ))
}
