//! `swarm ls` and `swarm ralph ls`: the tables.

use chrono::{DateTime, FixedOffset, Local};
use serde_json::Value;
use swarm_state::advice::next_step;
use swarm_state::model::Status;
use swarm_state::notice::duration;
use swarm_state::outage::Kind;
use swarm_state::screen::printable;

use super::connect::QUICK;
use super::render::table;
use super::status::situation;
use super::{Ctx, Ended};
use crate::cli::{Format, Ls, RalphLs, WhichStatus};
use crate::error::Error;
use crate::protocol::{Call, Empty, Listing, WorkerView};

pub(super) async fn run(ctx: &Ctx, args: &Ls) -> Ended {
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
            need_login(ctx, &workers);
        }
    }
    Ok(0)
}

pub(super) async fn loops(ctx: &Ctx, args: &RalphLs) -> Ended {
    let mut workers = list(ctx).await?;
    workers.retain(is_loop);
    match args.format {
        Format::Json => ctx.out.json(&workers)?,
        Format::Names => ctx.out.lines(&names(&workers))?,
        Format::Table if workers.is_empty() => ctx.out.note("no loops"),
        Format::Table => {
            let rows: Vec<_> = workers.iter().map(loop_row).collect();
            let head = ["NAME", "LOOP", "ITER", "WORKER", "WHY"];
            ctx.out.lines(&table(&head, &rows, &[4, 0], ctx.out.width))?;
            need_login(ctx, &workers);
        }
    }
    Ok(0)
}

/// Names the workers that wait for a login.
fn need_login(ctx: &Ctx, workers: &[WorkerView]) {
    for worker in workers.iter().filter(|w| waits_for_login(w)) {
        let reason = worker.reason.as_deref().map(printable).unwrap_or_default();
        ctx.out.warn(&format!("worker '{}' {reason}", worker.name));
        next_step(&situation(worker)).iter().for_each(|hint| ctx.out.hint(hint));
    }
}

/// Whether a worker waits for a login. A paused or finished loop keeps its last outage and waits for nothing.
fn waits_for_login(worker: &WorkerView) -> bool {
    worker.status == Status::Waiting && worker.outage.is_some_and(Kind::needs_person)
}

/// All workers; what is wrong on disk is told on stderr.
async fn list(ctx: &Ctx) -> Result<Vec<WorkerView>, Error> {
    let listing: Listing = ctx.ask(&Call::Ls(Empty {}), QUICK).await?;
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

fn names(workers: &[WorkerView]) -> Vec<&str> {
    workers.iter().map(|w| w.name.as_str()).collect()
}

fn row(worker: &WorkerView, now: DateTime<FixedOffset>) -> Vec<String> {
    vec![
        worker.name.clone(),
        worker.status.to_string(),
        iteration(worker),
        age(&worker.started, now),
        shell_words(&worker.cmd),
        worker.tags.join(","),
    ]
}

fn loop_row(worker: &WorkerView) -> Vec<String> {
    vec![
        worker.name.clone(),
        loop_status(worker).to_owned(),
        iteration(worker),
        worker.status.to_string(),
        worker.reason.clone().unwrap_or_default(),
    ]
}

/// Whether `worker` is a loop.
pub(super) fn is_loop(worker: &WorkerView) -> bool {
    worker.metadata["ralph"] == Value::Bool(true)
}

/// The document's word for how the loop is; empty for a plain worker.
pub(super) fn loop_status(worker: &WorkerView) -> &str {
    worker.metadata["status"].as_str().unwrap_or_default()
}

/// `3/10` for a loop.
pub(super) fn iteration(worker: &WorkerView) -> String {
    let number = |key: &str| worker.metadata[key].as_u64();
    match (is_loop(worker), number("ralph_iteration"), number("max_iterations")) {
        (true, Some(n), Some(max)) => format!("{n}/{max}"),
        (true, Some(n), None) => n.to_string(),
        _ => "-".to_owned(),
    }
}

/// How long ago `started` (RFC 3339) was, in its largest unit: `42s`, `5m`, `3h`, `2d`.
pub(super) fn age(started: &str, now: DateTime<FixedOffset>) -> String {
    let Ok(started) = DateTime::parse_from_rfc3339(started) else { return "?".to_owned() };
    let seconds = u64::try_from((now - started).num_seconds()).unwrap_or(0);
    match seconds {
        0..60 => duration(seconds, ""),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The command as one would type it.
pub(super) fn shell_words(cmd: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    cmd.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::view;
    use super::*;

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
            ("waiting", Some(Kind::Login), true),
            ("waiting", None, false),
            ("running", Some(Kind::Login), false),
            ("stopped", Some(Kind::Login), false),
            ("failed", Some(Kind::Login), false),
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
        assert_eq!(row, ["a", "running", "3/9", "1h", r"sh -c 'echo '\''hi'\'''", ""]);
        assert_eq!(iteration(&view("b", "running", json!({}))), "-");
        assert_eq!(age("nonsense", now), "?");
    }
}
