//! The result that `swarm loop` prints at its end, as text or JSON.

use serde::Serialize;
use serde_json::Value;
use swarm_state::ends::LoopEnd;
use swarm_state::model::Status;
use swarm_state::notice::PauseBy;
use swarm_state::screen::printable;

use crate::cli::PageFormat;
use crate::client::context::ClientContext;
use crate::client::json;
use crate::client::report::{before_first, end_word, fetch, gates, used, worktree};
use crate::out::Failure;
use crate::protocol::Report;
use crate::ralph::{CheckResult, LoopIteration, RalphLoopResult};

/// The result, with the loop's name and state. The other fields are those of the source document.
#[derive(Serialize)]
struct NamedResult<'a> {
    name: &'a str,
    status: Status,
    reason: Option<&'a str>,
    cause: Option<Value>,
    paused_by: Option<PauseBy>,
    proof: Value,
    #[serde(flatten)]
    result: RalphLoopResult,
}

pub(super) async fn print(
    ctx: &ClientContext,
    name: &str,
    format: PageFormat,
    was_interrupted: bool,
) -> Result<(), Failure> {
    let mut report = fetch(ctx, name).await?;
    // The loop is paused or goes on, but for this command it was canceled.
    if was_interrupted && report.end.is_none() {
        report.end = Some(LoopEnd::Cancelled);
    }
    match format {
        PageFormat::Json => ctx.out.json(&NamedResult {
            name: &report.name,
            status: report.worker_status,
            reason: report.reason.as_deref(),
            cause: report.cause.as_ref().map(json::cause),
            paused_by: json::paused_by(report.paused_by, report.worker_status),
            proof: json::proof(&report),
            result: result_of(&report),
        }),
        PageFormat::Text => ctx.out.lines(&page(&report)),
    }
}

/// Converts a report to the documented result.
fn result_of(report: &Report) -> RalphLoopResult {
    let iterations: Vec<LoopIteration> = report.iterations.iter().map(LoopIteration::from).collect();
    RalphLoopResult {
        total_iterations: iterations.len(),
        iterations,
        total_cost: json::cost(report),
        total_duration: report.seconds,
        success: report.end.is_some_and(|end| end.exit_code(true) == 0),
        stop_reason: end_word(report).to_owned(),
        worktree_path: report.worktree.as_ref().map(|w| w.path.display().to_string()).unwrap_or_default(),
        baseline: report.baseline.iter().map(CheckResult::from).collect(),
    }
}

fn page(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("{}: {} ({})", report.name, end_word(report), used(report))];
    match report.iterations.last() {
        Some(last) => lines.extend(gates(last)),
        // Without an iteration, the reason is the only explanation.
        None => {
            let why = before_first(report).or_else(|| report.reason.as_deref().map(printable));
            lines.extend(why.map(|why| format!("  FAIL  {why}")));
        }
    }
    lines.extend(worktree(report));
    lines
}
