//! `swarm why` without a name: one short block for each worker, the worst first.
//!
//! The reports of loops and the last output of failed workers are read in parallel. The error of one worker is printed
//! after its block. Deliberately absent: the next step that a report suggests ([`super::loop_page`]).

use std::collections::HashMap;

use serde_json::{Value, json};
use swarm_state::advice::next_step;
use swarm_state::ledger::Iteration;
use swarm_state::model::Status;
use swarm_state::screen::printable;
use unicode_width::UnicodeWidthStr;

use super::{loop_page, plain};
use crate::cli::PageFormat;
use crate::client::batch::{BatchErrors, call_each};
use crate::client::connect::{QUICK_TIMEOUT, SLOW_TIMEOUT};
use crate::client::context::ClientContext;
use crate::client::json::cause;
use crate::client::report::{complete, outcome};
use crate::client::verbs::ls::list;
use crate::client::verbs::status::color;
use crate::client::worker::{brief_cause, is_loop, iteration, quoted, situation};
use crate::error::{Error, Result};
use crate::out::json::error_object;
use crate::out::{CommandResult, Out, fit, fit_middle};
use crate::protocol::{Call, Lines, Report, ReportParams, WorkerView};

/// The width of a block where the output is not a terminal.
const DEFAULT_COLUMNS: usize = 80;

/// How many lines of evidence a block shows.
const EVIDENCE_LINES: usize = 3;

/// The columns before a next step.
const NEXT: &str = "  next: ";

pub(super) async fn run(ctx: &ClientContext, format: PageFormat) -> CommandResult {
    let mut workers = list(ctx).await?;
    let is_json = format == PageFormat::Json;
    if workers.is_empty() && !is_json {
        ctx.out.note("no workers");
        return Ok(0);
    }
    workers.sort_by_key(|worker| rank(worker.status));
    let calls = workers.iter().filter(|worker| needs_report(worker)).map(report_call);
    let mut reports: HashMap<String, Result<Report>> = HashMap::new();
    for (name, report) in call_each::<Report>(ctx, calls, SLOW_TIMEOUT).await? {
        let report = match report {
            Ok(report) => complete(ctx, report).await,
            Err(error) => Err(error),
        };
        reports.insert(name, report);
    }
    let calls = workers.iter().filter(|worker| worker.status == Status::Failed && !is_loop(worker));
    let calls = calls.map(|worker| (worker.name.clone(), plain::output_call(&worker.name)));
    let outputs = call_each::<Lines>(ctx, calls, QUICK_TIMEOUT).await?;
    let mut outputs: HashMap<String, Result<Lines>> = outputs.into_iter().collect();
    let mut errors = BatchErrors::new(ctx.out, PageFormat::Text, false);
    let mut objects = vec![];
    for worker in &workers {
        let report = reports.remove(&worker.name).transpose();
        let output = outputs.remove(&worker.name).transpose();
        let detail = Detail {
            report: report.as_ref().ok().and_then(Option::as_ref),
            output: output.as_ref().ok().and_then(Option::as_ref).map_or(&[], |output| &output.lines),
        };
        if is_json {
            objects.push(object(worker, &detail, report.as_ref().err().or(output.as_ref().err())));
        } else {
            ctx.out.lines(&block(worker, &detail, ctx.out))?;
        }
        for error in [report.err(), output.err()].into_iter().flatten() {
            errors.add(&worker.name, error)?;
        }
    }
    if is_json {
        ctx.out.json_list(&objects)?;
    }
    errors.end()
}

/// Returns the position of a status in the list: the worst first.
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

/// Whether the next step or the evidence can depend on the report.
fn needs_report(worker: &WorkerView) -> bool {
    is_loop(worker) && !matches!(worker.status, Status::Starting | Status::Killed | Status::Done)
}

/// Returns the call for the report of the last two iterations: the current one has no record before its end.
fn report_call(worker: &WorkerView) -> (String, Call) {
    let current = worker.metadata().iteration.unwrap_or_default();
    let from = u32::try_from(current).unwrap_or(u32::MAX).saturating_sub(1);
    (worker.name.clone(), Call::RalphReport(ReportParams { name: worker.name.clone(), from }))
}

/// The data of a block that is not in the worker's view.
pub(super) struct Detail<'a> {
    /// The end of a loop's report.
    pub(super) report: Option<&'a Report>,
    /// The last output of a failed worker that is not a loop.
    pub(super) output: &'a [String],
}

