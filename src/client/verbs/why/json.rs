//! The objects of `swarm why --format json`.

use serde_json::{Value, json};
use swarm_state::gates::Verdict;
use swarm_state::ledger::Iteration;
use swarm_state::model::Status;
use swarm_state::screen::printable;

use super::overview::{Facts, next};
use crate::client::json::{cause, proof};
use crate::client::report::shows_output;
use crate::out::json::error_object;
use crate::protocol::WorkerView;

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
            report.iterations.last().map(of_iteration).unwrap_or_default()
        }
        (Status::Failed, None) => vec![quote("agent", None, facts.output.iter())],
        _ => vec![],
    }
}

fn of_iteration(it: &Iteration) -> Vec<Value> {
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
