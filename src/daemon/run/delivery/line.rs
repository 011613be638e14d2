//! Types into terminals that read whole lines. They have no input box; the kernel shows whether a line was read.

use std::time::Duration;

use swarm_state::delivery::ENTER_DELAY;
use swarm_state::model::Pane;
use tokio::time::{Instant, sleep};

use super::look::gone;
use crate::daemon::run::context::RunContext;
use crate::error::{Error, Result};
use crate::procs::{self, Terminal};

/// How long Enter may take to show an effect.
const LINE_READ_TIMEOUT: Duration = Duration::from_millis(2500);

/// The interval between two checks whether a line was read.
const LINE_CHECK_INTERVAL: Duration = Duration::from_millis(60);

/// The longest line that such a terminal accepts: the rest would be dropped.
const MAX_TERMINAL_LINE_BYTES: usize = if cfg!(target_os = "linux") { 4094 } else { 1023 };

/// Refuses a text with a line that would be cut.
pub(crate) fn refuse_long(text: &str) -> Result<()> {
    if text.split('\n').all(|line| line.len() <= MAX_TERMINAL_LINE_BYTES) {
        return Ok(());
    }
    let message = format!(
        "a line of the text is longer than {MAX_TERMINAL_LINE_BYTES} bytes, the most that the agent's terminal accepts"
    );
    Err(Error::invalid(message).hint("send shorter lines, or the path of a file that contains the text"))
}

/// Submits a text that was pasted as lines.
pub(crate) async fn finish(context: &RunContext, pane: &Pane, enter: bool) -> Result<Option<String>> {
    if !enter {
        return Ok(None);
    }
    sleep(ENTER_DELAY).await;
    // An agent that ended before the Enter has not accepted it, even if another program reads its terminal now.
    if is_gone(pane) {
        return Err(gone());
    }
    if !procs::tty_is_cooked(pane.pid) {
        return Err(maybe_lost(context));
    }
    self::enter(context, pane).await
}

/// Presses Enter once; a second Enter would be another line. The line was read when the terminal's queue is empty. If
/// the terminal stops reading lines meanwhile, the agent was still starting, and usually discards earlier input.
pub(crate) async fn enter(context: &RunContext, pane: &Pane) -> Result<Option<String>> {
    context.tmux.keys(&pane.id, &["Enter"]).await?;
    let start = Instant::now();
    let (mut waited, mut empty) = (false, 0);
    while start.elapsed() < LINE_READ_TIMEOUT {
        sleep(LINE_CHECK_INTERVAL).await;
        match procs::terminal(pane.pid) {
            // The agent has ended, or the system does not show its terminal.
            None => return Ok(None),
            // The wrapper changes the terminal once the agent has ended, which a last line may make it do.
            Some(terminal) if !terminal.cooked && is_gone(pane) => return Ok(None),
            Some(terminal) if !terminal.cooked => return Err(maybe_lost(context)),
            // tmux may not have written the line yet, so one empty queue proves nothing.
            Some(Terminal { unread: 0, .. }) if waited || empty > 0 => return Ok(None),
            Some(Terminal { unread: 0, .. }) => empty += 1,
            Some(_) => waited = true,
        }
    }
    Ok(Some(format!("worker '{}' has not read the text yet; the terminal queues it", context.name)))
}

/// Whether the agent has ended. Known on Linux only.
pub(super) fn is_gone(pane: &Pane) -> bool {
    cfg!(target_os = "linux") && procs::first_child(pane.pid).is_none()
}

fn maybe_lost(context: &RunContext) -> Error {
    let message = "the agent switched to reading single keys during the send, and may have lost the text";
    Error::conflict(message)
        .hint(format!("if the screen does not show the text, send it again: swarm peek {}", context.name))
}
