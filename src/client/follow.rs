//! The follower: `swarm spawn --ralph` prints what the loop does and ends with its code.
//!
//! The loop lives in the daemon; this only listens. [`machine`] decides; here are the connection (started
//! again and resumed when it breaks), the signals and the printing. Each source of news is a task of its
//! own, so that a daemon that does not answer never delays a Ctrl-C.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::subscription::{Subscription, Update, is_unreachable};
use crate::client::connect::{self, Client, QUICK};
use crate::client::context::Context;
use crate::client::tail::Tail;
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Failure};
use crate::paths::Paths;
use crate::protocol::{Call, Changed, Named, Notice, Report, ReportParams, Snapshot, Spawned, WorkerView};

mod machine;
mod progress;

use machine::{Act, End, Machine};
use progress::Progress;

/// How a follower prints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// What the agent prints too.
    pub(super) stream: bool,
    /// Where the loop's lines go.
    pub(super) lines: Lines,
    /// A line that tells how far it is, where stderr is a terminal.
    pub(super) progress: bool,
}

/// Where a loop's lines go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// Where they belong.
    Stdout,
    /// Where stdout holds one JSON object.
    Stderr,
    /// Only the result counts.
    Nowhere,
}

impl Lines {
    fn say(self, ctx: &Context, line: &str) -> Result<(), Failure> {
        match self {
            Self::Stdout => return ctx.out.line(line),
            Self::Stderr => ctx.out.note(line),
            Self::Nowhere => {}
        }
        Ok(())
    }
}

/// For how long the last notices may be on their way when the snapshot says that the loop is over.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a follower that leaves waits for the pause that it asked for.
const PAUSE_LANDS: Duration = Duration::from_secs(3);

/// Between two drawings of the progress line.
const DRAW: Duration = Duration::from_secs(1);

/// Between two looks at the agent's screen.
const LOOK: Duration = Duration::from_millis(500);

/// What a follower hears.
enum News {
    Snapshot(Snapshot),
    Notice(Notice),
    /// The pause was taken, or not.
    Paused(Result<Box<WorkerView>>),
    /// The agent printed this.
    Printed(Vec<String>),
    /// What was spent so far, US dollars.
    Spent(f64),
    /// The daemon was stopped on purpose.
    DaemonStopped,
    /// The daemon cannot be reached.
    Disconnected(Error),
}

/// How following a loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Followed {
    /// The exit status.
    pub(super) code: u8,
    /// Whoever followed it gave it up, with Ctrl-C or SIGTERM.
    pub(super) given_up: bool,
}

/// Follows the loop of `spawned` to its end.
pub(super) async fn run(
    ctx: &Context,
    spawned: &Spawned,
    options: Options,
    signals: Signals,
) -> CommandResult {
    result(ctx, spawned, options, signals).await.map(|followed| followed.code)
}

/// The same, and whether it was followed to its end.
pub(super) async fn result(
    ctx: &Context,
    spawned: &Spawned,
    options: Options,
    signals: Signals,
) -> Result<Followed, Failure> {
    let followed = follow(ctx, spawned, options, signals).await;
    ctx.out.no_progress();
    match followed {
        Err(Failure::ReaderGone) => Ok(Followed { code: unread(Err(Failure::ReaderGone))?, given_up: false }),
        followed => followed,
    }
}

/// Quiet as it is, a reader that went away does not make a loop complete.
pub(super) fn unread(ended: CommandResult) -> CommandResult {
    match ended {
        Err(Failure::ReaderGone) => Ok(1),
        ended => ended,
    }
}

/// The progress line, where one is wanted and can be seen.
struct Shown {
    line: Option<Progress>,
    since: Instant,
}

impl Shown {
    fn new(ctx: &Context, spawned: &Spawned, options: Options) -> Self {
        let max = spawned.worker.metadata["max_iterations"].as_u64().and_then(|n| n.try_into().ok());
        let wanted = options.progress && ctx.out.shows_progress();
        Self { line: wanted.then(|| Progress::new(max.unwrap_or(0))), since: Instant::now() }
    }

    fn draw(&self, ctx: &Context) {
        if let Some(line) = &self.line {
            ctx.out.progress(&line.text(self.since.elapsed()));
        }
    }

