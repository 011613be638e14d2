//! Carries out a delivery: reads the pane, then does the step that [`swarm_state::delivery`] decides.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use swarm_state::delivery::{BoxContent, Delivery, Look, Plan, Step, Typed};
use swarm_state::screen::Blocked;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::line;
use super::look::{AgentPane, ENTERED_MARK, LOOK_INTERVAL, PaneReading, gone, look};
use crate::daemon::crash;
use crate::daemon::messages::RunReport;
use crate::daemon::run::input;
use crate::error::{Error, ErrorCode, Result};
use crate::procs;
use crate::store::write_unsynced;
use crate::tmux::PasteOutcome;

/// The share of a processor by which an agent counts as busy. A screen that blinks uses less.
const BUSY_CPU_SHARE: f64 = 0.2;

/// Between two tries of a look at a tmux that does not answer.
const TMUX_RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
pub(crate) enum DeliveryPurpose<'a> {
    /// The prompt of a run, whose folder this is.
    Prompt(&'a Path),
    /// A text that a person sent.
    Text,
    /// The same, key by key.
    Keys,
}

pub(crate) enum DeliveryEnd {
    /// The agent has the text, with a warning if it has not read it yet.
    Accepted(Option<String>),
    /// A dialog, or something unknown, replaced the input box; `entered`: Enter had been pressed on the text before.
    Blocked { dialog: Option<Blocked>, entered: bool },
}

pub(crate) struct DeliveryRun<'a> {
    pub(crate) at: AgentPane<'a>,
    pub(crate) text: &'a str,
    pub(crate) plan: Plan,
    pub(crate) purpose: DeliveryPurpose<'a>,
    /// The agent worked before.
    pub(crate) worked: bool,
}

