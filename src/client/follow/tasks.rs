//! The events that a follower waits for. Each source of events is a task of its own.

use std::time::Duration;

use swarm_state::ledger::Iteration;
use swarm_state::notice::Entry;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};

use crate::client::connect::{self, Client, QUICK_TIMEOUT};
use crate::client::report::{quoted_agent, quoted_checks};
use crate::client::subscription::{DurableSubscription, Update, is_unreachable};
use crate::client::tail::OutputTail;
use crate::error::{Error, Result};
use crate::protocol::{Call, Changed, Named, Notice, Report, ReportParams, Snapshot, WorkerView};
use crate::remote::Place;

pub(super) const OUTPUT_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// An event from one of the follower's tasks, a signal, or the end of a wait.
pub(super) enum FollowEvent {
    Interrupt,
    HangUp,
    /// No input for so long that the last notices will not arrive.
    Quiet,
    /// Time to draw the progress line.
    Tick,
    Snapshot(Snapshot),
    Notice(Notice),
    Paused(Result<Box<WorkerView>>),
    Printed(Vec<String>),
    /// The cost so far, US dollars.
    Spent(f64),
    /// The daemon was stopped on purpose.
    DaemonStopped,
    Disconnected(Error),
}

/// Sends the updates of the loop's worker until the receiver is gone.
pub(super) async fn listen(
    mut subscription: DurableSubscription,
    place: Place,
    events: UnboundedSender<FollowEvent>,
) {
    loop {
        let (item, is_last) = match subscription.next().await {
            Ok(Update::Snapshot(snapshot)) => (FollowEvent::Snapshot(snapshot), false),
            Ok(Update::Notice(notice)) => {
                let quoted = quote_failed(&place, &notice).await;
                drop(events.send(FollowEvent::Notice(notice)));
                (FollowEvent::Printed(quoted), false)
            }
            Ok(Update::DaemonStopped) => (FollowEvent::DaemonStopped, true),
            Err(error) => (FollowEvent::Disconnected(error), true),
        };
        if events.send(item).is_err() || is_last {
            return;
        }
    }
}

/// Quotes the output of the checks or the agent whose failure a notice reports. Without a record there is none.
async fn quote_failed(place: &Place, notice: &Notice) -> Vec<String> {
    let (iteration, quote): (u32, fn(&Iteration) -> Vec<String>) = match &notice.entry {
        Entry::GatesMissed { iteration, .. } => (*iteration, quoted_checks),
        Entry::IterationFailed { iteration, .. } => (*iteration, quoted_agent),
        _ => return vec![],
    };
    let Ok(Some(mut client)) = connect::connect_existing(place).await else { return vec![] };
    let call = Call::RalphReport(ReportParams { name: notice.worker.clone(), from: iteration });
    let report = client.call::<Report>(&call, QUICK_TIMEOUT).await.ok();
    let found = report.and_then(|report| report.iterations.into_iter().find(|it| it.iteration == iteration));
    found.map(|it| quote(&it)).unwrap_or_default()
}

/// Requests the pause, and retries while the daemon restarts. Returns whether the daemon accepted it.
pub(super) async fn pause(place: Place, name: String, events: UnboundedSender<FollowEvent>) -> bool {
    let named = || Named { name: name.clone() };
    let ask = async || -> Result<Box<WorkerView>> {
        let mut client = connect::connect(&place).await?;
        let _changed: Changed = client.call(&Call::RalphPause(named()), QUICK_TIMEOUT).await?;
        client.call(&Call::Status(named()), QUICK_TIMEOUT).await.map(Box::new)
    };
    let until = Instant::now() + QUICK_TIMEOUT;
    let mut answer = ask().await;
    while answer.as_ref().is_err_and(is_unreachable) && Instant::now() < until {
        sleep(Duration::from_millis(500)).await;
        answer = ask().await;
    }
    let taken = answer.is_ok();
    let _ = events.send(FollowEvent::Paused(answer));
    taken
}

pub(super) async fn watch(place: Place, name: String, events: UnboundedSender<FollowEvent>) {
    let mut tail: Option<OutputTail> = None;
    let mut client: Option<Client> = None;
    while !events.is_closed() {
        if client.is_none() {
            client = connect::connect_existing(&place).await.ok().flatten();
        }
        if let Some(open) = &mut client {
            let new = match &mut tail {
                Some(tail) => tail.poll(open).await,
                None => OutputTail::from_start(&name, open).await.map(|made| {
                    tail = Some(made);
                    vec![]
                }),
            };
            match new {
                Ok(lines) if lines.is_empty() => {}
                Ok(lines) => drop(events.send(FollowEvent::Printed(lines))),
                // A late answer to a call that timed out could be read as the answer to the next one.
                Err(_) => client = None,
            }
        }
        sleep(OUTPUT_POLL_INTERVAL).await;
    }
}

/// Requests the cost of the loop. Errors are ignored: the progress line then shows the former cost.
pub(super) async fn ask_spent(place: Place, name: String, events: UnboundedSender<FollowEvent>) {
    let Ok(Some(mut client)) = connect::connect_existing(&place).await else { return };
    // No iteration has this number, so the report contains only the sums.
    let call = Call::RalphReport(ReportParams { name, from: u32::MAX });
    if let Ok(report) = client.call::<Report>(&call, QUICK_TIMEOUT).await {
        let _ = events.send(FollowEvent::Spent(report.cost));
    }
}
