//! The JSON of the client's verbs: the views of the protocol, under the names of swarm-json(7).
//!
//! The wire keeps the names of its first release and leaves out what is empty. Here each thing has one name, each field
//! is present, and an unknown value is null. Deliberately absent: `schema` ([`crate::out`]), and the answers that only
//! one verb prints.

use serde::Serialize;
use serde_json::{Map, Value, json};
use swarm_state::budget::Budgets;
use swarm_state::caps::Cap;
use swarm_state::cause::Cause;
use swarm_state::ends::LoopEnd;
use swarm_state::engine::Why;
use swarm_state::gates::{CheckResult, Gates};
use swarm_state::ignored::{IgnoredFiles, IgnoredGroup};
use swarm_state::ledger::Iteration;
use swarm_state::model::{Exit, Status};
use swarm_state::notice::IterationExit;
use swarm_state::proof::Proof;
use swarm_state::tasks::gate::TaskVerdict;
use swarm_state::tasks::history::story_histories;

use crate::client::report::{agent_seconds, check_seconds};
use crate::client::worker::is_loop;
use crate::protocol::{RalphView, Report, WorkerView};

pub(super) mod events;

pub(super) mod morning;

pub(super) fn worker(view: &WorkerView) -> Value {
    let loop_data = view.metadata();
    let metadata = match loop_data.is_loop {
        true => json!({"ralph": true, "ralph_iteration": loop_data.iteration}),
        false => json!({}),
    };
    json!({
        "name": view.name,
        "host": view.host.as_ref().map(|host| &host.name),
        "status": view.status,
        "reason": view.reason,
        "cause": view.cause.as_ref().map(cause),
        "end": end(view),
        "iteration": loop_data.iteration,
        "max_iterations": loop_data.max_iterations,
        "iteration_started": loop_data.iteration_started,
        "consecutive_failures": loop_data.consecutive_failures,
        "total_failures": loop_data.total_failures,
        "cost_usd": loop_data.cost_usd,
        "context_percent": view.context,
        "paused_by": paused_by(loop_data.paused_by, view.status),
        "outage": view.outage,
        "exit_code": view.exit_code,
        "signal": view.signal,
        "ended_by_swarm": view.ended,
        "restarts": view.restarts,
        "restart": view.restart,
        "pid": view.pid,
        "ready": view.ready,
        "idle": view.idle,
        "requests": view.requests,
        "held": view.held,
        "screen": view.screen,
        "cmd": view.cmd,
        "cwd": view.cwd,
        "tags": view.tags,
        "caps": caps(view),
        "env": view.env,
        "started": view.started,
        "tmux": view.tmux,
        "worktree": view.worktree,
        "sandbox": view.sandbox,
        "network": view.network,
        "allowed_hosts": view.allowed_hosts,
        "tasks": view.tasks,
        "seen": view.seen,
        "since": view.since,
        "metadata": metadata,
    })
}

/// The resource caps, each with its limit and the mechanism that enforces it.
fn caps(view: &WorkerView) -> Value {
    let by = |cap| view.caps_in_force.as_ref().and_then(|in_force| in_force.get(&cap));
    let cap = |cap, limit: Option<Value>| limit.map(|limit| json!({"limit": limit, "mechanism": by(cap)}));
    let caps = view.caps;
    json!({
        "memory": cap(Cap::Memory, caps.memory.map(Value::from)),
        "cpus": cap(Cap::Cpus, caps.cpu_percent.map(|percent| json!(f64::from(percent) / 100.0))),
        "pids": cap(Cap::Pids, caps.pids.map(Value::from)),
    })
}

pub(super) fn workers(views: &[WorkerView]) -> Vec<Value> {
    views.iter().map(worker).collect()
}

fn end(view: &WorkerView) -> Option<LoopEnd> {
    match &view.cause {
        Some(Cause::Stopped { reason, .. }) if is_loop(view) => Some(reason.end()),
        _ => (is_loop(view) && view.status == Status::Lost).then_some(LoopEnd::Lost),
    }
}

/// The origin of a pause. A finished loop keeps its last one.
pub(super) fn paused_by<T>(by: Option<T>, status: Status) -> Option<T> {
    by.filter(|_| !status.is_finished())
}

