//! The connections of `swarm ui` to the daemon.
//!
//! One task follows the notices: it requests each worker that something happened to, and from time to time all of
//! them, which also shows whether the daemon answers. Another one loads the pages of the selected worker. Both connect
//! again by themselves. A daemon that was stopped on purpose is not started: it has removed its socket. Each remote
//! host has two such tasks too. The name of a remote worker is `HOST/NAME` in the whole interface, which every verb
//! accepts.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use chrono::Local;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::model::{Panel, UiEffect, UiEvent};
use crate::client::connect::{self, Client, QUICK_TIMEOUT, SLOW_TIMEOUT};
use crate::client::fleet::HostListing;
use crate::client::worker::{full_name, short_name};
use crate::error::{Error, ErrorCode, Result};
use crate::paths::Paths;
use crate::protocol::{
    Call, Empty, Lines, Listing, LogsParams, Named, PeekParams, Peeked, Report, ReportParams, Snapshot,
    SubscribeParams, WorkerHost, WorkerView,
};
use crate::remote::Place;

/// How often all workers are requested.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// How long the daemon may take for an answer from memory before it counts as hanging.
const UI_ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The delay between notices and the request of their workers, in which more notices may arrive.
const COLLECT_DELAY: Duration = Duration::from_millis(80);

/// More changed workers than this are requested with all others.
const MAX_SINGLE_REQUESTS: usize = 8;

const CONNECT_DELAY: Duration = Duration::from_millis(500);

pub(super) struct DaemonLink {
    questions: UnboundedSender<UiEffect>,
    /// The same for each remote host, by its name.
    hosts: BTreeMap<String, UnboundedSender<UiEffect>>,
}

impl DaemonLink {
    /// Connects, and starts the daemon if none runs. Connects to the remote hosts in the background.
    pub(super) async fn open(
        paths: Paths,
        remote: Vec<Place>,
        events: UnboundedSender<UiEvent>,
    ) -> Result<Self> {
        let client = connect::connect(&(&paths).into()).await?;
        let questions = start_answers(Place::from(&paths), &events);
        let mut hosts = BTreeMap::new();
        for place in remote {
            let name = place.host_name().map(ToString::to_string).unwrap_or_default();
            hosts.insert(name, start_answers(place.clone(), &events));
            tokio::spawn(watch_host(place, events.clone()));
        }
        tokio::spawn(watch(paths, client, events));
        Ok(Self { questions, hosts })
    }

    /// Sends a question to the daemon of the worker's machine. The answer is an event.
    pub(super) fn ask(&self, question: UiEffect) {
        let name = match &question {
            UiEffect::Load(name, ..) | UiEffect::LoadReport(name) | UiEffect::Seen(name) => name.as_str(),
            _ => return,
        };
        let remote = name.split_once('/').and_then(|(host, _)| self.hosts.get(host));
        let _ = remote.unwrap_or(&self.questions).send(question);
    }
}

fn start_answers(place: Place, events: &UnboundedSender<UiEvent>) -> UnboundedSender<UiEffect> {
    let (questions, asked) = mpsc::unbounded_channel();
    tokio::spawn(answer(place, asked, events.clone()));
    questions
}

/// Follows the daemon, and connects again when that fails.
async fn watch(paths: Paths, client: Client, events: UnboundedSender<UiEvent>) {
    let mut client = Ok(client);
    loop {
        let followed = match client {
            Ok(client) => follow(&paths, client, &events).await,
            Err(error) => Err(error),
        };
        let Err(error) = followed;
        let message = match error.code {
            ErrorCode::Timeout => "the daemon does not answer".to_owned(),
            _ => error.message,
        };
        if events.send(UiEvent::Down(message)).is_err() {
            return;
        }
        sleep(CONNECT_DELAY).await;
        client = connection(&paths).await;
    }
}

async fn connection(paths: &Paths) -> Result<Client> {
    match connect::connect_existing(&paths.into()).await? {
        Some(client) => Ok(client),
        // A daemon that was killed leaves its socket.
        None if paths.socket().exists() => connect::connect(&paths.into()).await,
        None => Err(Error::new(ErrorCode::NoDaemon, "the daemon is stopped (swarm daemon start)")),
    }
}