    /// Takes over what was heard; asks for the new sum when an iteration is over.
    fn hear(&mut self, heard: &Heard, paths: &Paths, name: &str, news: &UnboundedSender<News>) {
        let Some(line) = &mut self.line else { return };
        match heard {
            Heard::News(News::Notice(notice)) if notice.worker == name => {
                if line.notice(notice) {
                    tokio::spawn(ask_spent(paths.clone(), name.to_owned(), news.clone()));
                }
            }
            Heard::News(News::Spent(dollars)) => line.spent(*dollars),
            Heard::News(_) | Heard::Interrupt | Heard::HangUp | Heard::Silence | Heard::Tick => {}
        }
    }
}

/// Asks what the loop has spent; nobody misses an answer that does not come.
async fn ask_spent(paths: Paths, name: String, news: UnboundedSender<News>) {
    let Ok(Some(mut client)) = connect::connect_existing(&paths).await else { return };
    // No iteration has this number: the sums alone are wanted.
    let call = Call::RalphReport(ReportParams { name, from: u32::MAX });
    if let Ok(report) = client.call::<Report>(&call, QUICK).await {
        let _ = news.send(News::Spent(report.cost));
    }
}

async fn follow(
    ctx: &Context,
    spawned: &Spawned,
    options: Options,
    mut signals: Signals,
) -> Result<Followed, Failure> {
    let paths = ctx.paths()?;
    let name = spawned.worker.name.clone();
    let mut machine = Machine::new(&spawned.worker, spawned.seq);
    let mut asked = None;
    let mut shown = Shown::new(ctx, spawned, options);
    let (send, mut news) = unbounded_channel();
    let subscription = Subscription::of_known_worker(paths.clone(), name.clone(), spawned.seq);
    tokio::spawn(listen(subscription, send.clone()));
    if options.stream {
        tokio::spawn(watch(paths.clone(), name.clone(), send.clone()));
    }
    let say = |line: &str| options.lines.say(ctx, line);
    loop {
        shown.draw(ctx);
        let heard = next(&mut news, &mut signals, &machine, shown.line.is_some()).await;
        shown.hear(&heard, &paths, &name, &send);
        let acts = match heard {
            Heard::Tick | Heard::News(News::Spent(_)) => vec![],
            Heard::HangUp => return Ok(Followed { code: 129, given_up: false }),
            Heard::Interrupt => machine.interrupt(),
            Heard::Silence => machine.pending().cloned().map(Act::End).into_iter().collect(),
            Heard::News(News::Notice(notice)) => machine.notice(&notice),
            Heard::News(News::Snapshot(snapshot)) => machine.snapshot(&snapshot),
            Heard::News(News::Paused(Ok(worker))) => {
                machine.pause_taken(&worker);
                vec![]
            }
            Heard::News(News::Paused(Err(error))) => {
                not_paused(ctx, &name, error)?;
                vec![]
            }
            Heard::News(News::Printed(lines)) => {
                lines.iter().try_for_each(|line| say(line))?;
                vec![]
            }
            Heard::News(News::DaemonStopped) => vec![Act::End(machine.resumable())],
            Heard::News(News::Disconnected(error)) => {
                return Err(error.hint(format!("swarm ralph status {name}")).into());
            }
        };
        for act in acts {
            match act {
                Act::Print(line) => say(&line)?,
                Act::Note(note) => ctx.out.note(&note),
                Act::Pause => asked = Some(tokio::spawn(pause(paths.clone(), name.clone(), send.clone()))),
                Act::End(end) => {
                    pause_lands(ctx, &name, asked.take()).await;
                    last_lines(&mut news, options, &say).await?;
                    let code = finish(ctx, end)?;
                    return Ok(Followed { code, given_up: machine.asked() });
                }
            }
        }
    }
}

/// The pause was refused: the news will say why. Or it reached nobody: then nothing can be waited for.
fn not_paused(ctx: &Context, name: &str, error: Error) -> Result<()> {
    if !is_unreachable(&error) {
        ctx.out.warn(&format!("cannot pause {name}: {error}"));
        return Ok(());
    }
    let message = format!("the pause of {name} could not be delivered, so its loop goes on: {error}");
    let hint = error.hint.unwrap_or_else(|| format!("swarm ralph pause {name}"));
    Err(Error::new(ErrorCode::System, message).hint(hint))
}

/// Two quick Ctrl-C must not end the follower before its pause has reached the daemon: it said that it was
/// pausing, and the loop would go on.
async fn pause_lands(ctx: &Context, name: &str, asked: Option<JoinHandle<bool>>) {
    let Some(asked) = asked else { return };
    if !matches!(timeout(PAUSE_LANDS, asked).await, Ok(Ok(true))) {
        ctx.out.warn(&format!("the loop of {name} may not be paused: swarm ralph status {name}"));
    }
}

