//! Reads fields of a worker's view, and formats them for tables and pages.

use chrono::{DateTime, FixedOffset, Local};
use swarm_state::advice::Situation;
use swarm_state::cause::Cause;
use swarm_state::model::LoopStatus;
use swarm_state::notice::duration;
use swarm_state::profiles::YES_OR_NO;
use swarm_state::screen::printable;

use crate::protocol::{TaskListView, WorkerView};

/// The worker's name on any machine: `gpu1/fix`, and `fix` on this one.
pub(crate) fn full_name(worker: &WorkerView) -> String {
    match &worker.host {
        Some(host) => format!("{}/{}", host.name, worker.name),
        None => worker.name.clone(),
    }
}

/// The name on the worker's own machine: `fix` for `gpu1/fix`.
pub(crate) fn short_name(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

pub(crate) fn is_loop(worker: &WorkerView) -> bool {
    worker.metadata().is_loop
}

/// Whether it is a paused loop. Until its agent ends, a loop counts as running.
pub(super) fn is_paused(worker: &WorkerView) -> bool {
    is_loop(worker) && worker.metadata().status == Some(LoopStatus::Paused)
}

/// Formats a loop's iteration as `3/10`; `-` for a plain worker.
pub(crate) fn iteration(worker: &WorkerView) -> String {
    let metadata = worker.metadata();
    match (metadata.is_loop, metadata.iteration, metadata.max_iterations) {
        (true, Some(n), Some(max)) => format!("{n}/{max}"),
        (true, Some(n), None) => n.to_string(),
        _ => "-".to_owned(),
    }
}

/// Formats the work on a task list as `review US-001`, and the stories as `1/3 done`; `None` before the first
/// iteration.
pub(super) fn story(tasks: &TaskListView) -> Option<(String, String)> {
    let (mode, story) = (tasks.mode?, printable(tasks.story.as_ref()?));
    Some((format!("{mode} {story}"), format!("{}/{} done", tasks.done?, tasks.total?)))
}

/// The cause in a few words; the text of a later daemon's cause that is unknown here. Without a cause, the story that
/// the loop works on.
pub(crate) fn brief_cause(worker: &WorkerView) -> String {
    match &worker.cause {
        Some(Cause::NeedsPerson { text, .. }) if text == YES_OR_NO => {
            let is_question = |line: &&String| line.contains('?');
            let asked = worker.screen.iter().rfind(is_question).or(worker.screen.last());
            asked.map_or_else(|| text.clone(), |line| format!("asks: {}", line.trim()))
        }
        Some(Cause::Quota { window, used, until, .. }) => {
            let (at, left) = (until.with_timezone(&Local), time_left(*until, Local::now().fixed_offset()));
            format!("until {} ({left}): {used} % of {window}", at.format("%H:%M"))
        }
        Some(cause) => in_own_zone(cause).brief(worker.status),
        None if worker.reason.is_none() && worker.status.is_live() => {
            let work = worker.tasks.as_ref().and_then(story);
            work.map_or_else(String::new, |(story, count)| format!("{story} ({count})"))
        }
        None => worker.reason.clone().unwrap_or_default(),
    }
}

/// When a worker that waits for a reset continues, and the wait until then; `None` if unknown.
pub(super) fn reset(cause: Option<&Cause>) -> Option<String> {
    let (Cause::Quota { until, .. } | Cause::Outage { until: Some(until), .. }) = cause? else { return None };
    let at = until.with_timezone(&Local);
    Some(format!("{} (in {})", at.format("%Y-%m-%d %H:%M"), time_left(*until, Local::now().fixed_offset())))
}

/// Formats the time until `at`, in its two largest units: `42s`, `5m 10s`, `2h 5m`, `3d 4h`.
pub(crate) fn time_left(at: DateTime<FixedOffset>, now: DateTime<FixedOffset>) -> String {
    let seconds = u64::try_from((at - now).num_seconds()).unwrap_or(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => duration(seconds, " "),
        (0, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// The cause with its time in this client's time zone; the daemon may have another.
fn in_own_zone(cause: &Cause) -> Cause {
    let mut cause = cause.clone();
    if let Cause::Outage { until: Some(until), .. }
    | Cause::Held { since: until, .. }
    | Cause::Quota { until, .. } = &mut cause
    {
        *until = until.with_timezone(&Local).fixed_offset();
    }
    cause
}

/// Formats an RFC 3339 time as `2026-01-01 10:00:00` in this client's time zone. Returns another text as it is.
pub(super) fn local_time(text: &str) -> String {
    let at = DateTime::parse_from_rfc3339(text).map(|at| at.with_timezone(&Local));
    at.map_or_else(|_| printable(text), |at| at.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// Formats how long ago `started` (RFC 3339) was, in its largest unit: `42s`, `5m`, `3h`, `2d`.
pub(crate) fn age(started: &str, now: DateTime<FixedOffset>) -> String {
    let Ok(started) = DateTime::parse_from_rfc3339(started) else { return "?".to_owned() };
    let seconds = u64::try_from((now - started).num_seconds()).unwrap_or(0);
    match seconds {
        0..60 => duration(seconds, ""),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Formats lines of output, indented and without control characters.
pub(super) fn quoted(lines: &[String]) -> impl Iterator<Item = String> {
    lines.iter().map(|line| format!("  | {}", printable(line)))
}

pub(super) fn situation(worker: &WorkerView) -> Situation<'_> {
    Situation {
        name: &worker.name,
        status: worker.status,
        is_loop: is_loop(worker),
        is_paused: is_paused(worker),
        cause: worker.cause.as_ref(),
        raise: worker.raise.as_deref(),
    }
}
