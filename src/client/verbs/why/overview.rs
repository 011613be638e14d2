//! `swarm why` without a name: one short block for each worker, the worst first. The objects of its JSON.
//!
//! The reports of loops and the last output of failed workers are read in parallel. The error of one worker is printed
//! after its block. Deliberately absent: the next step that a report suggests ([`super::loop_page`]).

use std::collections::HashMap;

use serde_json::{Value, json};
use swarm_state::advice::next_step;
use swarm_state::gates::Verdict;
use swarm_state::ledger::Iteration;
use swarm_state::model::Status;
use swarm_state::screen::printable;
use unicode_width::UnicodeWidthStr;

use super::{loop_page, plain};
use crate::client::batch::call_each;
use crate::client::connect::{QUICK_TIMEOUT, SLOW_TIMEOUT};
use crate::client::context::ClientContext;
use crate::client::json::{cause, proof};
use crate::client::report::{
    EVIDENCE_LINES, complete, quoted_agent, quoted_checks, quoted_end, shows_output, wrapped,
};
use crate::client::verbs::status::color;
use crate::client::worker::{brief_cause, is_loop, iteration, situation};
use crate::error::{Error, Result};
use crate::out::json::error_object;
use crate::out::{DEFAULT_COLUMNS, Failure, Out, fit, fit_middle};
use crate::protocol::{Call, Lines, Report, ReportParams, WorkerView};

const NEXT_STEP_PREFIX: &str = "  next: ";

/// The data of a block that is not in the worker's view, as far as it is needed.
#[derive(Default)]
pub(super) struct Facts {
    /// The end of a loop's report.
    pub(super) report: Option<Report>,
    /// The last output of a failed worker that is not a loop.
    pub(super) output: Vec<String>,
    /// Why the report or the output could not be read.
    pub(super) error: Option<Error>,
}

/// Reads the facts of each worker, in the same order. `report_call` returns the call for a report that is needed.
pub(super) async fn facts(
    ctx: &ClientContext,
    workers: &[WorkerView],
    report_call: fn(&WorkerView) -> Option<Call>,
) -> Result<Vec<Facts>, Failure> {
    let calls = workers.iter().filter_map(|worker| Some((worker.name.clone(), report_call(worker)?)));
    let mut all: HashMap<String, Facts> = HashMap::new();
    for (name, report) in call_each::<Report>(ctx, calls, SLOW_TIMEOUT).await? {
        let report = async { complete(ctx, report?).await };
        let facts = match report.await {
            Ok(report) => Facts { report: Some(report), ..Facts::default() },
            Err(error) => Facts { error: Some(error), ..Facts::default() },
        };
        all.insert(name, facts);
    }
    let calls = workers.iter().filter(|worker| worker.status == Status::Failed && !is_loop(worker));
    let calls = calls.map(|worker| (worker.name.clone(), plain::output_call(&worker.name)));
    for (name, output) in call_each::<Lines>(ctx, calls, QUICK_TIMEOUT).await? {
        let facts = match output {
            Ok(output) => Facts { output: output.lines, ..Facts::default() },
            Err(error) => Facts { error: Some(error), ..Facts::default() },
        };
        all.insert(name, facts);
    }
    Ok(workers.iter().map(|worker| all.remove(&worker.name).unwrap_or_default()).collect())
}

/// Returns the call for the report of the last two iterations: the current one has no record before its end. `None` if
/// neither the next step nor the evidence can depend on the report.
pub(super) fn report_call(worker: &WorkerView) -> Option<Call> {
    let is_needed = !matches!(worker.status, Status::Starting | Status::Killed | Status::Done);
    last_iterations(worker).filter(|_| is_needed)
}

/// Returns the same call for every loop.
pub(super) fn last_iterations(worker: &WorkerView) -> Option<Call> {
    let current = worker.metadata().iteration.unwrap_or_default();
    let from = u32::try_from(current).unwrap_or(u32::MAX).saturating_sub(1);
    is_loop(worker).then(|| Call::RalphReport(ReportParams { name: worker.name.clone(), from }))
}

