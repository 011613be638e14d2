//! Lists lost workers: their tmux server went away, or an earlier swarm left them.
//!
//! The daemon knows them; without a daemon, the records are read.

use swarm_state::advice::start_again;
use swarm_state::engine::{Phase, Worker};
use swarm_state::format::Record;
use swarm_state::model::Status;

use super::check::Check;
use crate::protocol::Listing;
use crate::store::DiskSurvey;

/// The kind of a lost worker, which decides the fix.
enum LostKind {
    Loop,
    Plain,
    Earlier,
}

/// Lost workers from the daemon's list.
pub(super) fn listed(listing: &Listing) -> Vec<Check> {
    let lost = listing.workers.iter().filter(|worker| worker.status == Status::Lost);
    lost.map(|worker| {
        let metadata = worker.metadata();
        let kind = match (metadata.earlier_swarm, metadata.is_loop) {
            (true, _) => LostKind::Earlier,
            (false, true) => LostKind::Loop,
            (false, false) => LostKind::Plain,
        };
        check(&worker.name, kind)
    })
    .collect()
}

/// Lost workers from the records.
pub(super) fn recorded(disk: &DiskSurvey) -> Vec<Check> {
    disk.records.iter().filter_map(|record| Some(check(record.name.as_str(), kind(record)?))).collect()
}

fn kind(record: &Record) -> Option<LostKind> {
    if let Some(theirs) = &record.legacy {
        return (theirs.status == "running").then_some(LostKind::Earlier);
    }
    let engine: Worker = serde_json::from_value(record.engine.clone()).ok()?;
    let kind = if engine.ralph().is_some() { LostKind::Loop } else { LostKind::Plain };
    (*engine.phase() == Phase::Lost).then_some(kind)
}

fn check(name: &str, kind: LostKind) -> Check {
    let gone = || format!("worker '{name}' is lost: its tmux server went away");
    match kind {
        LostKind::Loop => {
            let cure = format!("{} continues its loop; swarm kill {name} ends it", start_again(name, true));
            Check::warn("lost", gone(), cure)
        }
        LostKind::Plain => {
            let cure = format!("{} starts it again; swarm clean {name} deletes it", start_again(name, false));
            Check::warn("lost", gone(), cure)
        }
        LostKind::Earlier => {
            let message =
                format!("worker '{name}' belongs to an earlier swarm, and this one does not supervise it");
            Check::warn("lost", message, format!("when it has finished there: swarm clean {name}"))
        }
    }
}
