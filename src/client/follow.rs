//! Follows a loop to its end: prints its lines and returns its exit status. Used by `spawn`, `respawn` and `loop`.
//!
//! The loop runs in the daemon; this only reads its notices. [`machine`] decides what to print and when to end. Here
//! are the subscription, the signals and the printing. Each source of events is a task of its own, so that a daemon
//! that does not answer never delays a Ctrl-C.

use std::time::Duration;

use nix::sys::signal::Signal;
use swarm_state::screen::printable;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::subscription::{DurableSubscription, is_unreachable};
use crate::client::context::ClientContext;
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Failure};
use crate::protocol::{Spawned, WorkerView};
use crate::remote::Place;
use crate::runtime::CaughtSignals;

mod machine;
mod progress;
mod tasks;

use machine::{FollowAction, FollowEnd, Machine};
use progress::Progress;
use tasks::{FollowEvent, OUTPUT_POLL_INTERVAL, ask_spent, listen, pause, watch};

#[derive(Clone, Copy, Debug)]
pub(super) struct FollowOptions {
    /// Also print the agent's output.
    pub(super) stream: bool,
    pub(super) lines: LineTarget,
    /// Draw a progress line where stderr is a terminal.
    pub(super) progress: bool,
}

/// The destination of a loop's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineTarget {
    Stdout,
    /// To stderr, because stdout has one JSON object.
    Stderr,
    /// Not at all.
    Nowhere,
}

impl LineTarget {
    fn say(self, ctx: &ClientContext, line: &str) -> Result<(), Failure> {
        match self {
            Self::Stdout => return ctx.out.line(line),
            Self::Stderr => ctx.out.note(line),
            Self::Nowhere => {}
        }
        Ok(())
    }
}

/// How long to wait for the last notices after a snapshot shows that the loop has ended.
const LAST_NOTICES_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a follower that detaches waits for the answer to its pause request.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(3);

const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FollowResult {
    pub(super) code: u8,
    /// The next step. The caller prints it last, after the result.
    pub(super) hint: Option<String>,
    /// The follower was interrupted with Ctrl-C or SIGTERM.
    pub(super) was_interrupted: bool,
    /// The daemon stopped, which paused the loop. A request now would start another daemon.
    pub(super) daemon_stopped: bool,
}

