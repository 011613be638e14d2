//! `swarm ls`: list the workers.

use chrono::{DateTime, FixedOffset, Local};
use swarm_state::advice::next_step;
use swarm_state::model::Status;
use swarm_state::outage::OutageKind;
use swarm_state::screen::printable;

use crate::cli::{Format, Ls, WhichStatus};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::worker::{age, iteration, situation};
use crate::error::Error;
use crate::out::CommandResult;
use crate::out::table;
use crate::protocol::{Call, Empty, Listing, WorkerView};
use crate::shell::join;

pub(super) async fn run(ctx: &ClientContext, args: &Ls) -> CommandResult {
    let workers = list(ctx).await?;
    let workers: Vec<WorkerView> = workers.into_iter().filter(|w| wanted(w, args)).collect();
    match args.format {
        Format::Json => ctx.out.json(&workers)?,
        Format::Names => ctx.out.lines(&names(&workers))?,
        Format::Table if workers.is_empty() => ctx.out.note("no workers"),
        Format::Table => {
            let now = Local::now().fixed_offset();
            let rows: Vec<_> = workers.iter().map(|w| row(w, now)).collect();
            let head = ["NAME", "STATUS", "ITER", "AGE", "CMD", "TAGS"];
            ctx.out.lines(&table(&head, &rows, &[4, 5, 0], ctx.out.width))?;
            warn_of_login(ctx, &workers);
        }
    }
    Ok(0)
}

/// Warns about workers that wait for a login.
pub(super) fn warn_of_login(ctx: &ClientContext, workers: &[WorkerView]) {
    for worker in workers.iter().filter(|w| waits_for_login(w)) {
        let reason = worker.reason.as_deref().map(printable).unwrap_or_default();
        ctx.out.warn(&format!("worker '{}' {reason}", worker.name));
        next_step(&situation(worker)).iter().for_each(|hint| ctx.out.hint(hint));
    }
}

/// Whether a worker waits for a login. A paused or finished loop keeps its last outage and waits for nothing.
fn waits_for_login(worker: &WorkerView) -> bool {
    worker.status == Status::Waiting && worker.outage.is_some_and(OutageKind::needs_person)
}

/// Returns all workers, and prints a warning for each problem on disk.
pub(super) async fn list(ctx: &ClientContext) -> Result<Vec<WorkerView>, Error> {
    let listing: Listing = ctx.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
    for problem in &listing.problems {
        ctx.out.warn(problem);
    }
    Ok(listing.workers)
}

fn wanted(worker: &WorkerView, args: &Ls) -> bool {
    let status = match args.status {
        WhichStatus::All => true,
        WhichStatus::Running => worker.status.is_live(),
        WhichStatus::Stopped => !worker.status.is_live(),
    };
    status && args.tag.iter().all(|tag| worker.tags.contains(tag))
}

pub(super) fn names(workers: &[WorkerView]) -> Vec<&str> {
    workers.iter().map(|w| w.name.as_str()).collect()
}

fn row(worker: &WorkerView, now: DateTime<FixedOffset>) -> Vec<String> {
    vec![
        worker.name.clone(),
        worker.status.to_string(),
        iteration(worker),
        age(&worker.started, now),
        join(&worker.cmd),
        worker.tags.join(","),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::testing::view;

    fn args(status: WhichStatus, tags: &[&str]) -> Ls {
        Ls { format: Format::Table, status, tag: tags.iter().map(|t| (*t).to_owned()).collect() }
    }

    #[test]
    fn filters_add_up() {
        let mut worker = view("a", "running", json!({}));
        worker.tags = vec!["x".into(), "y".into()];
        assert!(wanted(&worker, &args(WhichStatus::Running, &["x", "y"])));
        assert!(!wanted(&worker, &args(WhichStatus::Running, &["x", "z"])));
        assert!(!wanted(&worker, &args(WhichStatus::Stopped, &[])));
        for status in ["starting", "waiting", "backing_off", "unreachable"] {
            assert!(wanted(&view("a", status, json!({})), &args(WhichStatus::Running, &[])), "{status}");
        }
        for status in ["stopped", "failed", "lost"] {
            assert!(wanted(&view("a", status, json!({})), &args(WhichStatus::Stopped, &[])), "{status}");
        }
    }

    #[test]
    fn only_a_waiting_worker_waits_for_a_login() {
        for (status, outage, want) in [
            ("waiting", Some(OutageKind::Login), true),
            ("waiting", None, false),
            ("running", Some(OutageKind::Login), false),
            ("stopped", Some(OutageKind::Login), false),
            ("failed", Some(OutageKind::Login), false),
        ] {
            let worker = WorkerView { outage, ..view("a", status, json!({})) };
            assert_eq!(waits_for_login(&worker), want, "{status} {outage:?}");
        }
    }

    #[test]
    fn a_row_says_what_matters() {
        let mut worker =
            view("a", "running", json!({"ralph": true, "ralph_iteration": 3, "max_iterations": 9}));
        worker.cmd = vec!["sh".into(), "-c".into(), "echo 'hi'".into()];
        worker.started = "2026-01-01T10:00:00+01:00".into();
        let now = DateTime::parse_from_rfc3339("2026-01-01T10:05:30+00:00").unwrap();
        let row = row(&worker, now);
        assert_eq!(row, ["a", "running", "3/9", "1h", r#"sh -c "echo 'hi'""#, ""]);
        assert_eq!(iteration(&view("b", "running", json!({}))), "-");
        assert_eq!(age("nonsense", now), "?");
    }
}
