//! Typing into an agent's pane: the prompt of a run, and what people send.
//!
//! [`swarm_state::delivery`] decides which key comes next; [`carry`] looks at the pane before each of them. Only an
//! answer is typed into a dialog. The run's folder records that a delivery began, so that the next daemon does
//! not paste the prompt a second time. If a daemon died before it pressed Enter, its text is removed from the input
//! box before other text is typed.

use std::path::Path;
use std::time::Duration;

use swarm_state::delivery::{BLIND_ENTER_DELAY, Delivery, Plan, Typed};
use swarm_state::screen::answers::Answers;
use tokio::time::{Instant, sleep};

use self::answer::OpenDialog;
use self::carry::{DeliveryEnd, DeliveryPurpose, DeliveryRun};
pub(crate) use self::look::AgentPane;
use self::look::{ENTERED_MARK, LOOK_INTERVAL, PaneReading, gone, in_the_way, input_of, look, plan};
use crate::daemon::crash;
use crate::daemon::messages::PromptOutcome;
use crate::daemon::run::input;
use crate::error::{Error, ErrorCode, Result};
use crate::files::create;
use crate::procs;
use crate::protocol::SendParams;
use crate::store::{write_atomic, write_unsynced};

pub(crate) mod answer;
pub(crate) mod carry;
pub(crate) mod line;
pub(crate) mod look;

/// How long `send` waits for an expected dialog or an input box. Then it types anyway if the
/// profile does not describe the box.
const INPUT_BOX_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a dialog must have been on the screen before keys are pressed. Measured: Claude Code 2.1.332 ignores keys
/// during the first 0.1 to 0.2 s, so that no key meant for its input box answers the dialog.
const DIALOG_SETTLE: Duration = Duration::from_secs(1);

/// Exists once the prompt was accepted.
const ACCEPTED_MARK: &str = "prompt.taken";

/// The text that is being typed; exists until the agent has accepted it.
const UNSENT_TEXT_FILE: &str = "typing";

/// Delivers the prompt of a run whose agent is ready. If an earlier daemon began the delivery, the prompt is pasted
/// again only if the screen shows that it was not pasted, and not at all if it was accepted. Fails when the agent does
/// not accept the prompt in its box, or never shows it.
pub(crate) async fn prompt(at: AgentPane<'_>) -> Result<PromptOutcome> {
    let dir = at.context.run_dir(at.pane.run);
    let entered = dir.join(ENTERED_MARK);
    match deliver(at, &dir).await {
        // An agent that ended on its prompt had accepted it.
        Err(error) if error.code == ErrorCode::NotFound && entered.exists() => Ok(accepted(&dir)),
        Err(error) => {
            drop(std::fs::remove_file(entered));
            Err(error)
        }
        Ok(prompted) => Ok(prompted),
    }
}

async fn deliver(at: AgentPane<'_>, dir: &Path) -> Result<PromptOutcome> {
    let AgentPane { context, reader, .. } = at;
    let text = std::fs::read(dir.join(input::RUN_PROMPT_FILE));
    let text = text.map_err(|e| Error::system("cannot read the prompt of this run", e))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if dir.join(ACCEPTED_MARK).exists() {
        return Ok(PromptOutcome::Accepted);
    }
    let seen = look(at).await?;
    // In a first delivery, a box that holds the text of the prompt shows a placeholder.
    let once = input::was_pasted(dir);
    let mut plan = Plan { once, first: true, ..plan(reader) };
    // Spaces alone cannot be seen in an input box.
    plan.knows_box &= !text.trim().is_empty();
    if once {
        // The agent may draw the paste late.
        plan.settle = plan.settle.max(BLIND_ENTER_DELAY);
    }
    let (before, delivery) = match input::screen_before(dir) {
        None => (seen.input.clone(), Delivery::new(plan)),
        Some(screen) => {
            let before = input_of(reader, &screen, seen.reading.size);
            let changed = squeeze(&screen) != squeeze(&seen.text);
            if changed && seen.reading.working {
                return Ok(accepted(dir));
            }
            let entered = dir.join(ENTERED_MARK).exists();
            let delivery = match changed {
                true if entered => Delivery::after_enter(plan),
                true => Delivery::pasted(plan),
                false => Delivery::new(plan),
            };
            (before, delivery)
        }
    };
    // A delivery that a dialog interrupted may have left the text in the box.
    let whole = Typed::new(&text, None);
    let is_there = once && whole.was_left_in(seen.input.as_deref());
    let typed = Typed::new(&text, before.as_deref().filter(|_| !is_there));
    let purpose = DeliveryPurpose::Prompt(dir);
    let carrier = DeliveryRun { at, text: &text, plan, purpose, worked: seen.reading.working };
    match carrier.deliver(typed, delivery).await? {
        DeliveryEnd::Accepted(warning) => {
            if let Some(warning) = warning {
                context.warn(warning);
            }
            Ok(accepted(dir))
        }
        DeliveryEnd::Blocked { dialog, entered } => {
            // After Enter, only a dialog at start removes the text with the box; otherwise the agent has it.
            if !entered || dialog.as_ref().is_some_and(|dialog| dialog.startup) {
                input::note_interrupted(dir)?;
            }
            Ok(PromptOutcome::Blocked(dialog))
        }
    }
}

