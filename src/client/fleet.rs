//! All hosts at once: this machine and those of the settings.
//!
//! Every host is asked at the same time. A host that does not answer within [`FLEET_TIMEOUT`] keeps the rows of its
//! last answer, which are marked. Used by `ls --all-hosts`, `--on any`, `host ls` and `swarm ui`, which asks each host
//! again and again.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, Local};
use serde::{Deserialize, Serialize};
use swarm_state::host::{HostName, LOCAL};
use swarm_state::model::Status;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::connect::{self, QUICK_TIMEOUT};
use super::context::ClientContext;
use super::spawn_params::load_settings;
use super::worker::age;
use crate::error::{Error, ErrorCode, Result};
use crate::files::write_unsynced;
use crate::paths::{Paths, private_dir};
use crate::protocol::{Call, Empty, Listing, WorkerHost, WorkerView};
use crate::remote::{Place, find};
use crate::settings::Settings;

/// How long the hosts may take to answer, all together.
const FLEET_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct HostListing {
    pub(super) place: Place,
    /// The workers; those of the last answer if the host does not answer now.
    pub(super) workers: Vec<WorkerView>,
    pub(super) problems: Vec<String>,
    /// Why the host does not answer; `None` if it does.
    pub(crate) error: Option<Error>,
    /// The time of the last answer.
    pub(super) answered: Option<DateTime<FixedOffset>>,
}

/// The last answer of a host, as a file.
#[derive(Serialize, Deserialize)]
struct LastAnswer {
    at: DateTime<FixedOffset>,
    workers: Vec<WorkerView>,
}

impl HostListing {
    /// The host's name; `local` for this machine.
    pub(super) fn name(&self) -> &str {
        self.place.host_name().map_or(LOCAL, |name| name.as_str())
    }

    /// `unreachable for 4m`; `unreachable` if the host has never answered.
    pub(crate) fn silent_for(&self, now: DateTime<FixedOffset>) -> String {
        let age = self.answered.map(|at| format!(" for {}", age(&at.to_rfc3339(), now)));
        format!("unreachable{}", age.unwrap_or_default())
    }

    /// The workers, marked with their host and, if it does not answer, as unreachable.
    pub(crate) fn into_workers(self, now: DateTime<FixedOffset>) -> Vec<WorkerView> {
        let silent_for = self.error.is_some().then(|| self.silent_for(now));
        let host = self
            .place
            .host_name()
            .map(|name| WorkerHost { name: name.clone(), silent_for: silent_for.clone() });
        let mark = |mut worker: WorkerView| {
            worker.host.clone_from(&host);
            // A worker that has ended does not change while its host is away.
            if let Some(silent_for) = silent_for.as_ref().filter(|_| !worker.status.is_finished()) {
                worker.status = Status::Unreachable;
                worker.cause = None;
                worker.reason = Some(silent_for.clone());
            }
            worker
        };
        self.workers.into_iter().map(mark).collect()
    }

    pub(crate) fn of_answer(place: Place, listing: Listing) -> Self {
        let answered = Some(Local::now().fixed_offset());
        Self { place, workers: listing.workers, problems: listing.problems, error: None, answered }
    }

    /// The last answer of a host that does not answer now.
    pub(crate) fn unreachable(place: Place, error: Error) -> Self {
        let last = place.last_answer().and_then(|file| std::fs::read(file).ok());
        let last = last.and_then(|bytes| serde_json::from_slice::<LastAnswer>(&bytes).ok());
        let (workers, answered) = last.map_or((vec![], None), |last| (last.workers, Some(last.at)));
        Self { place, workers, problems: vec![], error: Some(error), answered }
    }

    /// The same workers of a host that no longer answers.
    pub(crate) fn silent(self, error: Error) -> Self {
        Self { error: Some(error), ..self }
    }

    /// Keeps the answer of a remote host. A failure only costs rows of a later list.
    pub(crate) fn keep(&self) {
        let (Some(file), Some(at), None) = (self.place.last_answer(), self.answered, &self.error) else {
            return;
        };
        let answer = LastAnswer { at, workers: self.workers.clone() };
        let is_ready = file.parent().is_some_and(|dir| private_dir(dir).is_ok());
        if let Some(bytes) = serde_json::to_vec(&answer).ok().filter(|_| is_ready) {
            let _ = write_unsynced(&file, &bytes);
        }
    }
}

pub(crate) fn remote_places(paths: &Paths, settings: Settings) -> Vec<Place> {
    settings.hosts.into_iter().map(|(name, spec)| Place::remote(paths.clone(), name, spec)).collect()
}

/// Asks this machine and all hosts of the settings. This machine comes first.
pub(super) async fn listings(ctx: &ClientContext) -> Result<Vec<HostListing>> {
    let paths = Paths::from_env()?;
    let remote = remote_places(&paths, load_settings(ctx)?);
    let places: Vec<Place> = std::iter::once(Place::from(&paths)).chain(remote).collect();
    let deadline = Instant::now() + FLEET_TIMEOUT;
    let mut tasks = JoinSet::new();
    for (index, place) in places.iter().cloned().enumerate() {
        tasks.spawn(async move { (index, timeout_at(deadline, ask(&place)).await) });
    }
    let mut answers: Vec<Option<Result<Listing>>> = places.iter().map(|_| None).collect();
    while let Some(done) = tasks.join_next().await {
        if let Ok((index, answer)) = done {
            answers[index] = answer.ok();
        }
    }
    let listing = |(place, answer): (Place, Option<Result<Listing>>)| match answer {
        Some(Ok(answer)) => Ok(HostListing::of_answer(place, answer)),
        // An error of this machine is the command's own.
        Some(Err(error)) if place.host().is_none() => Err(error),
        Some(Err(error)) => Ok(HostListing::unreachable(place, error)),
        None => {
            let message = format!("it did not answer within {} s", FLEET_TIMEOUT.as_secs());
            Ok(HostListing::unreachable(place, Error::new(ErrorCode::Unreachable, message)))
        }
    };
    let listings: Vec<HostListing> = places.into_iter().zip(answers).map(listing).collect::<Result<_>>()?;
    listings.iter().for_each(HostListing::keep);
    Ok(listings)
}

pub(super) fn named_place(ctx: &ClientContext, name: &HostName) -> Result<Place> {
    find(&Paths::from_env()?, &load_settings(ctx)?.hosts, name)
}

async fn ask(place: &Place) -> Result<Listing> {
    let mut client = connect::connect(place).await?;
    client.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await
}

/// The place with the fewest live workers, this machine included. Prints which one it is.
pub(super) async fn least_busy(ctx: &ClientContext) -> Result<Place> {
    let live = |listing: &HostListing| listing.workers.iter().filter(|w| w.status.is_live()).count();
    let listings = listings(ctx).await?;
    // Slurm places its jobs by itself.
    let is_slurm = |listing: &HostListing| listing.place.host().is_some_and(|host| host.spec.slurm.is_some());
    let reachable = listings.into_iter().filter(|listing| listing.error.is_none() && !is_slurm(listing));
    // The first of equals: this machine, then the hosts by name.
    let chosen = reachable.min_by_key(live);
    let Some(chosen) = chosen else {
        return Err(Error::new(ErrorCode::Unreachable, "no host answers").hint("swarm host ls"));
    };
    let count = swarm_state::notice::counted(live(&chosen), "live worker");
    ctx.out.note(&format!("swarm: on host {} ({count})", chosen.name()));
    Ok(chosen.place)
}
