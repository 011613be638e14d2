//! The morning view: what happened to all workers since a person last looked.
//!
//! Asks the daemon for the workers and for their work in the period, and prints the view. Afterwards it reports that a
//! person has looked. Deliberately absent: which workers have a line, and in which order ([`swarm_state::morning`]).

use std::collections::HashMap;

use chrono::{DateTime, Local};
use swarm_state::advice::next_step;
use swarm_state::attention::Attention;
use swarm_state::model::Status;
use swarm_state::morning::{Morning, MorningRow, Period, UnmergedWork};
use swarm_state::screen::printable;

use super::{html, markdown, text};
use crate::cli::{ReportArgs, ReportFormat};
use crate::client::connect::{QUICK_TIMEOUT, SLOW_TIMEOUT};
use crate::client::context::ClientContext;
use crate::client::json;
use crate::client::report::merge_command;
use crate::client::verbs::ls::list;
use crate::client::worker::{brief_cause, is_loop, situation};
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Out, for_hosts, host_with_files};
use crate::protocol::{Call, Empty, LookedParams, MorningParams, MorningView, WorkerView, WorkerWork};
use crate::shell::quote_path;

pub(super) async fn run(ctx: &ClientContext, args: &ReportArgs) -> CommandResult {
    let work = fetch(ctx, args.since.map(|since| since.to_rfc3339())).await?;
    let until = work.until.clone();
    let view = view(&list(ctx).await?, work)?;
    match args.format {
        ReportFormat::Json => {
            ctx.out.json(&json::morning::morning(&view))?;
            return Ok(0);
        }
        ReportFormat::Markdown => ctx.out.lines(&markdown::morning(&view))?,
        ReportFormat::Html => ctx.out.line(&html::morning(&view))?,
        ReportFormat::Text if view.rows.is_empty() && view.remarks().is_empty() => ctx.out.note("no workers"),
        ReportFormat::Text => ctx.out.lines(&for_hosts(&text::morning(&view, ctx.out)))?,
    }
    report_looked(ctx, args, &view, until).await;
    Ok(0)
}

/// Fetches the work of all workers, with as many calls as it has pages.
async fn fetch(ctx: &ClientContext, since: Option<String>) -> Result<MorningView> {
    let call = |since, after| Call::Morning(MorningParams { since, after });
    let mut all: MorningView = ctx.call(&call(since, None), SLOW_TIMEOUT).await?;
    while let Some(after) = all.next.take() {
        let page: MorningView = ctx.call(&call(all.since.clone(), Some(after)), SLOW_TIMEOUT).await?;
        all.workers.extend(page.workers);
        all.next = page.next;
    }
    Ok(all)
}

/// Reports that a person has looked: at finished workers, if their names are on a terminal; and at the period, unless
/// the person chose its start. A program that starts the command has no terminal.
async fn report_looked(ctx: &ClientContext, args: &ReportArgs, view: &Morning, until: String) {
    let is_shown = args.format == ReportFormat::Text && Out::is_terminal();
    let is_person = Out::is_terminal() || Out::is_error_terminal();
    let finished = view.rows.iter().filter(|row| is_shown && row.status.is_finished());
    let params = LookedParams {
        until: Some(until).filter(|_| is_person && args.since.is_none()),
        names: finished.filter(|row| !row.is_seen).map(|row| row.name.clone()).collect(),
    };
    if params.until.is_some() || !params.names.is_empty() {
        // The view is complete without it.
        drop(ctx.call::<Empty>(&Call::MorningLooked(params), QUICK_TIMEOUT).await);
    }
}

fn view(workers: &[WorkerView], of: MorningView) -> Result<Morning> {
    let time = |text: &str| {
        let at = DateTime::parse_from_rfc3339(text).map(|at| at.with_timezone(&Local).fixed_offset());
        at.map_err(|_| Error::new(ErrorCode::Internal, format!("the daemon sent the invalid time '{text}'")))
    };
    let period = Period { since: of.since.as_deref().map(time).transpose()?, until: time(&of.until)? };
    let mut works: HashMap<String, WorkerWork> =
        of.workers.into_iter().map(|work| (work.name.clone(), work)).collect();
    let rows = workers.iter().map(|worker| row(worker, works.remove(&worker.name).unwrap_or_default()));
    Ok(Morning::new(period, rows.collect(), of.removed))
}

pub(crate) fn row(worker: &WorkerView, of: WorkerWork) -> MorningRow {
    let metadata = worker.metadata();
    MorningRow {
        name: worker.name.clone(),
        status: worker.status,
        group: Attention::of(worker.status, worker.cause.as_ref(), worker.seen),
        why: printable(&brief_cause(worker)),
        reason: worker.reason.clone(),
        cause: worker.cause.clone(),
        next: next(worker, of.unmerged).map(|next| printable(&next)),
        is_loop: is_loop(worker),
        iteration: metadata.iteration,
        max_iterations: metadata.max_iterations,
        iteration_started: metadata.iteration_started.map(str::to_owned),
        started: worker.started.clone(),
        status_since: worker.since.clone(),
        is_idle: worker.idle,
        is_seen: worker.seen,
        work: of.work,
        history: of.history,
        branch: worker.worktree.as_ref().map(|worktree| worktree.branch.clone()),
        unmerged: of.unmerged,
    }
}

/// The next step: how to merge the work of a worker that ended with success, else the usual advice.
fn next(worker: &WorkerView, unmerged: Option<UnmergedWork>) -> Option<String> {
    let name = &worker.name;
    let has_work = |work: &UnmergedWork| work.commits > 0 || work.uncommitted > 0;
    match (worker.status, &worker.worktree, unmerged.filter(has_work)) {
        (Status::Done, Some(_), Some(work)) if work.uncommitted > 0 && is_loop(worker) => {
            Some(format!("to commit and merge its work: swarm report {name}"))
        }
        (Status::Done, Some(tree), Some(work)) if work.uncommitted > 0 => {
            let place = host_with_files().map(|host| format!("on {host}, ")).unwrap_or_default();
            Some(format!("to see its work: {place}git -C {} status", quote_path(&tree.path)))
        }
        (Status::Done, Some(tree), Some(_)) => Some(merge_command(name, &tree.base_repo, &tree.branch)),
        (Status::Killed, Some(_), Some(_)) if is_loop(worker) => Some(format!("swarm ralph diff {name}")),
        _ => next_step(&situation(worker)),
    }
}

#[cfg(test)]
mod tests;
