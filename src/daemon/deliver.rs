//! Getting text into an agent's input box, and seeing that it was taken.
//!
//! Paste, wait, Enter, look, and Enter once more if the text still sits in the box: that is what real CLIs
//! were measured to need. Nothing is typed into a dialog. A delivery that was begun is marked in the run's
//! folder, so that a daemon that takes over does not paste a second time.

use std::path::Path;
use std::time::Duration;

use swarm_state::model::Pane;
use swarm_state::screen::Reading;
use tokio::time::{Instant, sleep};

use super::crash;
use super::driver::{Context, SharedReader};
use crate::error::{Error, ErrorCode, Result};
use crate::procs;
use crate::store::write_atomic;
use crate::tmux::PasteOutcome;

/// Between paste and Enter: some CLIs take an earlier Enter for a line break of the paste.
const SETTLE: Duration = Duration::from_millis(400);

/// How often the screen is looked at.
const LOOK: Duration = Duration::from_millis(150);

/// How long one Enter is given to show an effect.
const TAKEN: Duration = Duration::from_millis(2500);

/// How often Enter is pressed at most.
const ENTERS: u32 = 4;

/// How long `send` waits for an input box before it types anyway.
const SEND_READY: Duration = Duration::from_secs(5);

/// Characters of a prompt's end that are looked for on the screen.
const TAIL: usize = 40;

/// The screen as it was just before the prompt of a run was pasted; there once that was begun.
const PASTED: &str = "prompt.pasted";

/// There once the prompt was taken.
const TAKEN_MARK: &str = "prompt.taken";

