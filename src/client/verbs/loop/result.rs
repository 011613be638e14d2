//! What `swarm loop` prints at its end, for people or programs.

use swarm_state::ends::LoopEnd;
use swarm_state::screen::printable;

use crate::cli::PageFormat;
use crate::client::context::Context;
use crate::client::report::{before_first, end_word, fetch, gates, used, worktree};
use crate::out::Failure;
use crate::protocol::Report;
use crate::ralph::{CheckResult, LoopIteration, RalphLoopResult};

/// What `swarm loop` prints at the end.
pub(super) async fn print(
    ctx: &Context,
    name: &str,
    format: PageFormat,
    given_up: bool,
) -> Result<(), Failure> {
    let mut report = fetch(ctx, name).await?;
    // It is paused, or goes on without whoever followed it; to them it is over.
    if given_up && report.end.is_none() {
        report.end = Some(LoopEnd::Cancelled);
    }
    match format {
        PageFormat::Json => ctx.out.json(&result_of(&report)),
        PageFormat::Text => ctx.out.lines(&page(&report)),
    }
}

/// The document's result.
fn result_of(report: &Report) -> RalphLoopResult {
    let iterations: Vec<LoopIteration> = report.iterations.iter().map(LoopIteration::from).collect();
    RalphLoopResult {
        total_iterations: iterations.len(),
        iterations,
        total_cost: report.cost,
        total_duration: report.seconds,
        success: report.end.is_some_and(|end| end.exit_code(true) == 0),
        stop_reason: end_word(report).to_owned(),
        worktree_path: report.worktree.as_ref().map(|w| w.path.display().to_string()).unwrap_or_default(),
        baseline: report.baseline.iter().map(CheckResult::from).collect(),
    }
}

/// What `swarm loop` says at its end.
fn page(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("{}: {} ({})", report.name, end_word(report), used(report))];
    match report.iterations.last() {
        Some(last) => lines.extend(gates(last)),
        // Nothing else says why.
        None => {
            let why = before_first(report).or_else(|| report.reason.as_deref().map(printable));
            lines.extend(why.map(|why| format!("  FAIL  {why}")));
        }
    }
    lines.extend(worktree(report));
    lines
}