/// The signals that end a follower. They are caught before anything is printed, so that Ctrl-C always pauses the loop.
pub(super) fn signals() -> Result<CaughtSignals> {
    CaughtSignals::new(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
}

/// Follows the loop of `spawned` to its end.
pub(super) async fn result(
    ctx: &ClientContext,
    spawned: &Spawned,
    options: FollowOptions,
    signals: CaughtSignals,
) -> Result<FollowResult, Failure> {
    let followed = follow(ctx, spawned, options, signals).await;
    ctx.out.no_progress();
    match followed {
        Err(Failure::ReaderGone) => Ok(FollowResult { code: 1, ..FollowResult::default() }),
        followed => followed,
    }
}

/// The exit status of a loop that has ended or is paused; `None` while it continues.
pub(super) fn exit_status(worker: &WorkerView) -> Option<u8> {
    let mut machine = Machine::new(worker, 0);
    machine.view(worker);
    machine.pending().map(|end| end.code)
}

/// Exit status 1 when the reader of stdout went away: the loop's end is not known then.
pub(super) fn failed_if_unread(ended: CommandResult) -> CommandResult {
    match ended {
        Err(Failure::ReaderGone) => Ok(1),
        ended => ended,
    }
}

/// The progress line, where it is requested and stderr is a terminal.
struct ProgressLine {
    line: Option<Progress>,
    since: Instant,
}

impl ProgressLine {
    fn new(ctx: &ClientContext, spawned: &Spawned, options: FollowOptions) -> Self {
        let max = spawned.worker.metadata().max_iterations.and_then(|n| n.try_into().ok());
        let wanted = options.progress && ctx.out.shows_progress();
        Self { line: wanted.then(|| Progress::new(max.unwrap_or(0))), since: Instant::now() }
    }

    fn draw(&self, ctx: &ClientContext) {
        if let Some(line) = &self.line {
            ctx.out.progress(&line.text(self.since.elapsed()));
        }
    }

    /// Updates the line, and requests the new cost when an iteration has ended.
    fn update(
        &mut self,
        input: &FollowEvent,
        place: &Place,
        name: &str,
        events: &UnboundedSender<FollowEvent>,
    ) {
        let Some(line) = &mut self.line else { return };
        if let FollowEvent::Spent(dollars) = input {
            line.spent(*dollars);
        }
        if let FollowEvent::Notice(notice) = input
            && notice.worker == name
            && line.notice(notice)
        {
            tokio::spawn(ask_spent(place.clone(), name.to_owned(), events.clone()));
        }
    }
}

async fn follow(
    ctx: &ClientContext,
    spawned: &Spawned,
    options: FollowOptions,
    mut signals: CaughtSignals,
) -> Result<FollowResult, Failure> {
    let place = ctx.place()?;
    let name = spawned.worker.name.clone();
    let mut machine = Machine::new(&spawned.worker, spawned.seq);
    let mut asked = None;
    let mut progress_line = ProgressLine::new(ctx, spawned, options);
    let (send, mut events) = unbounded_channel();
    let subscription = DurableSubscription::of_known_worker(place.clone(), name.clone(), spawned.seq);
    tokio::spawn(listen(subscription, place.clone(), send.clone()));
    if options.stream {
        tokio::spawn(watch(place.clone(), name.clone(), send.clone()));
    }
    let say = |line: &str| options.lines.say(ctx, line);
    loop {
        progress_line.draw(ctx);
        let input = next(&mut events, &mut signals, &machine, progress_line.line.is_some()).await;
        progress_line.update(&input, &place, &name, &send);
        let mut acts = vec![];
        match input {
            FollowEvent::Tick | FollowEvent::Spent(_) => {}
            FollowEvent::HangUp => return Ok(FollowResult { code: 129, ..FollowResult::default() }),
            FollowEvent::Interrupt => acts = machine.interrupt(),
            FollowEvent::Quiet => acts.extend(machine.pending().cloned().map(FollowAction::End)),
            FollowEvent::Notice(notice) => acts = machine.notice(&notice),
            FollowEvent::Snapshot(snapshot) => acts = machine.snapshot(&snapshot),
            FollowEvent::Paused(Ok(worker)) => machine.view(&worker),
            FollowEvent::Paused(Err(error)) => not_paused(ctx, &name, error)?,
            FollowEvent::Printed(lines) => lines.iter().try_for_each(|line| say(line))?,
            FollowEvent::DaemonStopped => acts.push(FollowAction::End(machine.stopped())),
            FollowEvent::Disconnected(error) => {
                return Err(error.hint(format!("swarm ralph status {name}")).into());
            }
        }
        for act in acts {
            match act {
                FollowAction::Print(line) => say(&printable(&line))?,
                FollowAction::Note(note) => ctx.out.note(&note),
                FollowAction::Pause => {
                    asked = Some(tokio::spawn(pause(place.clone(), name.clone(), send.clone())))
                }
                FollowAction::End(end) => {
                    wait_for_pause(ctx, &name, asked.take()).await;
                    last_lines(&mut events, options, &say).await?;
                    let FollowEnd { code, error, hint } = end;
                    error.into_iter().for_each(|message| ctx.out.error(&Error::invalid(message)));
                    let (was_interrupted, daemon_stopped) = (machine.asked, machine.daemon_stopped);
                    return Ok(FollowResult { code, hint, was_interrupted, daemon_stopped });
                }
            }
        }
    }
}

/// Handles a failed pause request. A refusal is a warning, since notices follow. When the daemon was not reached, the
/// follower ends with the error.
fn not_paused(ctx: &ClientContext, name: &str, error: Error) -> Result<()> {
    if !is_unreachable(&error) {
        ctx.out.warn(&format!("cannot pause {name}: {error}"));
        return Ok(());
    }
    let message = format!("cannot pause {name}, and its loop goes on: {error}");
    let hint = error.hint.unwrap_or_else(|| format!("swarm ralph pause {name}"));
    Err(Error::new(ErrorCode::System, message).hint(hint))
}

/// Waits for the answer to the pause request. Without this, two quick Ctrl-C would end the follower before the request
/// has reached the daemon, and the loop would continue.
async fn wait_for_pause(ctx: &ClientContext, name: &str, asked: Option<JoinHandle<bool>>) {
    let Some(asked) = asked else { return };
    if !matches!(timeout(PAUSE_TIMEOUT, asked).await, Ok(Ok(true))) {
        ctx.out.warn(&format!("the loop of {name} may still be running; check: swarm ralph status {name}"));
    }
}

/// Prints the agent's last output, which arrives after the loop's last line.
async fn last_lines(
    events: &mut UnboundedReceiver<FollowEvent>,
    options: FollowOptions,
    say: &impl Fn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !options.stream {
        return Ok(());
    }
    let until = Instant::now() + 2 * OUTPUT_POLL_INTERVAL + Duration::from_millis(200);
    while let Ok(Some(item)) = timeout_at(until, events.recv()).await {
        if let FollowEvent::Printed(lines) = item {
            lines.iter().try_for_each(|line| say(line))?;
        }
    }
    Ok(())
}

async fn next(
    events: &mut UnboundedReceiver<FollowEvent>,
    signals: &mut CaughtSignals,
    machine: &Machine,
    draws: bool,
) -> FollowEvent {
    let quiet = async {
        if machine.pending().is_some() {
            sleep(LAST_NOTICES_TIMEOUT).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        signal = signals.next() => match signal {
            Signal::SIGHUP => FollowEvent::HangUp,
            _ => FollowEvent::Interrupt,
        },
        Some(item) = events.recv() => item,
        () = quiet => FollowEvent::Quiet,
        // Not while an end is pending: the wait for the last notices starts again with each input.
        () = sleep(PROGRESS_INTERVAL), if draws && machine.pending().is_none() => FollowEvent::Tick,
    }
}
