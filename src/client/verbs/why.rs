//! `swarm why`: where a loop stands, and what to do next.

use swarm_state::advice::{Situation, next_step};
use swarm_state::cause::Cause;
use swarm_state::ends::LoopEnd;
use swarm_state::gates::Verdict;
use swarm_state::ledger::Iteration;
use swarm_state::model::LoopStatus;
use swarm_state::notice::{StopReason, duration};
use swarm_state::screen::printable;

use crate::cli::Why;
use crate::client::context::Context;
use crate::client::report::{before_first, fetch, gates, is_stuck_at_base, unapproved, used, watched};
use crate::out::CommandResult;
use crate::protocol::Report;

pub(super) async fn run(ctx: &Context, args: &Why) -> CommandResult {
    let report = fetch(ctx, args.name.as_str()).await?;
    ctx.out.lines(&page(&report))?;
    Ok(0)
}

/// `swarm why`: ten lines at most, and the last output of an agent that failed.
fn page(report: &Report) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} (iteration {}/{}){}",
        report.name,
        report.worker_status,
        report.current_iteration,
        report.max_iterations,
        report.reason.as_ref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default()
    )];
    if !report.task.is_empty() {
        lines.push(format!("task: {}", printable(&report.task)));
    }
    lines.push(format!("used: {}", used(report)));
    lines.extend(watched(report));
    lines.extend(before_first(report));
    lines.extend(report.warnings.iter().take(1).map(|warning| format!("warning: {}", printable(warning))));
    lines.extend(unapproved(report));
    if let Some(last) = report.iterations.last() {
        lines.push(ending(last));
        let gates = gates(last);
        let room = 9_usize.saturating_sub(lines.len());
        let more = gates.len().saturating_sub(room);
        let shown = if more > 0 { room.saturating_sub(1) } else { room };
        lines.extend(gates.into_iter().take(shown));
        if more > 0 {
            lines.push(format!("  and {} more: swarm report {}", more + 1, report.name));
        }
        lines.extend(last_output(report, last));
    }
    lines.push(format!("next: {}", next(report)));
    lines
}

/// How an iteration ended, in one line.
fn ending(it: &Iteration) -> String {
    let verb = if it.has_failed() && !is_complete(it) { "failed" } else { "ended" };
    let took = duration(it.seconds as u64, " ");
    let why = it.trouble().or_else(|| it.end.map(|_| it.reason.clone()));
    let why = why.map(|why| format!(": {}", printable(&why))).unwrap_or_default();
    format!("iteration {} {verb} after {took}{why}", it.iteration)
}

/// Whether every gate held, however the agent ended.
fn is_complete(it: &Iteration) -> bool {
    it.verdict.as_ref().is_some_and(Verdict::is_complete)
}

/// What the agent of an iteration that did not do well printed last.
fn last_output(report: &Report, it: &Iteration) -> Vec<String> {
    if it.last_lines.is_empty() || it.trouble().is_none() || is_complete(it) {
        return vec![];
    }
    let mut lines = vec![format!("the agent's last output (full log: swarm logs {}):", report.name)];
    lines.extend(it.last_lines.iter().map(|line| format!("  | {}", printable(line))));
    lines
}

/// What the checks that run are for.
fn at_checks(report: &Report) -> String {
    match report.watched {
        // The base line is not written down yet.
        None => "the base line is taken, then the first starts".to_owned(),
        Some(_) => format!("that of iteration {} has ended", report.current_iteration),
    }
}

/// What to do next.
fn next(report: &Report) -> String {
    let name = &report.name;
    let is_unfinished = |end: LoopEnd| end.exit_code(true) != 0;
    let verdict = report.iterations.last().and_then(|it| it.verdict.as_ref());
    let was_changed = verdict.is_some_and(|verdict| !verdict.changed.is_empty());
    // While an agent works, it may still put right what no iteration ended with.
    let changed = !report.unapproved.is_empty() && (was_changed || report.end.is_some());
    if was_changed && !changed && report.end.is_some_and(is_unfinished) {
        return format!("no watched file differs from what is approved: swarm respawn {name}");
    }
    if changed && report.end.is_none_or(is_unfinished) {
        let again = if report.end.is_some() { format!(", then swarm respawn {name}") } else { String::new() };
        return format!(
            "look at the changed checks (swarm ralph diff {name}); to take them: swarm ralph approve {name}{again}"
        );
    }
    if let Some(end) = report.end {
        return after(report, end);
    }
    let situation = Situation {
        name,
        status: report.worker_status,
        is_loop: true,
        is_paused: report.status == LoopStatus::Paused,
        cause: report.cause.as_ref(),
    };
    match &report.cause {
        Some(Cause::Checking { .. }) => {
            format!("nothing; the checks run, and no agent: {}", at_checks(report))
        }
        _ => next_step(&situation)
            .unwrap_or_else(|| format!("nothing; swarm attach {name} shows the agent at work")),
    }
}

/// What to do after an end.
fn after(report: &Report, end: LoopEnd) -> String {
    let name = &report.name;
    match end {
        LoopEnd::Lost => format!("swarm ralph resume {name}"),
        LoopEnd::AllChecksPassed | LoopEnd::PromiseAccepted | LoopEnd::DonePattern => {
            match &report.worktree {
                Some(worktree) => {
                    format!(
                        "git -C '{}' merge {}",
                        worktree.base_repo.display(),
                        work(report, &worktree.branch)
                    )
                }
                None => format!("look at the work: swarm ralph diff {name}"),
            }
        }
        _ if matches!(&report.cause, Some(Cause::Stopped { reason: StopReason::NoGate, .. })) => {
            "ask for something that does not fail already, or leave --allow-preexisting out".to_owned()
        }
        _ if report.iterations.last().is_some_and(|it| it.no_agent) => {
            format!("mend why the agent was not started, then swarm respawn {name}")
        }
        _ if is_stuck_at_base(report) => {
            "give it more time (--max-time) or quicker checks; a respawn would end the same".to_owned()
        }
        LoopEnd::MaxIterations | LoopEnd::BudgetExhausted | LoopEnd::Timeout => {
            format!("more of it: swarm respawn {name}; or look: swarm report {name}")
        }
        LoopEnd::PromptMissing => {
            format!("put {} back, then swarm respawn {name}", report.prompt_file.display())
        }
        LoopEnd::Failed | LoopEnd::Killed | LoopEnd::Cancelled => {
            format!("see what it printed: swarm logs {name}; then swarm respawn {name}")
        }
    }
}

/// What a merge must name to bring all of the work: the last snapshot, which holds what nobody committed too.
fn work(report: &Report, branch: &str) -> String {
    let last = report.iterations.iter().rev().find(|it| it.commit.is_some());
    last.map_or_else(|| branch.to_owned(), |it| format!("{}/{}", report.snapshots, it.iteration))
}