/// A cause: its kind, and the data of that kind.
pub(super) fn cause(cause: &Cause) -> Value {
    let mut fields = Fields::of(cause);
    match cause {
        Cause::Stopped { reason, .. } => fields.set("reason", reason.slug()),
        Cause::Ending { why } => {
            fields.rename("why", "end");
            if *why == Why::Kill {
                fields.set("end", IterationExit::Killed);
            }
        }
        Cause::NeedsPerson { answerable, .. } => fields.set("answerable", *answerable),
        _ => {}
    }
    if matches!(cause, Cause::Paused { .. }) {
        fields.fill(&["detail"], Value::Null);
    }
    if matches!(cause, Cause::Stopped { .. }) {
        fields.fill(&["out_of_memory"], false);
    }
    if matches!(cause, Cause::Stopped { .. } | Cause::Backoff { .. }) {
        fields.fill(&["failure"], Value::Null);
    }
    fields.take()
}

/// The settings and numbers of a loop. Only the worker's view has times with a zone.
pub(super) fn ralph(view: &RalphView, of: &WorkerView) -> Value {
    json!({
        "name": view.worker_name,
        "status": view.worker_status,
        "reason": view.reason,
        "cause": view.cause.as_ref().map(cause),
        "end": end(of),
        "paused_by": paused_by(view.paused_by, view.worker_status),
        "iteration": view.current_iteration,
        "max_iterations": view.max_iterations,
        "started": of.started,
        "iteration_started": of.metadata().iteration_started,
        "consecutive_failures": view.consecutive_failures,
        "total_failures": view.total_failures,
        "cost_usd": of.metadata().cost_usd,
        "prompt_file": view.prompt_file,
        "done_pattern": view.done_pattern,
        "inactivity_timeout": view.inactivity_timeout,
        "question_timeout": view.question_timeout,
        "tasks": view.tasks,
        "state_file": view.state_file,
    })
}

pub(super) fn report(report: &Report, shown: &[Iteration]) -> Value {
    let mut fields = Fields::of(report);
    fields.remove("next");
    fields.remove("raise");
    fields.remove("approved");
    fields.set("status", report.worker_status);
    fields.remove("worker_status");
    fields.set("cause", report.cause.as_ref().map(cause));
    fields.rename("current_iteration", "iteration");
    fields.rename("cost", "cost_usd");
    fields.set("cost_usd", cost(report));
    fields.set("tokens", tokens(report));
    fields.set("gates", gates(&report.gates));
    fields.set("budgets", budgets(&report.budgets));
    fields.set("baseline", checks(&report.baseline));
    fields.set("outages", report.outages);
    fields.set("outage_seconds", report.outage_seconds);
    fields.set("agent_seconds", agent_seconds(shown));
    fields.set("check_seconds", check_seconds(shown));
    fields.set("iterations", shown.iter().map(iteration).collect::<Vec<_>>());
    fields.set("ignored", ignored(&report.ignored));
    fields.set("proof", proof(report));
    fields.set("stories", story_histories(&report.iterations));
    fields.set("paused_by", paused_by(report.paused_by, report.worker_status));
    fields
        .fill(&["outage", "watched", "sandbox"], Value::Null)
        .fill(&["unapproved", "warnings"], json!([]))
        .take()
}

/// The proof of the last iteration; null before the first end of one.
pub(super) fn proof(report: &Report) -> Value {
    let last = report.iterations.last().filter(|it| it.verdict.is_some());
    last.map_or(Value::Null, |last| {
        let summary = super::report::proof(report, last);
        json!({"complete": last.is_complete(), "in_force": summary.in_force, "holds": summary.holds, "unproven": summary.unproven})
    })
}

/// The cost of a loop in US dollars; `None` if no iteration reported one.
pub(super) fn cost(report: &Report) -> Option<f64> {
    let is_known = |it: &Iteration| it.verdict.as_ref().is_some_and(|verdict| verdict.cost.is_some());
    report.iterations.iter().any(is_known).then_some(report.cost)
}

/// The tokens of a loop; `None` if no iteration reported them.
fn tokens(report: &Report) -> Option<u64> {
    let is_known = |it: &Iteration| it.verdict.as_ref().is_some_and(|verdict| verdict.tokens.is_some());
    report.iterations.iter().any(is_known).then_some(report.tokens)
}