/// The block of one worker as JSON. `error`: why a part of it is missing.
pub(super) fn object(worker: &WorkerView, detail: &Detail<'_>, error: Option<&Error>) -> Value {
    let metadata = worker.metadata();
    let evidence = evidence(worker, detail);
    let evidence: Vec<&str> =
        evidence.iter().map(|line| line.strip_prefix("  | ").unwrap_or(line.trim_start())).collect();
    json!({
        "name": worker.name,
        "status": worker.status,
        "reason": worker.reason,
        "cause": worker.cause.as_ref().map(cause),
        "iteration": metadata.iteration,
        "max_iterations": metadata.max_iterations,
        "evidence": evidence,
        "next": next(worker, detail),
        "error": error.map(error_object),
    })
}

/// Formats the block of one worker. Only a command is never cut.
fn block(worker: &WorkerView, detail: &Detail<'_>, out: Out) -> Vec<String> {
    let width = out.width.unwrap_or(DEFAULT_COLUMNS);
    let mut lines = vec![head(worker, width, out)];
    lines.extend(evidence(worker, detail).iter().map(|line| fit(line, width)));
    if let Some(next) = next(worker, detail) {
        lines.extend(wrapped(&next, width));
    }
    lines
}

/// Formats `NAME: STATUS (iteration 3/9), CAUSE`.
fn head(worker: &WorkerView, width: usize, out: Out) -> String {
    let name = fit_middle(&worker.name, width / 2);
    let status = worker.status.as_str();
    let mut rest = String::new();
    if is_loop(worker) {
        rest.push_str(&format!(" (iteration {})", iteration(worker)));
    }
    let cause = printable(&brief_cause(worker));
    if !cause.is_empty() {
        rest.push_str(&format!(", {cause}"));
    }
    let left = width.saturating_sub(name.width() + ": ".len() + status.len());
    format!("{name}: {}{}", out.paint(color(worker.status), status), fit(&rest, left))
}

/// Returns what shows why a worker failed, or what it waits for.
fn evidence(worker: &WorkerView, detail: &Detail<'_>) -> Vec<String> {
    match (worker.status, detail.report) {
        (Status::Waiting, _) => last_lines(&worker.screen),
        (Status::Failed, Some(report)) => report.iterations.last().map(of_iteration).unwrap_or_default(),
        (Status::Failed, None) => last_lines(detail.output),
        _ => vec![],
    }
}

/// Returns the last output of an agent that failed, else of the first check that failed, else the other gates.
fn of_iteration(it: &Iteration) -> Vec<String> {
    if loop_page::shows_output(it) {
        return last_lines(&it.last_lines);
    }
    let Some(verdict) = &it.verdict else { return vec![] };
    if let Some(check) = verdict.failed_checks().next() {
        let output: Vec<String> = check.output.lines().map(str::to_owned).collect();
        let mut lines = vec![format!("  {}  {}", outcome(check), printable(&check.name))];
        lines.extend(last_lines(&output));
        return lines;
    }
    let remarks = verdict.other_remarks().into_iter().take(EVIDENCE_LINES);
    remarks.map(|remark| format!("  FAIL  {}", printable(&remark))).collect()
}

/// Quotes the last lines that are not empty.
fn last_lines(lines: &[String]) -> Vec<String> {
    let mut last: Vec<String> =
        lines.iter().rev().filter(|line| !line.trim().is_empty()).take(EVIDENCE_LINES).cloned().collect();
    last.reverse();
    quoted(&last).collect()
}

/// Suggests the next step; `None` if there is nothing to do.
fn next(worker: &WorkerView, detail: &Detail<'_>) -> Option<String> {
    match detail.report {
        Some(report) => loop_page::step(report),
        None if worker.status == Status::Done && is_loop(worker) && worker.worktree.is_some() => {
            Some(format!("to merge its work: swarm report {}", worker.name))
        }
        // The step of other verbs is this verb.
        None if worker.status == Status::Failed && !is_loop(worker) => Some(plain::next(worker)),
        None => next_step(&situation(worker)),
    }
}

/// Breaks a next step into lines of `width` columns, only after punctuation: a command stays on one line.
fn wrapped(next: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for word in next.split_inclusive(' ') {
        let can_break = parts.last().is_some_and(|part| part.trim_end().ends_with([',', ';', ':']));
        match parts.last_mut().filter(|_| !can_break) {
            Some(part) => part.push_str(word),
            None => parts.push(word.to_owned()),
        }
    }
    let mut lines = vec![NEXT.to_owned()];
    for (index, part) in parts.iter().enumerate() {
        match lines.last_mut() {
            Some(line) if index == 0 || line.width() + part.trim_end().width() <= width => {
                line.push_str(part)
            }
            _ => lines.push(" ".repeat(NEXT.len()) + part),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests;
