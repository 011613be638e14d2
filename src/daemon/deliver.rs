//! Getting text into an agent's input box, and seeing that it was taken.
//!
//! Paste, wait, Enter, look, and Enter once more if the text still sits in the box: that is what real CLIs
//! were measured to need. Nothing but an answer is typed into a dialog. A delivery that was begun is marked in the run's
//! folder, so that a daemon that takes over does not paste a second time; and text that a daemon which died left
//! in the box without its Enter is taken away before another is typed behind it.

use std::time::Duration;

use swarm_state::model::Pane;
use swarm_state::screen::Reading;
use tokio::time::{Instant, sleep};

use super::crash;
use super::driver::{Context, Report, SharedReader};
use super::given;
use crate::error::{Error, ErrorCode, Result};
use crate::procs::{self, Terminal};
use crate::store::{write_atomic, write_unsynced};
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

/// Between two looks at whether a line was read.
const LINE_LOOK: Duration = Duration::from_millis(60);

/// The longest line, bytes, that a terminal takes which reads whole lines: the rest would be dropped.
const LONGEST_LINE: usize = if cfg!(target_os = "linux") { 4094 } else { 1023 };

/// The most bytes of a text that can be an answer to a dialog.
const ANSWER: usize = 8;

/// Characters of a prompt's end that are looked for on the screen.
const TAIL: usize = 40;

/// There once the prompt was taken.
const TAKEN_MARK: &str = "prompt.taken";

/// What is being typed: there while nobody can say that the agent has it.
const TYPING: &str = "typing";

/// Delivers the prompt of a run, which the supervisor found ready. Begun by a daemon that died, it is gone
/// on with: pasted again only if the screen shows that it was not pasted, and not at all if it was taken.
pub(crate) async fn prompt(context: &Context, pane: &Pane, reader: &SharedReader) -> Result<()> {
    let dir = context.run_dir(pane.run);
    let text = std::fs::read(dir.join(given::PROMPT));
    let text = text.map_err(|e| Error::system("cannot read the prompt of this run", e))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if dir.join(TAKEN_MARK).exists() {
        return Ok(());
    }
    let before = look(context, pane, reader).await?;
    let pasted = given::screen_before(&dir).is_some_and(|screen| squeeze(&screen) != squeeze(&before.text));
    let mut as_line = false;
    if !pasted {
        if let Some(blocked) = before.reading.blocked {
            return Err(in_the_way(context, &blocked.what));
        }
        write_atomic(&dir.join(given::PASTED), before.text.as_bytes())
            .map_err(|e| Error::system("cannot mark the prompt as pasted", e))?;
        if let Ok(mut reader) = reader.lock() {
            reader.set_baseline(&before.text);
        }
        crash::point("paste");
        as_line = paste(context, pane, &text).await?;
        crash::point("enter");
    }
    if !(pasted && before.reading.working)
        && let Some(warning) = press_enter(context, pane, reader, &text, as_line).await?
    {
        context.report(Report::Warning(warning));
    }
    crash::point("taken");
    // Without the mark a daemon that takes over presses Enter once more.
    drop(write_atomic(&dir.join(TAKEN_MARK), b""));
    Ok(())
}

