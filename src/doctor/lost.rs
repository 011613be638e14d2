//! Workers that are lost: their tmux server went away under them, or an earlier swarm left them.
//!
//! The daemon knows them best; without one, the records tell.

use swarm_state::engine::{Phase, Worker};
use swarm_state::format::Record;
use swarm_state::model::Status;

use super::Check;
use crate::protocol::{EARLIER_SWARM, Listing};
use crate::store::Survey;

/// Whose worker it is, which decides what can be done.
enum Kind {
    Loop,
    Plain,
    Earlier,
}

/// Those that the daemon tells of.
pub(super) fn listed(listing: &Listing) -> Vec<Check> {
    let lost = listing.workers.iter().filter(|worker| worker.status == Status::Lost);
    lost.map(|worker| {
        let kind = match &worker.metadata {
            metadata if metadata[EARLIER_SWARM] == true => Kind::Earlier,
            metadata if metadata["ralph"] == true => Kind::Loop,
            _ => Kind::Plain,
        };
        check(&worker.name, kind)
    })
    .collect()
}

/// Those that the records tell of.
pub(super) fn recorded(disk: &Survey) -> Vec<Check> {
    disk.records.iter().filter_map(|record| Some(check(record.name.as_str(), kind(record)?))).collect()
}

fn kind(record: &Record) -> Option<Kind> {
    if let Some(theirs) = &record.legacy {
        return (theirs.status == "running").then_some(Kind::Earlier);
    }
    let engine: Worker = serde_json::from_value(record.engine.clone()).ok()?;
    let kind = if engine.ralph().is_some() { Kind::Loop } else { Kind::Plain };
    (*engine.phase() == Phase::Lost).then_some(kind)
}

fn check(name: &str, kind: Kind) -> Check {
    let gone = || format!("worker '{name}' is lost: the tmux server went away under it");
    match kind {
        Kind::Loop => {
            let cure =
                format!("swarm ralph resume {name} goes on with its loop; swarm kill {name} gives it up");
            Check::warn("lost", gone(), cure)
        }
        Kind::Plain => {
            let cure = format!("swarm respawn {name} starts it again; swarm clean {name} forgets it");
            Check::warn("lost", gone(), cure)
        }
        Kind::Earlier => {
            let message = format!("worker '{name}' is of an earlier swarm, and nobody here looks after it");
            Check::warn("lost", message, format!("when it has ended there: swarm clean {name}"))
        }
    }
}
