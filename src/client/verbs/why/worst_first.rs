//! Selects the workers that `why` and `report` cover without a name: the worst first, or only those with events since a
//! time.

use std::collections::BTreeSet;

use chrono::{DateTime, FixedOffset};
use swarm_state::model::Status;

use crate::client::context::ClientContext;
use crate::client::subscription::{DurableSubscription, Update, daemon_stopped};
use crate::client::verbs::ls::list;
use crate::error::Result;
use crate::protocol::WorkerView;

/// Returns the workers, the worst first. With `since`, only those with events since then.
pub(crate) async fn worst_first(
    ctx: &ClientContext,
    since: Option<DateTime<FixedOffset>>,
) -> Result<Vec<WorkerView>> {
    let mut workers = list(ctx).await?;
    if let (Some(since), false) = (since, workers.is_empty()) {
        let changed = changed(ctx, since).await?;
        workers.retain(|worker| changed.contains(&worker.name));
        if workers.is_empty() {
            ctx.out.note(&format!("no worker has changed since {}", since.format("%Y-%m-%d %H:%M")));
        }
    } else if workers.is_empty() {
        ctx.out.note("no workers");
    }
    workers.sort_by_key(|worker| rank(worker.status));
    Ok(workers)
}

/// Returns the names of the workers with events since a time. Warns if events since then are missing.
async fn changed(ctx: &ClientContext, since: DateTime<FixedOffset>) -> Result<BTreeSet<String>> {
    let mut subscription = DurableSubscription::new(ctx.place()?, &BTreeSet::new(), Some(0));
    let (mut names, mut missing, mut left) = (BTreeSet::new(), vec![], 0);
    // The number of the last notice before that time.
    let mut before = 0;
    loop {
        match subscription.next().await? {
            Update::Snapshot(snapshot) => (left, missing) = (snapshot.replayed, snapshot.missing),
            Update::DaemonStopped => return Err(daemon_stopped()),
            Update::Notice(notice) => {
                left = left.saturating_sub(1);
                if DateTime::parse_from_rfc3339(&notice.at).is_ok_and(|at| at >= since) {
                    names.insert(notice.worker);
                } else {
                    before = notice.seq;
                }
            }
        }
        if left == 0 {
            break;
        }
    }
    if missing.iter().any(|gap| gap.after >= before) {
        ctx.out.warn("events are missing, so workers may be missing here; to show all, omit --since");
    }
    Ok(names)
}

/// Returns the position of a status in the list: the worst first.
pub(super) fn rank(status: Status) -> u8 {
    match status {
        Status::Failed => 0,
        Status::Lost => 1,
        Status::Unreachable => 2,
        Status::Waiting => 3,
        Status::Retrying => 4,
        Status::Paused => 5,
        Status::Killed => 6,
        Status::Starting | Status::Running => 7,
        Status::Done => 8,
    }
}