async fn follow(paths: &Paths, mut notices: Client, events: &UnboundedSender<UiEvent>) -> Result<Infallible> {
    let call = Call::Subscribe(SubscribeParams::default());
    let snapshot: Snapshot = notices.call(&call, UI_ANSWER_TIMEOUT).await?;
    let mut calls = connection(paths).await?;
    let closed = || Error::new(ErrorCode::Internal, "the interface has ended");
    let send = |event| events.send(event).map_err(|_| closed());
    send(UiEvent::Workers(snapshot.workers))?;
    let mut refresh = interval(REFRESH_INTERVAL);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
    refresh.reset();
    let mut changed: BTreeSet<String> = BTreeSet::new();
    let mut collected = Instant::now();
    loop {
        tokio::select! {
            notice = notices.notice() => {
                if changed.is_empty() {
                    collected = Instant::now() + COLLECT_DELAY;
                }
                changed.insert(notice?.worker);
                continue;
            }
            () = sleep_until(collected), if !changed.is_empty() => {}
            _ = refresh.tick() => changed.clear(),
        }
        if changed.is_empty() || changed.len() > MAX_SINGLE_REQUESTS {
            let listing: Listing = calls.call(&Call::Ls(Empty {}), UI_ANSWER_TIMEOUT).await?;
            changed.clear();
            send(UiEvent::Workers(listing.workers))?;
        }
        for name in std::mem::take(&mut changed) {
            let call = Call::Status(Named { name: name.clone() });
            match calls.call::<WorkerView>(&call, UI_ANSWER_TIMEOUT).await {
                Ok(worker) => send(UiEvent::Worker(Box::new(worker)))?,
                Err(error) if error.code == ErrorCode::NotFound => send(UiEvent::Gone(name))?,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Answers questions, one after the other. Each failed answer closes the connection.
async fn answer(place: Place, mut asked: UnboundedReceiver<UiEffect>, events: UnboundedSender<UiEvent>) {
    let mut client: Option<Client> = None;
    while let Some(question) = asked.recv().await {
        let event = match one_answer(&place, &mut client, &question).await {
            Ok(event) => event,
            Err(error) => {
                let is_lost =
                    matches!(error.code, ErrorCode::NoDaemon | ErrorCode::Timeout | ErrorCode::Unreachable);
                client = client.filter(|_| !is_lost);
                match question {
                    UiEffect::Load(name, panel, _) => Some(UiEvent::Page(name, panel, vec![error.message])),
                    _ => None,
                }
            }
        };
        if event.is_some_and(|event| events.send(event).is_err()) {
            return;
        }
    }
}

async fn one_answer(
    place: &Place,
    client: &mut Option<Client>,
    question: &UiEffect,
) -> Result<Option<UiEvent>> {
    let client = match client {
        Some(client) => client,
        // Only the other task starts a daemon.
        None => client.insert(connect::require_existing(place).await?),
    };
    Ok(match question.clone() {
        UiEffect::Load(name, panel, lines) => {
            let (short, lines) = (short_name(&name).to_owned(), u32::from(lines));
            let text = if panel == Panel::Log {
                let lines = Some(lines);
                let params = LogsParams { name: short, lines, history: true, ..LogsParams::default() };
                client.call::<Lines>(&Call::Logs(params), QUICK_TIMEOUT).await?.lines
            } else {
                let call = Call::Peek(PeekParams { name: short, lines, styled: true });
                client.call::<Peeked>(&call, QUICK_TIMEOUT).await?.lines
            };
            Some(UiEvent::Page(name, panel, text))
        }
        UiEffect::LoadReport(name) => {
            // The first page has the first iterations; later pages follow.
            let short = short_name(&name);
            let mut report = report_page(client, short, 1).await?;
            while let Some(next) = report.next.take() {
                let more = report_page(client, short, next).await?;
                report.iterations.extend(more.iterations);
                report.next = more.next;
            }
            report.name = name;
            Some(UiEvent::Report(Box::new(report)))
        }
        UiEffect::Seen(name) => {
            let name = short_name(&name).to_owned();
            let _: Empty = client.call(&Call::Seen(Named { name: name.clone() }), QUICK_TIMEOUT).await?;
            let worker: WorkerView = client.call(&Call::Status(Named { name }), QUICK_TIMEOUT).await?;
            let host = place.host_name().map(|name| WorkerHost { name: name.clone(), silent_for: None });
            Some(UiEvent::Worker(Box::new(qualified(WorkerView { host, ..worker }))))
        }
        _ => None,
    })
}

async fn report_page(client: &mut Client, name: &str, from: u32) -> Result<Report> {
    client.call(&Call::RalphReport(ReportParams { name: name.to_owned(), from }), SLOW_TIMEOUT).await
}

/// The delay between two requests to a host that answers.
const HOST_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The same for a host that does not answer.
const HOST_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// How long a host may take before its rows are marked. The request goes on.
const MARK_DELAY: Duration = Duration::from_secs(3);

/// Requests the workers of a remote host from time to time. A host that does not answer delays nothing but its own
/// rows: they stay, and are marked.
async fn watch_host(place: Place, events: UnboundedSender<UiEvent>) {
    let no_answer = || Error::new(ErrorCode::Unreachable, "it does not answer");
    let mut client = None;
    // The workers of its last answer, which another command may have received.
    let mut known = HostListing::unreachable(place.clone(), no_answer());
    loop {
        let asked = request_workers(&mut client, &place);
        tokio::pin!(asked);
        let answer = match timeout(MARK_DELAY, &mut asked).await {
            Ok(answer) => answer,
            Err(_) => {
                known = known.silent(no_answer());
                if !report_host(&known, &place, &events) {
                    return;
                }
                asked.await
            }
        };
        known = match answer {
            Ok(listing) => HostListing::of_answer(place.clone(), listing),
            Err(error) => known.silent(error),
        };
        known.keep();
        if !report_host(&known, &place, &events) {
            return;
        }
        sleep(if known.error.is_some() { HOST_RETRY_INTERVAL } else { HOST_POLL_INTERVAL }).await;
    }
}

/// Requests the workers, on the connection of the last request if it still exists.
async fn request_workers(client: &mut Option<Client>, place: &Place) -> Result<Listing> {
    let mut connected = match client.take() {
        Some(connected) => connected,
        None => connect::connect(place).await?,
    };
    let listing = connected.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
    *client = Some(connected);
    Ok(listing)
}

/// Sends the state of a host. False if the interface has ended.
fn report_host(listing: &HostListing, place: &Place, events: &UnboundedSender<UiEvent>) -> bool {
    let Some(host) = place.host_name() else { return false };
    let now = Local::now().fixed_offset();
    let silent_for = listing.error.is_some().then(|| listing.silent_for(now));
    let workers = listing.clone().into_workers(now).into_iter().map(qualified).collect();
    events.send(UiEvent::Host(host.clone(), workers, silent_for)).is_ok()
}

/// The worker with its name on any machine.
pub(super) fn qualified(worker: WorkerView) -> WorkerView {
    WorkerView { name: full_name(&worker), ..worker }
}