/// What stood on the screen of a run before its prompt was pasted; `None` when it was not.
pub(crate) fn screen_before(run_dir: &Path) -> Option<String> {
    std::fs::read(run_dir.join(PASTED)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Delivers the prompt of a run, which the supervisor found ready. Begun by a daemon that died, it is gone
/// on with: pasted again only if the screen shows that it was not pasted, and not at all if it was taken.
pub(crate) async fn prompt(context: &Context, pane: &Pane, reader: &SharedReader) -> Result<()> {
    let dir = context.run_dir(pane.run);
    let text = std::fs::read(dir.join("prompt"));
    let text = text.map_err(|e| Error::system("cannot read the prompt of this run", e))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if dir.join(TAKEN_MARK).exists() {
        return Ok(());
    }
    let before = look(context, pane, reader).await?;
    let pasted = screen_before(&dir).is_some_and(|screen| squeeze(&screen) != squeeze(&before.text));
    if !pasted {
        if let Some(blocked) = before.reading.blocked {
            return Err(Error::new(ErrorCode::Conflict, format!("a dialog is in the way: {}", blocked.what)));
        }
        if let Ok(mut reader) = reader.lock() {
            reader.set_baseline(&before.text);
        }
        write_atomic(&dir.join(PASTED), before.text.as_bytes())
            .map_err(|e| Error::system("cannot mark the prompt as pasted", e))?;
        crash::point("paste");
        paste(context, pane, &text).await?;
        crash::point("enter");
    }
    if !(pasted && before.reading.working) {
        press_enter(context, pane, reader, &text).await?;
    }
    crash::point("taken");
    // Without the mark a daemon that takes over presses Enter once more.
    drop(write_atomic(&dir.join(TAKEN_MARK), b""));
    Ok(())
}

/// Types what a person sent.
pub(crate) async fn typed(
    context: &Context,
    pane: &Pane,
    reader: &SharedReader,
    text: &str,
    enter: bool,
) -> Result<()> {
    let start = Instant::now();
    loop {
        let seen = look(context, pane, reader).await?;
        let open = seen.reading.ready || seen.reading.working || seen.reading.blocked.is_some();
        if open || start.elapsed() >= SEND_READY || procs::tty_is_cooked(pane.pid) {
            break;
        }
        sleep(LOOK).await;
    }
    if !text.is_empty() {
        paste(context, pane, text).await?;
    }
    if enter { press_enter(context, pane, reader, text).await } else { Ok(()) }
}

/// Ends the input of an agent that reads lines from its terminal; to any other it is a key like another.
pub(crate) async fn eof(context: &Context, pane: &Pane) -> Result<()> {
    let gone = |error: Error| if error.code == ErrorCode::NotFound { gone() } else { error };
    // A dead pane takes keys without effect; that must not look like success.
    context.tmux.capture(&pane.id, 0).await.map_err(gone)?.ok_or_else(self::gone)?;
    context.tmux.keys(&pane.id, &["C-d"]).await.map_err(gone)
}

async fn paste(context: &Context, pane: &Pane, text: &str) -> Result<()> {
    match context.tmux.paste(&pane.id, text.as_bytes()).await? {
        PasteOutcome::Done => Ok(()),
        PasteOutcome::PaneDead => Err(gone()),
    }
}

/// Presses Enter until the text was taken.
async fn press_enter(context: &Context, pane: &Pane, reader: &SharedReader, text: &str) -> Result<()> {
    sleep(SETTLE).await;
    // A line discipline takes every line; there is nothing to verify and a second Enter would be one more line.
    if procs::tty_is_cooked(pane.pid) {
        return context.tmux.keys(&pane.id, &["Enter"]).await;
    }
    let before = look(context, pane, reader).await?;
    for _ in 0..ENTERS {
        context.tmux.keys(&pane.id, &["Enter"]).await?;
        let start = Instant::now();
        while start.elapsed() < TAKEN {
            sleep(LOOK).await;
            let now = match look(context, pane, reader).await {
                Ok(now) => now,
                // An agent that ended on its prompt has taken it.
                Err(error) if error.code == ErrorCode::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
            // A dialog that came up instead is not ours to answer.
            if now.reading.blocked.is_some() || was_taken(&before, &now, text) {
                return Ok(());
            }
        }
        // Only a text that is seen to sit there unsent is sent again: an agent that shows nothing of what it
        // reads may have it, and further Enters would be further input.
        if !is_shown(&before, text) {
            return Ok(());
        }
    }
    Err(Error::new(ErrorCode::Timeout, "the text was typed, but the agent did not take it")
        .hint(format!("swarm attach {} shows it; press Enter there", context.name)))
}

/// One look at a pane.
struct Seen {
    text: String,
    reading: Reading,
}

async fn look(context: &Context, pane: &Pane, reader: &SharedReader) -> Result<Seen> {
    let captured = context.tmux.capture(&pane.id, 0).await?.ok_or_else(gone)?;
    let reading =
        reader.lock().map_or_else(|_| Reading::default(), |r| r.read(&captured.text, captured.size));
    Ok(Seen { text: captured.text, reading })
}

fn gone() -> Error {
    Error::new(ErrorCode::NotFound, "the agent has ended")
}

/// Whether Enter took effect: the agent works, or what stands after the text on the screen is new, or the
/// text is gone from the screen.
fn was_taken(before: &Seen, now: &Seen, text: &str) -> bool {
    if now.reading.working && !before.reading.working {
        return true;
    }
    let tail = tail_of(text);
    match (after(&before.text, &tail), after(&now.text, &tail)) {
        _ if tail.is_empty() => squeeze(&before.text) != squeeze(&now.text),
        (Some(old), Some(new)) => old != new,
        (Some(_), None) => true,
        (None, _) => squeeze(&before.text) != squeeze(&now.text),
    }
}

/// Whether the end of a text stands on the screen.
fn is_shown(seen: &Seen, text: &str) -> bool {
    let tail = tail_of(text);
    !tail.is_empty() && after(&seen.text, &tail).is_some()
}

/// The end of a text as it can be looked for on a screen that wraps as it likes.
fn tail_of(text: &str) -> String {
    let squeezed: Vec<char> = squeeze(text).chars().collect();
    squeezed[squeezed.len().saturating_sub(TAIL)..].iter().collect()
}

/// What stands after the last place of `tail`.
fn after(screen: &str, tail: &str) -> Option<String> {
    let squeezed = squeeze(screen);
    squeezed.rfind(tail).map(|at| squeezed[at + tail.len()..].to_owned())
}

/// Text without white space and frames.
fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '\u{2500}'..='\u{257f}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Seen {
        Seen { text: text.to_owned(), reading: Reading::default() }
    }

    fn taken(before: &str, now: &str, text: &str) -> bool {
        was_taken(&seen(before), &seen(now), text)
    }

    #[test]
    fn a_line_break_in_the_box_is_not_an_answer() {
        assert!(!taken("ready\n❯ do it", "ready\n❯ do it\n", "do it"));
        assert!(!taken("────\n❯ do it\n────\n footer", "────\n❯ do it\n\n────\n footer", "do it"));
    }

    #[test]
    fn a_new_box_or_output_after_the_text_is() {
        assert!(taken("ready\n❯ do it", "ready\n❯ do it\n❯ ", "do it"));
        assert!(taken("────\n❯ do it\n────\n foot", "❯ do it\n✻ Thinking…\n────\n❯ \n────\n foot", "do it"));
        assert!(taken("❯ do it", "cleared", "do it"));
        assert!(taken("[Pasted text #1]", "✻ Thinking…", "a long\ntext"));
    }

    #[test]
    fn an_empty_text_is_taken_when_anything_changed() {
        assert!(!taken("$ ", "$ ", ""));
        assert!(taken("$ ", "$ \n$ ", ""));
    }
}