fn finish(ctx: &Context, end: End) -> CommandResult {
    match (end.error, end.hint) {
        (Some(message), Some(hint)) => ctx.out.error(&Error::invalid(message).hint(hint)),
        (Some(message), None) => ctx.out.error(&Error::invalid(message)),
        (None, Some(hint)) => ctx.out.hint(&hint),
        (None, None) => {}
    }
    Ok(end.code)
}

/// What the agent printed last is still to come when the loop's last line is there.
async fn last_lines(
    news: &mut UnboundedReceiver<News>,
    options: Options,
    say: &impl Fn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !options.stream {
        return Ok(());
    }
    let until = Instant::now() + 2 * LOOK + Duration::from_millis(200);
    while let Ok(Some(item)) = timeout_at(until, news.recv()).await {
        if let News::Printed(lines) = item {
            lines.iter().try_for_each(|line| say(line))?;
        }
    }
    Ok(())
}

/// One thing that a follower hears.
enum Heard {
    News(News),
    Interrupt,
    HangUp,
    /// Nothing, for so long that the last words will not come.
    Silence,
    /// The progress line is to be drawn again.
    Tick,
}

async fn next(
    news: &mut UnboundedReceiver<News>,
    signals: &mut Signals,
    machine: &Machine,
    draws: bool,
) -> Heard {
    let silence = async {
        if machine.pending().is_some() {
            sleep(LAST_WORDS).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        heard = signals.next() => heard,
        Some(item) = news.recv() => Heard::News(item),
        () = silence => Heard::Silence,
        // Not while an end is pending: silence is counted from the last thing that was heard.
        () = sleep(DRAW), if draws && machine.pending().is_none() => Heard::Tick,
    }
}

/// The signals that end a follower. Caught before anything is printed, so that Ctrl-C always pauses the loop.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Self> {
        let on = |kind| signal(kind).map_err(|e| Error::system("cannot listen for signals", e));
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Heard {
        tokio::select! {
            _ = self.interrupt.recv() => Heard::Interrupt,
            _ = self.terminate.recv() => Heard::Interrupt,
            _ = self.hang_up.recv() => Heard::HangUp,
        }
    }
}

/// Sends the updates of the loop's worker until nobody receives them.
async fn listen(mut subscription: Subscription, news: UnboundedSender<News>) {
    loop {
        let (item, is_last) = match subscription.next().await {
            Ok(Update::Snapshot(snapshot)) => (News::Snapshot(snapshot), false),
            Ok(Update::Notice(notice)) => (News::Notice(notice), false),
            Ok(Update::DaemonStopped) => (News::DaemonStopped, true),
            Err(error) => (News::Disconnected(error), true),
        };
        if news.send(item).is_err() || is_last {
            return;
        }
    }
}

/// Asks for the pause; a daemon that is just being restarted is asked again, for as long as one that is
/// there may take for its answer. True when it was taken.
async fn pause(paths: Paths, name: String, news: UnboundedSender<News>) -> bool {
    let named = || Named { name: name.clone() };
    let ask = async || -> Result<Box<WorkerView>> {
        let mut client = connect::connect(&paths).await?;
        let _changed: Changed = client.call(&Call::RalphPause(named()), QUICK).await?;
        client.call(&Call::Status(named()), QUICK).await.map(Box::new)
    };
    let until = Instant::now() + QUICK;
    let mut answer = ask().await;
    while answer.as_ref().is_err_and(is_unreachable) && Instant::now() < until {
        sleep(Duration::from_millis(500)).await;
        answer = ask().await;
    }
    let taken = answer.is_ok();
    let _ = news.send(News::Paused(answer));
    taken
}

/// Looks at the agent's output again and again and sends what is new.
async fn watch(paths: Paths, name: String, news: UnboundedSender<News>) {
    let mut tail: Option<Tail> = None;
    let mut client: Option<Client> = None;
    while !news.is_closed() {
        if client.is_none() {
            client = connect::connect_existing(&paths).await.ok().flatten();
        }
        if let Some(open) = &mut client {
            let new = match &mut tail {
                Some(tail) => tail.look(open).await,
                None => Tail::from_start(&name, open).await.map(|made| {
                    tail = Some(made);
                    vec![]
                }),
            };
            match new {
                Ok(lines) if lines.is_empty() => {}
                Ok(lines) => drop(news.send(News::Printed(lines))),
                // The answer to a call that timed out may still come, so the connection is of no use.
                Err(_) => client = None,
            }
        }
        sleep(LOOK).await;
    }
}