impl DeliveryRun<'_> {
    /// Types the text and waits until the agent accepts it.
    pub(crate) async fn deliver(&self, mut typed: Typed, mut delivery: Delivery) -> Result<DeliveryEnd> {
        let mut prompts = self.at.context.prompts.subscribe();
        let start = Instant::now();
        let mut load = delivery.has_entered().then(|| CpuLoad::new(self.at.pane.pid));
        loop {
            let seen = match look(self.at).await {
                Ok(seen) => seen,
                // An agent that has, or may have, its prompt is not ended because tmux does not answer.
                Err(error) if self.waits_for_tmux(&error) => {
                    self.at.context.report(RunReport::Silent);
                    sleep(TMUX_RETRY_DELAY).await;
                    continue;
                }
                // An agent that ended on its prompt had accepted it.
                Err(error) if error.code == ErrorCode::NotFound && delivery.has_entered() => {
                    return Ok(DeliveryEnd::Accepted(None));
                }
                Err(error) => return Err(error),
            };
            // A shell at work reads lines again.
            if delivery.has_entered() && procs::tty_is_cooked(self.at.pane.pid) {
                return Ok(DeliveryEnd::Accepted(None));
            }
            let mut look = self.interpret(&seen, &mut typed, &delivery, &prompts);
            look.busy = load.as_ref().is_some_and(CpuLoad::is_busy);
            let step = delivery.next(&look, start.elapsed());
            let blocked = |dialog| Ok(DeliveryEnd::Blocked { dialog, entered: delivery.has_entered() });
            if matches!(step, Step::Paste | Step::Enter) && self.must_not_type() {
                return blocked(None);
            }
            match step {
                Step::Wait => wait(&mut prompts).await,
                Step::Paste => {
                    if self.paste(&seen).await? {
                        return line::finish(self.at.context, self.at.pane, self.plan.enter)
                            .await
                            .map(DeliveryEnd::Accepted);
                    }
                }
                Step::Enter => {
                    if let Some(carried) = self.enter().await? {
                        return Ok(carried);
                    }
                    load = Some(CpuLoad::new(self.at.pane.pid));
                }
                Step::Accepted => return Ok(DeliveryEnd::Accepted(None)),
                Step::Dialog(dialog) => return blocked(Some(dialog)),
                Step::NoBox => return blocked(None),
                Step::NotShown => {
                    return Err(self.failed("the text was pasted, but the agent does not show it"));
                }
                Step::NotAccepted => {
                    return Err(self.failed("the text was typed, but the agent did not accept it"));
                }
            }
        }
    }

    /// Whether the delivery continues when tmux answers again. A person who sends a text gets the error at once.
    fn waits_for_tmux(&self, error: &Error) -> bool {
        matches!(self.purpose, DeliveryPurpose::Prompt(_))
            && error.code == ErrorCode::Timeout
            && !self.at.context.is_hurried()
    }

    /// Whether a person holds the worker: then only what people send is typed.
    fn must_not_type(&self) -> bool {
        matches!(self.purpose, DeliveryPurpose::Prompt(_)) && self.at.context.held.load(Ordering::Relaxed)
    }

    /// Interprets a look at the pane with regard to this text.
    fn interpret(
        &self,
        seen: &PaneReading,
        typed: &mut Typed,
        delivery: &Delivery,
        prompts: &watch::Receiver<u64>,
    ) -> Look {
        let held = match delivery.knows_box() {
            true if seen.input.is_none() && delivery.may_fill_screen() && typed.fills(&seen.text) => {
                BoxContent::Text
            }
            true => typed.held(seen.input.as_deref()),
            false => typed.held_by_mark(&seen.text, delivery.has_entered()),
        };
        // A text in the input box that looks like a dialog is not one.
        let is_own = held == BoxContent::Text && typed.is_distinct();
        Look {
            held,
            dialog: seen.reading.blocked.clone().filter(|_| !is_own),
            began: seen.reading.working && !self.worked,
            reported: prompts.has_changed().unwrap_or(false),
            busy: false,
            ready: seen.reading.ready,
            untouched: typed.is_untouched(&seen.text),
        }
    }

    /// Pastes or types; true when the terminal was one that reads whole lines.
    async fn paste(&self, seen: &PaneReading) -> Result<bool> {
        let (tmux, pane) = (&self.at.context.tmux, self.at.pane);
        if let DeliveryPurpose::Prompt(dir) = self.purpose {
            input::keep_screen_before(dir, &seen.text, self.at.reader)?;
            crash::point("paste");
        }
        let as_line = procs::tty_is_cooked(pane.pid);
        if as_line {
            line::refuse_long(self.text)?;
        }
        let outcome = match self.purpose {
            DeliveryPurpose::Prompt(_) | DeliveryPurpose::Text => {
                tmux.paste(&pane.id, self.text.as_bytes()).await
            }
            DeliveryPurpose::Keys => tmux.type_text(&pane.id, self.text).await,
        };
        let outcome = match outcome {
            // The next looks show whether it was pasted.
            Err(error) if self.waits_for_tmux(&error) => PasteOutcome::Done,
            other => other?,
        };
        match self.purpose {
            DeliveryPurpose::Prompt(_) => crash::point("enter"),
            DeliveryPurpose::Text | DeliveryPurpose::Keys => crash::point("typed"),
        }
        match outcome {
            PasteOutcome::Done => Ok(as_line),
            PasteOutcome::PaneDead => Err(gone()),
        }
    }

    /// Presses Enter. Returns the end of the delivery if the terminal switched to reading whole lines meanwhile.
    async fn enter(&self) -> Result<Option<DeliveryEnd>> {
        let pane = self.at.pane;
        // An agent that ended before the Enter has not accepted it, even if another program reads its terminal now.
        if line::is_gone(pane) {
            return Err(gone());
        }
        if let DeliveryPurpose::Prompt(dir) = self.purpose {
            // Without the mark, the next daemon assumes that an agent which exits on its prompt never received it.
            drop(write_unsynced(&dir.join(ENTERED_MARK), b""));
        }
        if procs::tty_is_cooked(pane.pid) {
            return line::enter(self.at.context, pane)
                .await
                .map(|warning| Some(DeliveryEnd::Accepted(warning)));
        }
        match self.at.context.tmux.keys(&pane.id, &["Enter"]).await {
            // The next looks show whether it was pressed.
            Err(error) if self.waits_for_tmux(&error) => {}
            other => other?,
        }
        sleep(LOOK_INTERVAL).await;
        Ok(None)
    }

    fn failed(&self, message: &str) -> Error {
        Error::new(ErrorCode::Timeout, message)
            .hint(format!("check its input box and press Enter: swarm attach {}", self.at.context.name))
    }
}

/// The CPU time of an agent since Enter was pressed.
struct CpuLoad {
    pid: i32,
    since: Instant,
    seconds: f64,
}

impl CpuLoad {
    fn new(pid: i32) -> Self {
        Self { pid, since: Instant::now(), seconds: procs::cpu_seconds(pid) }
    }

    fn is_busy(&self) -> bool {
        procs::cpu_seconds(self.pid) - self.seconds >= BUSY_CPU_SHARE * self.since.elapsed().as_secs_f64()
    }
}

/// Waits until the next look is due or the agent's hook reports a prompt, which is more reliable than the screen.
async fn wait(prompts: &mut watch::Receiver<u64>) {
    if prompts.has_changed().unwrap_or(true) {
        return sleep(LOOK_INTERVAL).await;
    }
    tokio::select! {
        _ = prompts.changed() => prompts.mark_changed(),
        () = sleep(LOOK_INTERVAL) => {}
    }
}
