//! What a loop came to: `report`, `why`, the result of `loop`, and `ralph diff`, `restore` and `approve`.

use swarm_state::ends::End;
use swarm_state::ledger::Iteration;
use swarm_state::model::LoopStatus;
use swarm_state::notice::{counted, dollars, duration};
use swarm_state::screen::printable;

use super::connect::{QUICK, SLOW};
use super::ralph::no_loop;
use super::{Ctx, Ended, Failure};
use crate::cli::{PageFormat, RalphApprove, RalphDiff, RalphRestore, ReportArgs, ReportFormat, Why};
use crate::error::Result;
use crate::protocol::{
    Approved, Call, DiffParams, DiffView, Named, Report, ReportParams, RestoreParams, Restored,
};
use crate::ralph::{CheckResult, LoopIteration, RalphLoopResult};

mod page;

/// All of a report, however many answers it takes.
async fn whole(ctx: &Ctx, name: &str) -> Result<Report> {
    let ask = async |from| {
        let call = Call::RalphReport(ReportParams { name: name.to_owned(), from });
        ctx.ask::<Report>(&call, SLOW).await
    };
    let mut report = ask(1).await?;
    while let Some(next) = report.next.take() {
        let more = ask(next).await?;
        report.iterations.extend(more.iterations);
        report.next = more.next;
    }
    Ok(report)
}

/// `swarm report`
pub(super) async fn run(ctx: &Ctx, args: &ReportArgs) -> Ended {
    let report = whole(ctx, args.name.as_str()).await?;
    match args.format {
        ReportFormat::Json => ctx.out.json(&report)?,
        ReportFormat::Md => ctx.out.lines(&page::markdown(&report))?,
    }
    Ok(0)
}

/// `swarm why`
pub(super) async fn why(ctx: &Ctx, args: &Why) -> Ended {
    let report = whole(ctx, args.name.as_str()).await?;
    ctx.out.lines(&page::why(&report))?;
    Ok(0)
}

/// What `swarm loop` prints at the end.
pub(super) async fn result(ctx: &Ctx, name: &str, format: PageFormat, given_up: bool) -> Result<(), Failure> {
    let mut report = whole(ctx, name).await?;
    // It is paused, or goes on without whoever followed it; to them it is over.
    if given_up && report.end.is_none() {
        report.end = Some(End::Cancelled);
    }
    match format {
        PageFormat::Json => ctx.out.json(&result_of(&report)),
        PageFormat::Text => ctx.out.lines(&page::result(&report)),
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
        stop_reason: page::end_word(report).to_owned(),
        worktree_path: report.worktree.as_ref().map(|w| w.path.display().to_string()).unwrap_or_default(),
        baseline: report.baseline.iter().map(CheckResult::from).collect(),
    }
}

/// `swarm ralph diff`
pub(super) async fn diff(ctx: &Ctx, args: &RalphDiff) -> Ended {
    let name = args.name.as_str();
    let call = Call::RalphDiff(DiffParams { name: name.to_owned(), iteration: args.iteration });
    let view: DiffView = ctx.ask(&call, SLOW).await.map_err(|e| no_loop(name, e))?;
    ctx.out.raw(&swarm_state::screen::strip(&view.text))?;
    if view.truncated {
        ctx.out.warn("the diff is longer than this");
        ctx.out.hint(&format!("git diff {} {}", view.from, view.to));
    }
    Ok(0)
}

/// `swarm ralph restore`
pub(super) async fn restore(ctx: &Ctx, args: &RalphRestore) -> Ended {
    let name = args.name.as_str();
    let call = Call::RalphRestore(RestoreParams {
        name: name.to_owned(),
        iteration: args.iteration,
        dir: args.dir.as_deref().map(super::spawn::pinned).transpose()?,
        branch: args.branch.clone(),
    });
    let made: Restored = ctx.ask(&call, SLOW).await.map_err(|e| no_loop(name, e))?;
    ctx.out.note(&format!("restored {} on branch {}", made.reference, made.branch));
    ctx.out.line(&made.path.display().to_string())?;
    Ok(0)
}

/// `swarm ralph approve`
pub(super) async fn approve(ctx: &Ctx, args: &RalphApprove) -> Ended {
    let name = args.name.as_str();
    let call = Call::RalphApprove(Named { name: name.to_owned() });
    let approved: Approved = ctx.ask(&call, QUICK).await.map_err(|e| no_loop(name, e))?;
    if approved.files.is_empty() {
        ctx.out.warn(&format!("no protected file of '{name}' has changed"));
    }
    for file in &approved.files {
        ctx.out.line(&format!("approved {}", printable(file)))?;
    }
    Ok(0)
}