/// Formats the block of one worker. Only a command is never cut.
pub(super) fn block(worker: &WorkerView, facts: &Facts, out: Out) -> Vec<String> {
    let width = out.width.unwrap_or(DEFAULT_COLUMNS);
    let mut lines = vec![head(worker, width, out)];
    lines.extend(shown_evidence(worker, facts).iter().map(|line| fit(line, width)));
    lines.extend(next(worker, facts).iter().flat_map(|next| wrapped(NEXT_STEP_PREFIX, next, width)));
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

/// Returns what shows why a worker failed or made no progress, or what it waits for.
fn shown_evidence(worker: &WorkerView, facts: &Facts) -> Vec<String> {
    match (worker.status, &facts.report) {
        (Status::Waiting, _) => quoted_end(&worker.screen),
        (Status::Failed | Status::Paused, Some(report)) => {
            report.iterations.last().map(of_iteration).unwrap_or_default()
        }
        (Status::Failed, None) => quoted_end(&facts.output),
        _ => vec![],
    }
}

/// Returns the last output of an agent that failed, else of the first check that failed, else the other gates.
fn of_iteration(it: &Iteration) -> Vec<String> {
    let agent = quoted_agent(it);
    if !agent.is_empty() {
        return agent;
    }
    let checks = quoted_checks(it);
    if !checks.is_empty() {
        return checks.into_iter().take(1 + EVIDENCE_LINES).collect();
    }
    let remarks = it.verdict.iter().flat_map(Verdict::other_remarks).take(EVIDENCE_LINES);
    remarks.map(|remark| format!("  FAIL  {}", printable(&remark))).collect()
}

/// Suggests the next step; `None` if there is nothing to do.
pub(super) fn next(worker: &WorkerView, facts: &Facts) -> Option<String> {
    match &facts.report {
        Some(report) => loop_page::step(report),
        None if worker.status == Status::Done && is_loop(worker) && worker.worktree.is_some() => {
            Some(format!("to merge its work: swarm report {}", worker.name))
        }
        // The step of other verbs is this verb.
        None if worker.status == Status::Failed && !is_loop(worker) => Some(plain::next(worker)),
        None => next_step(&situation(worker)),
    }
}

pub(super) fn object(worker: &WorkerView, facts: &Facts) -> Value {
    let metadata = worker.metadata();
    json!({
        "name": worker.name,
        "status": worker.status,
        "reason": worker.reason,
        "cause": worker.cause.as_ref().map(cause),
        "iteration": metadata.iteration,
        "max_iterations": metadata.max_iterations,
        "exit_code": worker.exit_code,
        "signal": worker.signal,
        "evidence": evidence(worker, facts),
        "proof": facts.report.as_ref().map_or(Value::Null, proof),
        "next": next(worker, facts),
        "error": facts.error.as_ref().map(error_object),
    })
}

/// Output that shows why a worker failed or made no progress, or what it waits for, and its source.
fn evidence(worker: &WorkerView, facts: &Facts) -> Vec<Value> {
    match (worker.status, &facts.report) {
        (Status::Waiting, _) => vec![quote("screen", None, worker.screen.iter())],
        (Status::Failed | Status::Paused, Some(report)) => {
            report.iterations.last().map(quotes_of).unwrap_or_default()
        }
        (Status::Failed, None) => vec![quote("agent", None, facts.output.iter())],
        _ => vec![],
    }
}

fn quotes_of(it: &Iteration) -> Vec<Value> {
    let agent = shows_output(it).then(|| quote("agent", None, it.last_lines.iter()));
    let checks = it.verdict.iter().flat_map(Verdict::failed_checks);
    let checks = checks.map(|check| quote("check", Some(&check.name), check.output.lines()));
    let gates = it.verdict.iter().flat_map(Verdict::other_remarks);
    let gates = gates.map(|remark| quote("gate", None, [remark]));
    agent.into_iter().chain(checks).chain(gates).collect()
}

fn quote<Line: AsRef<str>>(
    source: &str,
    check: Option<&str>,
    lines: impl IntoIterator<Item = Line>,
) -> Value {
    let lines: Vec<String> = lines.into_iter().map(|line| printable(line.as_ref())).collect();
    json!({"source": source, "check": check, "lines": lines})
}

#[cfg(test)]
mod tests;