/// Types what a person sent. Gives a warning where the agent has not read it yet.
pub(crate) async fn typed(
    context: &Context,
    pane: &Pane,
    reader: &SharedReader,
    text: &str,
    enter: bool,
) -> Result<Option<String>> {
    let start = Instant::now();
    let seen = loop {
        let seen = look(context, pane, reader).await?;
        match &seen.reading.blocked {
            Some(blocked) if is_answer(text) => {
                return answer(context, pane, reader, &blocked.what, text, enter).await;
            }
            Some(blocked) => return Err(in_the_way(context, &blocked.what)),
            None if seen.reading.ready || seen.reading.working => break seen,
            // Lines are kept for who reads them later; but an agent that only comes up throws them away.
            None if procs::tty_is_cooked(pane.pid) && procs::seems_to_read(pane.pid) => break seen,
            None if start.elapsed() >= SEND_READY => break seen,
            None => sleep(LOOK).await,
        }
    };
    let dir = context.run_dir(pane.run);
    take_away_left(context, pane, &seen).await?;
    if !text.is_empty() {
        given::keep_typed(&dir, text, reader)?;
    }
    // A full disk mostly has room for an empty file; without any mark nothing is worse than it was.
    let mark = dir.join(TYPING);
    drop(write_unsynced(&mark, text.as_bytes()).or_else(|_| std::fs::File::create(&mark).map(drop)));
    let as_line = paste(context, pane, text).await?;
    crash::point("typed");
    let warning = if enter { press_enter(context, pane, reader, text, as_line).await? } else { None };
    drop(std::fs::remove_file(&mark));
    Ok(warning)
}

/// Empties the input box of a text that was typed and never sent off: who sent it was told so, and the next one
/// would be glued to its end.
async fn take_away_left(context: &Context, pane: &Pane, seen: &Seen) -> Result<()> {
    let Ok(left) = std::fs::read(context.run_dir(pane.run).join(TYPING)) else { return Ok(()) };
    if procs::tty_is_cooked(pane.pid) || is_shown(seen, &String::from_utf8_lossy(&left)) {
        context.tmux.keys(&pane.id, &["C-u"]).await?;
    }
    Ok(())
}

/// Ends the input of an agent that reads lines from its terminal; to any other it is a key like another. To a
/// dialog it may be an answer, and nobody knows which.
pub(crate) async fn eof(context: &Context, pane: &Pane, reader: &SharedReader) -> Result<()> {
    let gone = |error: Error| if error.code == ErrorCode::NotFound { gone() } else { error };
    // A dead pane takes keys without effect; that must not look like success.
    let seen = look(context, pane, reader).await.map_err(gone)?;
    if let Some(blocked) = seen.reading.blocked {
        return Err(in_the_way(context, &blocked.what));
    }
    context.tmux.keys(&pane.id, &["C-d"]).await.map_err(gone)
}

