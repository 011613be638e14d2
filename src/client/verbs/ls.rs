//! `swarm ls`: list the workers.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, Local};
use swarm_state::advice::next_step;
use swarm_state::model::Status;
use swarm_state::outage::OutageKind;
use swarm_state::screen::printable;

use crate::cli::{Format, Ls, WhichStatus};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::fleet::listings;
use crate::client::json;
use crate::client::worker::{age, brief_cause, full_name, iteration, situation};
use crate::error::Error;
use crate::out::{CommandResult, Out, table};
use crate::protocol::{Call, Empty, Listing, WorkerView};
use crate::shell::join;

const WATCH_INTERVAL: Duration = Duration::from_secs(2);

pub(super) async fn run(ctx: &ClientContext, args: &Ls) -> CommandResult {
    if !args.watch {
        return print(ctx, args).await;
    }
    if !Out::is_terminal() {
        let error = Error::invalid("--watch needs a terminal");
        return Err(error.hint("in a script, read the changes: swarm events --follow --format json").into());
    }
    loop {
        // Moves to the top left corner and clears the screen.
        ctx.out.line("\x1b[H\x1b[2J")?;
        print(ctx, args).await?;
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

async fn print(ctx: &ClientContext, args: &Ls) -> CommandResult {
    let (workers, silent) = if args.all_hosts { all_hosts(ctx).await? } else { (list(ctx).await?, vec![]) };
    let workers: Vec<WorkerView> = workers.into_iter().filter(|w| wanted(w, args)).collect();
    print_list(ctx, args.format, &workers, &silent, "no workers")
}

/// Prints workers and silent hosts; the note `none` instead of an empty table.
pub(super) fn print_list(
    ctx: &ClientContext,
    format: Format,
    workers: &[WorkerView],
    silent: &[SilentHost],
    none: &str,
) -> CommandResult {
    match format {
        Format::Json => ctx.out.json_list(&json::workers(workers))?,
        Format::Names => ctx.out.lines(&names(workers))?,
        Format::Table if workers.is_empty() && silent.is_empty() => ctx.out.note(none),
        Format::Table => {
            ctx.out.lines(&worker_table(workers, silent, ctx.out.width, Local::now().fixed_offset()))?;
            warn_of_login(ctx, workers);
        }
    }
    Ok(0)
}

fn warn_of_login(ctx: &ClientContext, workers: &[WorkerView]) {
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
    listing.problems.iter().for_each(|problem| ctx.out.warn(problem));
    Ok(listing.workers.into_iter().map(|worker| ctx.on_host(worker)).collect())
}

/// A host without known workers that does not answer.
pub(super) struct SilentHost {
    name: String,
    silent_for: String,
}

/// Returns the workers of this machine and of all hosts, and the hosts that neither answer nor have known workers.
/// Prints a warning for each host that does not answer.
async fn all_hosts(ctx: &ClientContext) -> Result<(Vec<WorkerView>, Vec<SilentHost>), Error> {
    let (mut workers, mut silent) = (vec![], vec![]);
    let now = Local::now().fixed_offset();
    for listing in listings(ctx).await? {
        listing.problems.iter().for_each(|problem| ctx.out.warn(&format!("{}: {problem}", listing.name())));
        if let Some(error) = &listing.error {
            let (name, silent_for) = (listing.name().to_owned(), listing.silent_for(now));
            ctx.out.warn(&format!("{name} is {silent_for}: {}", error.message));
            if listing.workers.is_empty() {
                silent.push(SilentHost { name, silent_for });
            }
        }
        workers.extend(listing.into_workers(now));
    }
    Ok((workers, silent))
}

fn wanted(worker: &WorkerView, args: &Ls) -> bool {
    let status = match args.status {
        WhichStatus::All => true,
        WhichStatus::Live => worker.status.is_live(),
        WhichStatus::Finished => worker.status.is_finished(),
        WhichStatus::One(status) => worker.status == status,
    };
    status && args.tag.iter().all(|tag| worker.tags.contains(tag))
}

fn names(workers: &[WorkerView]) -> Vec<String> {
    workers.iter().map(full_name).collect()
}

/// The width from which a table has the columns that few people need.
const WIDE_COLUMNS: usize = 120;

/// Formats the table of `ls` and `ralph ls`, with a row for each silent host. Cuts a wide table at the command first.
fn worker_table(
    workers: &[WorkerView],
    silent: &[SilentHost],
    width: Option<usize>,
    now: DateTime<FixedOffset>,
) -> Vec<String> {
    let column = |cell: fn(&WorkerView) -> Option<String>| -> Vec<String> {
        workers.iter().map(|worker| cell(worker).unwrap_or_else(|| "-".to_owned())).collect()
    };
    let mut columns: Vec<(&str, Vec<String>)> = vec![
        ("NAME", workers.iter().map(|w| w.name.clone()).collect()),
        ("STATUS", workers.iter().map(status).collect()),
        ("WHY", workers.iter().map(brief_cause).collect()),
        ("ITER", workers.iter().map(iteration).collect()),
        ("AGE", workers.iter().map(|w| age(&w.started, now)).collect()),
    ];
    if !silent.is_empty() || workers.iter().any(|w| w.host.is_some()) {
        columns.insert(0, ("HOST", column(|w| w.host.as_ref().map(|host| host.name.to_string()))));
    }
    // Without a terminal nothing has to fit.
    if width.is_none_or(|width| width >= WIDE_COLUMNS) {
        columns.push(("IN ITER", workers.iter().map(|w| time_in_iteration(w, now)).collect()));
        columns.push(("CONTEXT", column(|w| w.context.map(|percent| format!("{percent}%")))));
        columns.push(("COST", column(|w| w.metadata().cost_usd.map(|usd| format!("${usd:.2}")))));
        columns.push(("BRANCH", column(|w| w.worktree.as_ref().map(|tree| tree.branch.clone()))));
    }
    columns.push(("CMD", workers.iter().map(|w| join(&w.cmd)).collect()));
    if workers.iter().any(|w| !w.tags.is_empty()) {
        columns.push(("TAGS", workers.iter().map(|w| w.tags.join(",")).collect()));
    }
    let head: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let silent_row = |host: &SilentHost| {
        let cell = |head: &&str| match *head {
            "HOST" => host.name.clone(),
            "STATUS" => host.silent_for.clone(),
            _ => "-".to_owned(),
        };
        head.iter().map(cell).collect()
    };
    let rows = (0..workers.len()).map(|row| columns.iter().map(|(_, cells)| cells[row].clone()).collect());
    let rows: Vec<Vec<String>> = rows.chain(silent.iter().map(silent_row)).collect();
    // The least width of each column, in the order in which they are cut.
    let least = [("CMD", 8), ("TAGS", 8), ("BRANCH", 8), ("NAME", 24), ("WHY", 8), ("NAME", 8)];
    let place = |(of, least): (&str, usize)| Some((head.iter().position(|head| *head == of)?, least));
    let flexible: Vec<(usize, usize)> = least.into_iter().filter_map(place).collect();
    table(&head, &rows, &flexible, width)
}

/// The status; for a worker whose host does not answer, for how long.
fn status(worker: &WorkerView) -> String {
    let silent_for = worker.host.as_ref().and_then(|host| host.silent_for.clone());
    silent_for.unwrap_or_else(|| worker.status.to_string())
}

fn time_in_iteration(worker: &WorkerView, now: DateTime<FixedOffset>) -> String {
    let started = worker.metadata().iteration_started.filter(|_| worker.status.is_live());
    started.map_or_else(|| "-".to_owned(), |started| age(started, now))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::testing::view;
    use crate::protocol::WorkerHost;

    fn args(status: WhichStatus, tags: &[&str]) -> Ls {
        Ls {
            format: Format::Table,
            status,
            tag: tags.iter().map(|t| (*t).to_owned()).collect(),
            all_hosts: false,
            watch: false,
        }
    }

    #[test]
    fn ls_filters_are_combined() {
        let mut worker = view("a", "running", json!({}));
        worker.tags = vec!["x".into(), "y".into()];
        assert!(wanted(&worker, &args(WhichStatus::Live, &["x", "y"])));
        assert!(!wanted(&worker, &args(WhichStatus::Live, &["x", "z"])));
        assert!(!wanted(&worker, &args(WhichStatus::Finished, &[])));
        assert!(wanted(&worker, &args(WhichStatus::One(Status::Running), &[])));
        for status in ["starting", "waiting", "retrying", "unreachable"] {
            assert!(wanted(&view("a", status, json!({})), &args(WhichStatus::Live, &[])), "{status}");
        }
        for status in ["done", "failed", "killed"] {
            assert!(wanted(&view("a", status, json!({})), &args(WhichStatus::Finished, &[])), "{status}");
        }
    }

    #[test]
    fn only_a_waiting_worker_counts_as_waiting_for_a_login() {
        for (status, outage, want) in [
            ("waiting", Some(OutageKind::Login), true),
            ("waiting", None, false),
            ("running", Some(OutageKind::Login), false),
            ("paused", Some(OutageKind::Login), false),
            ("failed", Some(OutageKind::Login), false),
        ] {
            let worker = WorkerView { outage, ..view("a", status, json!({})) };
            assert_eq!(waits_for_login(&worker), want, "{status} {outage:?}");
        }
    }

    #[test]
    fn table_row_has_status_iteration_age_cost_and_command() {
        let mut worker =
            view("a", "running", json!({"ralph": true, "ralph_iteration": 3, "max_iterations": 9}));
        worker.cmd = vec!["sh".into(), "-c".into(), "echo 'hi'".into()];
        worker.started = "2026-01-01T10:00:00+01:00".into();
        let now = DateTime::parse_from_rfc3339("2026-01-01T10:05:30+00:00").unwrap();
        let lines = worker_table(&[worker.clone()], &[], Some(80), now);
        assert_eq!(
            lines,
            ["NAME  STATUS   WHY  ITER  AGE  CMD", r#"a     running       3/9   1h   sh -c "echo 'hi'""#]
        );
        worker.metadata["cost_usd"] = json!(1.5);
        worker.metadata["iteration_started"] = json!("2026-01-01T10:01:30+00:00");
        worker.context = Some(52);
        let wide = worker_table(&[worker], &[], Some(120), now);
        assert_eq!(
            wide[1],
            r#"a     running       3/9   1h   4m       52%      $1.50  -       sh -c "echo 'hi'""#
        );
        let host = swarm_state::host::HostName::new("gpu1").unwrap();
        let silent_for = Some("unreachable for 4m".to_owned());
        let away = WorkerView {
            host: Some(WorkerHost { name: host, silent_for }),
            ..view("b", "unreachable", json!({}))
        };
        let silent = [SilentHost { name: "gpu2".into(), silent_for: "unreachable".into() }];
        let all = worker_table(&[view("a", "running", json!({})), away], &silent, Some(80), now);
        let starts: Vec<String> =
            all.iter().map(|row| row.split_whitespace().take(5).collect::<Vec<_>>().join(" ")).collect();
        assert!(starts[0].starts_with("HOST NAME STATUS"), "{all:?}");
        assert!(starts[1].starts_with("- a running"), "{all:?}");
        assert!(starts[2].starts_with("gpu1 b unreachable for 4m"), "{all:?}");
        assert!(starts[3].starts_with("gpu2 - unreachable"), "{all:?}");
        assert_eq!(iteration(&view("b", "running", json!({}))), "-");
        assert_eq!(age("nonsense", now), "?");
    }
}