fn accepted(dir: &Path) -> PromptOutcome {
    crash::point("taken");
    // Without the mark the next daemon presses Enter again.
    drop(write_atomic(&dir.join(ACCEPTED_MARK), b""));
    PromptOutcome::Accepted
}

/// Whether the agent of a run that exited had its prompt: it accepted it, or exited after the Enter.
pub(crate) fn was_delivered(run_dir: &Path) -> bool {
    run_dir.join(ACCEPTED_MARK).exists() || run_dir.join(ENTERED_MARK).exists()
}

/// Types the text that a person sent. In a dialog, only an answer that it offers is typed. Returns a warning if the
/// agent has not read the text yet. `expects_dialog`: the agent's hook has reported a request. Its dialog can follow
/// more than a second later, and until then the agent ignores Enter. Fails when a dialog or something unknown replaces
/// the input box, or the agent does not accept the text.
pub(crate) async fn typed(
    at: AgentPane<'_>,
    what: &SendParams,
    expects_dialog: bool,
) -> Result<Option<String>> {
    let AgentPane { context, pane, reader } = at;
    let SendParams { text, enter, keys, no_answer, .. } = what;
    let start = Instant::now();
    let mut dialog_since = None;
    let seen = loop {
        let seen = look(at).await?;
        match &seen.reading.blocked {
            Some(_) if dialog_since.get_or_insert_with(Instant::now).elapsed() < DIALOG_SETTLE => {
                sleep(LOOK_INTERVAL).await;
            }
            Some(blocked) => {
                let answers = Answers::on(&seen.text);
                let Some(answer) = answers.find(text).filter(|_| !no_answer) else {
                    return Err(answer::not_offered(context, blocked, &answers));
                };
                return OpenDialog { at, before: &seen, answers }.answer(&answer, *enter).await;
            }
            None if expects_dialog && start.elapsed() < INPUT_BOX_TIMEOUT => sleep(LOOK_INTERVAL).await,
            None if seen.reading.ready || seen.reading.working => break seen,
            // The terminal keeps lines until they are read, but an agent that is starting discards them.
            None if procs::tty_is_cooked(pane.pid) && procs::seems_to_read(pane.pid) => break seen,
            None if start.elapsed() >= INPUT_BOX_TIMEOUT => break seen,
            None => sleep(LOOK_INTERVAL).await,
        }
    };
    let seen = remove_unsent(at, seen).await?;
    let dir = context.run_dir(pane.run);
    if !text.is_empty() {
        input::keep_typed(&dir, text, reader)?;
    }
    // A full disk usually has room for an empty file. Without any mark nothing gets worse.
    let mark = dir.join(UNSENT_TEXT_FILE);
    drop(write_unsynced(&mark, text.as_bytes()).or_else(|_| create(&mark).map(drop)));
    let mut plan =
        Plan { enter: *enter, bare_enter: text.is_empty(), settle: Duration::ZERO, ..plan(reader) };
    // Spaces alone cannot be seen in an input box.
    plan.knows_box &= !text.trim().is_empty();
    let purpose = if *keys { DeliveryPurpose::Keys } else { DeliveryPurpose::Text };
    let carrier = DeliveryRun { at, text, plan, purpose, worked: seen.reading.working };
    let carried = carrier.deliver(Typed::new(text, seen.input.as_deref()), Delivery::new(plan)).await;
    let warning = match carried? {
        DeliveryEnd::Accepted(warning) => warning,
        DeliveryEnd::Blocked { dialog: None, entered: true } => {
            let message =
                "Enter was pressed, then the agent's input box disappeared; the agent may have the text";
            let hint = format!("to see its screen: swarm peek {}", context.name);
            return Err(Error::conflict(message).hint(hint));
        }
        DeliveryEnd::Blocked { dialog, .. } => return Err(in_the_way(context, dialog.as_ref())),
    };
    drop(std::fs::remove_file(&mark));
    Ok(warning)
}

/// Removes a text that was typed and never submitted: its sender got an error, and it would precede the next text.
async fn remove_unsent(at: AgentPane<'_>, seen: PaneReading) -> Result<PaneReading> {
    let AgentPane { context, pane, .. } = at;
    let Ok(unsent) = std::fs::read(context.run_dir(pane.run).join(UNSENT_TEXT_FILE)) else { return Ok(seen) };
    let unsent = Typed::new(&String::from_utf8_lossy(&unsent), None);
    if procs::tty_is_cooked(pane.pid) || unsent.held(seen.input.as_deref()).is_text() {
        context.tmux.keys(&pane.id, &["C-u"]).await?;
        sleep(LOOK_INTERVAL).await;
        return look(at).await;
    }
    Ok(seen)
}

/// Sends Ctrl-D, which ends the input of an agent that reads lines from its terminal. Not to a dialog, where it may be
/// an answer. Fails when the agent shows a dialog.
pub(crate) async fn eof(at: AgentPane<'_>) -> Result<()> {
    let AgentPane { context, pane, .. } = at;
    let gone = |error: Error| if error.code == ErrorCode::NotFound { gone() } else { error };
    // A dead pane accepts keys without effect, which must not look like success.
    let seen = look(at).await.map_err(gone)?;
    if let Some(blocked) = &seen.reading.blocked {
        return Err(in_the_way(context, Some(blocked)));
    }
    context.tmux.keys(&pane.id, &["C-d"]).await.map_err(gone)
}

/// The text without white space and frame characters.
fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '\u{2500}'..='\u{257f}')).collect()
}
