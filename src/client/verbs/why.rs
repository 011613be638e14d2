//! `swarm why`: explain the state of one worker or of all, and suggest the next step.

use std::collections::BTreeSet;

use chrono::{DateTime, FixedOffset};
use swarm_state::model::Status;

use crate::cli::{PageFormat, Why};
use crate::client::batch::BatchErrors;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::report::fetch;
use crate::client::subscription::{DurableSubscription, Update, daemon_stopped};
use crate::client::verbs::ls::list;
use crate::client::worker::is_loop;
use crate::error::Result;
use crate::out::{CommandResult, for_hosts};
use crate::protocol::{Call, Named, WorkerView};

mod loop_page;
mod overview;
mod plain;

use overview::facts;

pub(super) async fn run(ctx: &ClientContext, args: &Why) -> CommandResult {
    let Some(name) = args.name.as_ref().map(ToString::to_string) else {
        let workers = worst_first(ctx, args.since).await?;
        return print(ctx, &workers, args).await;
    };
    let worker: WorkerView = ctx.call(&Call::Status(Named { name: name.clone() }), QUICK_TIMEOUT).await?;
    if args.format == PageFormat::Json {
        return print(ctx, &[worker], args).await;
    }
    let lines = if is_loop(&worker) {
        loop_page::page(&fetch(ctx, &name).await?)
    } else {
        plain::page(ctx, &worker).await?
    };
    ctx.out.lines(&for_hosts(&lines))?;
    ctx.report_seen(&name, worker.status.is_finished()).await;
    Ok(0)
}

/// Prints the blocks of the workers, or their objects: an array, unless one worker was named.
async fn print(ctx: &ClientContext, workers: &[WorkerView], args: &Why) -> CommandResult {
    let mut errors = BatchErrors::new(ctx.out, args.format, false);
    let mut objects = vec![];
    let report_call = match args.format {
        PageFormat::Json => overview::last_iterations,
        PageFormat::Text => overview::report_call,
    };
    for (worker, facts) in workers.iter().zip(facts(ctx, workers, report_call).await?) {
        match args.format {
            PageFormat::Json => objects.push(overview::object(worker, &facts)),
            PageFormat::Text => {
                ctx.out.lines(&for_hosts(&overview::block(worker, &facts, ctx.out)))?;
            }
        }
        if let Some(error) = facts.error {
            errors.add_text(&worker.name, error)?;
        }
    }
    match (&objects[..], args.format) {
        ([object], PageFormat::Json) if args.name.is_some() => ctx.out.json(object)?,
        (objects, PageFormat::Json) => ctx.out.json_list(objects)?,
        (_, PageFormat::Text) => {}
    }
    errors.end()
}

/// Returns the workers, the worst first. With `since`, only those with events since then.
async fn worst_first(ctx: &ClientContext, since: Option<DateTime<FixedOffset>>) -> Result<Vec<WorkerView>> {
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

fn rank(status: Status) -> u8 {
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