fn gates(gates: &Gates) -> Value {
    let mut fields = Fields::of(gates);
    fields.fill(&["final_checks", "setup", "fix", "canaries", "reports"], json!([]));
    fields.fill(&["hidden", "tasks"], Value::Null);
    fields.fill(&["clean_check", "protect_tests", "no_canary"], false);
    fields.remove("runners");
    fields.set("final_tries", gates.rooms.final_tries);
    if let Some(tasks) = &gates.tasks {
        fields.set("tasks", Fields::of(tasks).fill(&["story"], Value::Null).take());
    }
    fields.take()
}

/// The budgets, with the cost in US dollars.
fn budgets(budgets: &Budgets) -> Value {
    let mut fields = Fields::of(budgets);
    fields.set("max_cost", budgets.max_cost.map(usd));
    fields.fill(&["max_context"], Value::Null).take()
}

fn usd(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

fn iteration(it: &Iteration) -> Value {
    let mut fields = Fields::of(it);
    fields.rename("seconds", "agent_seconds");
    fields.set("check_seconds", it.check_seconds());
    fields.set("end", it.end.map(end_word));
    fields.fill(&["reason", "left"], Value::Null).fill(&["last_lines"], json!([])).fill(&["no_agent"], false);
    fields.fill(&["oom_kills"], 0);
    if let Some(verdict) = &it.verdict {
        let mut of = Fields::of(verdict);
        of.rename("cost", "cost_usd");
        of.set("cost_usd", verdict.cost.map(usd));
        of.set("checks", checks(&verdict.checks));
        of.fill(&["promise_seen", "api_error", "unseen", "cannot_check"], Value::Null);
        of.fill(&["transcript_lost", "worked", "tries_spent", "is_empty_answer"], false);
        of.set("tasks", verdict.tasks.as_deref().map(task_result));
        of.fill(&["changed_tests", "changed_in_checks"], json!([]));
        of.set("proofs", proofs(&verdict.proofs));
        fields.set("verdict", of.take());
    }
    fields.take()
}

/// The work on a task list.
fn task_result(tasks: &TaskVerdict) -> Value {
    let mut fields = Fields::of(tasks);
    fields.fill(&["is_changed", "is_passed", "skip_review", "promised_early"], false);
    fields.fill(&["undone", "noted"], json!([]));
    fields.fill(&["sent_back_at_cap"], 0);
    fields.set("checks", checks(&tasks.checks));
    fields.take()
}

/// The results of the layers of evidence.
fn proofs(proofs: &[Proof]) -> Vec<Value> {
    proofs.iter().map(|proof| Fields::of(proof).fill(&["check", "output"], Value::Null).take()).collect()
}

fn checks(checks: &[CheckResult]) -> Vec<Value> {
    let check = |check| Fields::of(check).fill(&["cut"], false).fill(&["tests"], Value::Null).take();
    checks.iter().map(check).collect()
}

pub(super) fn ignored(files: &IgnoredFiles) -> Value {
    let group = |group: &IgnoredGroup| {
        let paths = group.paths.iter().map(|path| Fields::of(path).fill(&["at_least"], false).take());
        json!({"paths": paths.collect::<Vec<_>>(), "more": group.more})
    };
    json!({"data": group(&files.data), "caches": group(&files.caches)})
}

/// How an iteration ended, one word. The exit status has a field of its own.
fn end_word(exit: IterationExit) -> Value {
    match exit {
        IterationExit::Exit(Exit::OutOfMemory(_)) => "out_of_memory".into(),
        IterationExit::Exit(_) => "exit".into(),
        other => json!(other),
    }
}

/// The fields of an object, in order.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// The fields of a value that is an object in JSON.
    fn of(value: &impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(Value::Object(fields)) => Self(fields),
            Ok(_) | Err(_) => Self(Map::new()),
        }
    }

    /// Gives a field another name, in the same place.
    fn rename(&mut self, from: &str, to: &str) {
        let named = |(key, value)| if key == from { (to.to_owned(), value) } else { (key, value) };
        self.0 = std::mem::take(&mut self.0).into_iter().map(named).collect();
    }

    fn set(&mut self, key: &str, value: impl Serialize) {
        self.0.insert(key.to_owned(), json!(value));
    }

    /// Adds the fields that are absent.
    fn fill(&mut self, keys: &[&str], value: impl Serialize) -> &mut Self {
        for key in keys {
            self.0.entry(*key).or_insert_with(|| json!(value));
        }
        self
    }

    fn remove(&mut self, key: &str) {
        self.0.shift_remove(key);
    }

    /// Takes the fields as an object.
    fn take(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.0))
    }
}

#[cfg(test)]
mod tests;