/// Answers a dialog with keys (a paste means nothing to most), and with Enter only where they did not do it:
/// what comes up next is another question.
async fn answer(
    context: &Context,
    pane: &Pane,
    reader: &SharedReader,
    what: &str,
    text: &str,
    enter: bool,
) -> Result<Option<String>> {
    let keys: Vec<String> = text.chars().filter(|c| !c.is_control()).map(String::from).collect();
    context.tmux.keys(&pane.id, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let start = Instant::now();
    while enter && !text.is_empty() && start.elapsed() < TAKEN {
        sleep(LOOK).await;
        match look(context, pane, reader).await {
            Ok(now) if now.reading.blocked.as_ref().is_some_and(|b| b.what == what) => {}
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
fn is_answer(text: &str) -> bool {
    text.len() <= ANSWER && !text.contains(char::is_whitespace)
}

fn in_the_way(context: &Context, what: &str) -> Error {
    Error::new(ErrorCode::Conflict, format!("a dialog is in the way: {what}"))
        .hint(format!("to answer it: swarm attach {}", context.name))
}

/// Pastes; true when the terminal was one that reads whole lines.
async fn paste(context: &Context, pane: &Pane, text: &str) -> Result<bool> {
    let as_line = procs::tty_is_cooked(pane.pid);
    if as_line && text.split('\n').any(|line| line.len() > LONGEST_LINE) {
        let message = format!(
            "a line of the text is longer than {LONGEST_LINE} bytes, which is all that the agent's terminal takes"
        );
        return Err(
            Error::invalid(message).hint("give it shorter lines, or the path of a file that holds it")
        );
    }
    match context.tmux.paste(&pane.id, text.as_bytes()).await? {
        PasteOutcome::Done => Ok(as_line),
        PasteOutcome::PaneDead => Err(gone()),
    }
}

/// Presses Enter until the text was taken, which was pasted `as_line` or not. Gives a warning where the agent has not read it yet.
async fn press_enter(
    context: &Context,
    pane: &Pane,
    reader: &SharedReader,
    text: &str,
    as_line: bool,
) -> Result<Option<String>> {
    sleep(SETTLE).await;
    // An agent that ended before the Enter has not taken it, whatever reads its terminal now.
    if cfg!(target_os = "linux") && procs::first_child(pane.pid).is_none() {
        return Err(gone());
    }
    if procs::tty_is_cooked(pane.pid) {
        return enter_line(context, pane).await;
    }
    if as_line {
        return Err(maybe_lost(context));
    }
    let before = look(context, pane, reader).await?;
    let mut prompts = context.prompts.subscribe();
    for _ in 0..ENTERS {
        context.tmux.keys(&pane.id, &["Enter"]).await?;
        let start = Instant::now();
        while start.elapsed() < TAKEN {
            // The agent's own word for it is better than any screen.
            tokio::select! {
                told = prompts.changed() => if told.is_ok() { return Ok(None) },
                () = sleep(LOOK) => {}
            }
            let now = match look(context, pane, reader).await {
                Ok(now) => now,
                // An agent that ended on its prompt has taken it.
                Err(error) if error.code == ErrorCode::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            // A dialog that came up instead is not ours to answer (a list in the box itself looks like one, and
            // was there before); a shell at work reads lines again.
            let asks = now.reading.blocked.is_some() && before.reading.blocked.is_none();
            let took = asks || procs::tty_is_cooked(pane.pid);
            if took || was_taken(&before, &now, text) {
                return Ok(None);
            }
        }
        // Only a text that is seen to sit there unsent is sent again: an agent that shows nothing of what it
        // reads may have it, and further Enters would be further input.
        if !is_shown(&before, text) {
            return Ok(None);
        }
    }
    Err(Error::new(ErrorCode::Timeout, "the text was typed, but the agent did not take it")
        .hint(format!("look at it, and press Enter there: swarm attach {}", context.name)))
}

/// Presses Enter once where the terminal reads whole lines: a second one would be one more line. The line is
/// taken when nothing of it waits any more; a terminal that stops reading lines meanwhile is that of an agent
/// that was only coming up, and such a one mostly throws away what was typed before.
async fn enter_line(context: &Context, pane: &Pane) -> Result<Option<String>> {
    context.tmux.keys(&pane.id, &["Enter"]).await?;
    let start = Instant::now();
    let (mut waited, mut empty) = (false, 0);
    while start.elapsed() < TAKEN {
        sleep(LINE_LOOK).await;
        match procs::terminal(pane.pid) {
            // It ended, or nothing can be known.
            None => return Ok(None),
            Some(terminal) if !terminal.cooked => return Err(maybe_lost(context)),
            // tmux may be about to write it yet, so one look at an empty queue does not say much.
            Some(Terminal { unread: 0, .. }) if waited || empty > 0 => return Ok(None),
            Some(Terminal { unread: 0, .. }) => empty += 1,
            Some(_) => waited = true,
        }
    }
    Ok(Some(format!("worker '{}' has not read it yet; its terminal keeps it", context.name)))
}

fn maybe_lost(context: &Context) -> Error {
    let message = "the agent began to read its keys just then, and may have lost the text";
    Error::new(ErrorCode::Conflict, message)
        .hint(format!("send it again if it is not there: swarm peek {}", context.name))
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

/// There is no such pane any more; what it means is for the caller.
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
    fn an_answer_is_one_short_word() {
        for text in ["", "1", "y", "yes", "proceed"] {
            assert!(is_answer(text), "{text:?}");
        }
        for text in ["2 files need work", "yes please", "1\n", "refactoring", " "] {
            assert!(!is_answer(text), "{text:?}");
        }
    }

    #[test]
    fn an_empty_text_is_taken_when_anything_changed() {
        assert!(!taken("$ ", "$ ", ""));
        assert!(taken("$ ", "$ \n$ ", ""));
    }
}
