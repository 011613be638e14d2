//! Types a person's answer into a dialog, key by key: most dialogs ignore a paste.

use std::time::Duration;

use swarm_state::model::Pane;
use tokio::time::{Instant, sleep};

use super::{LOOK_INTERVAL, Seen, line, look, squeeze};
use crate::daemon::driver::{Context, SharedReader};
use crate::error::{ErrorCode, Result};
use crate::procs;

/// The longest text that can be an answer.
const MAX_ANSWER_BYTES: usize = 8;

/// How long the keys may take to answer by themselves, before Enter is pressed.
const ANSWER_LIMIT: Duration = Duration::from_millis(2500);

/// Answers a dialog, which the screen `before` shows. Enter is pressed only if the keys alone did not answer it, since a
/// second dialog may follow.
pub(super) async fn answer(
    context: &Context,
    pane: &Pane,
    reader: &SharedReader,
    before: &Seen,
    text: &str,
    enter: bool,
) -> Result<Option<String>> {
    let keys: Vec<String> = text.chars().filter(|c| !c.is_control()).map(String::from).collect();
    context.tmux.keys(&pane.id, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    // A terminal in line mode keeps the keys until Enter.
    if enter && procs::tty_is_cooked(pane.pid) {
        return line::enter(context, pane).await;
    }
    let question = before.reading.blocked.as_ref().map(|dialog| &dialog.what);
    let start = Instant::now();
    while enter && !text.is_empty() && start.elapsed() < ANSWER_LIMIT {
        sleep(LOOK_INTERVAL).await;
        match look(context, pane, reader).await {
            Ok(now) if now.reading.blocked.as_ref().map(|dialog| &dialog.what) == question => {}
            // A question at the end of the screen shows the keys behind it, and is then no longer one.
            Ok(now) if squeeze(&now.text) == squeeze(&before.text) + text => {}
            // Another question, none, or the agent's end: that was it.
            Ok(_) => return Ok(None),
            Err(error) if error.code == ErrorCode::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    if enter {
        context.tmux.keys(&pane.id, &["Enter"]).await?;
    }
    Ok(None)
}

/// Whether a text can be meant for a dialog: a key, a word, or just Enter. Any other is meant for the agent,
/// and would choose whatever the dialog offers first.
pub(super) fn is_answer(text: &str) -> bool {
    text.len() <= MAX_ANSWER_BYTES && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_short_word() {
        for text in ["", "1", "y", "yes", "proceed"] {
            assert!(is_answer(text), "{text:?}");
        }
        for text in ["2 files need work", "yes please", "1\n", "refactoring", " "] {
            assert!(!is_answer(text), "{text:?}");
        }
    }
}
