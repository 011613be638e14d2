//! The remote hosts of `swarm ui`. A task for each host requests its workers from time to time.
//!
//! The name of a remote worker is `HOST/NAME` in the whole interface, which every verb accepts. A host that does not
//! answer delays nothing but its own rows: they stay, and are marked.

use chrono::Local;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Duration, sleep, timeout};

use super::model::UiEvent;
use crate::client::connect::{self, Client, QUICK_TIMEOUT};
use crate::client::fleet::HostListing;
use crate::client::worker::full_name;
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Call, Empty, Listing, WorkerView};
use crate::remote::Place;

/// The delay between two requests to a host that answers.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The same for a host that does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// How long a host may take before its rows are marked. The request goes on.
const MARK_DELAY: Duration = Duration::from_secs(3);

pub(super) async fn watch(place: Place, events: UnboundedSender<UiEvent>) {
    let no_answer = || Error::new(ErrorCode::Unreachable, "it does not answer");
    let mut client = None;
    // The workers of its last answer, which another command may have received.
    let mut known = HostListing::unreachable(place.clone(), no_answer());
    loop {
        let asked = ask(&mut client, &place);
        tokio::pin!(asked);
        let answer = match timeout(MARK_DELAY, &mut asked).await {
            Ok(answer) => answer,
            Err(_) => {
                known = known.silent(no_answer());
                if !report(&known, &place, &events) {
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
        if !report(&known, &place, &events) {
            return;
        }
        sleep(if known.error.is_some() { RETRY_INTERVAL } else { POLL_INTERVAL }).await;
    }
}

/// Requests the workers, on the connection of the last request if it still exists.
async fn ask(client: &mut Option<Client>, place: &Place) -> Result<Listing> {
    let mut connected = match client.take() {
        Some(connected) => connected,
        None => connect::connect(place).await?,
    };
    let listing = connected.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
    *client = Some(connected);
    Ok(listing)
}

/// Sends the state of a host. False if the interface has ended.
fn report(listing: &HostListing, place: &Place, events: &UnboundedSender<UiEvent>) -> bool {
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
