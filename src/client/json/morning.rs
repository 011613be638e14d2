//! The JSON of the morning view.

use serde_json::{Value, json};
use swarm_state::morning::{IterationPoint, Morning, MorningRow, Period, PeriodWork};

use super::{Fields, cause, usd};

pub(crate) fn morning(view: &Morning) -> Value {
    let quiet = view.quiet.iter().map(|quiet| json!({"name": quiet.name, "group": quiet.group}));
    let mut object = json!({
        "since": view.period.since.map(|since| since.to_rfc3339()),
        "until": view.period.until.to_rfc3339(),
        "totals": work(&view.totals()),
        "workers": view.rows.iter().map(|row| worker(row, &view.period)).collect::<Vec<_>>(),
        "quiet": quiet.collect::<Vec<_>>(),
        "removed": view.removed,
    });
    object["totals"]["workers"] = view.rows.len().into();
    object
}

fn worker(row: &MorningRow, period: &Period) -> Value {
    json!({
        "name": row.name,
        "group": row.group,
        "status": row.status,
        "reason": row.reason,
        "cause": row.cause.as_ref().map(cause),
        "next": row.next,
        "iteration": row.iteration,
        "max_iterations": row.max_iterations,
        "seconds": row.seconds(period),
        "work": row.is_loop.then(|| work(&row.work)),
        "history": row.history.iter().map(point).collect::<Vec<_>>(),
        "branch": row.branch,
        "unmerged_commits": row.unmerged.map(|unmerged| unmerged.commits),
        "uncommitted_files": row.unmerged.map(|unmerged| unmerged.uncommitted),
        "started": row.started,
        "since": row.status_since,
        "seen": row.is_seen,
    })
}

fn work(work: &PeriodWork) -> Value {
    let mut fields = Fields::of(work);
    fields.remove("cost");
    fields.set("cost_usd", work.cost.map(usd));
    fields.take()
}

fn point(point: &IterationPoint) -> Value {
    json!({
        "iteration": point.iteration,
        "ended": point.ended,
        "agent_seconds": point.agent_seconds,
        "check_seconds": point.check_seconds,
        "failed": point.failed,
        "checks_passed": point.checks_passed,
        "checks_failed": point.checks_failed,
        "cost_usd": point.cost.map(usd),
    })
}
