//! The page of `swarm why` for a loop, and the next step that a loop's report suggests.

use swarm_state::advice::{Situation, next_step, raise_and_resume, raise_memory, start_again};
use swarm_state::cause::Cause;
use swarm_state::ends::LoopEnd;
use swarm_state::gates::CheckResult;
use swarm_state::ledger::Iteration;
use swarm_state::model::LoopStatus;
use swarm_state::notice::{StopReason, duration};
use swarm_state::proof::Layer;
use swarm_state::proof_summary::in_force;
use swarm_state::replay::refuses_tests;
use swarm_state::screen::printable;

use crate::client::report::{
    before_first, gates, is_stuck_at_base, last_work, merge_command, proof_to_show, shows_output, unapproved,
    used, watched, why,
};
use crate::client::worker::{quoted, reset};
use crate::protocol::Report;

/// Formats the page: at most eleven lines, and the last output of an agent that failed or the proof of a complete
/// loop.
pub(super) fn page(report: &Report) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} (iteration {}/{}){}",
        report.name,
        report.worker_status,
        report.current_iteration,
        report.max_iterations,
        why(report)
    )];
    lines.extend(reset(report.cause.as_ref()).map(|reset| format!("goes on: {reset}")));
    if !report.task.is_empty() {
        lines.push(format!("task: {}", printable(&report.task)));
    }
    lines.push(format!("used: {}", used(report)));
    lines.extend(watched(report));
    let is_complete = report.iterations.last().is_some_and(Iteration::is_complete);
    let in_force = in_force(&report.gates);
    lines
        .extend((!is_complete && !in_force.is_empty()).then(|| format!("in force: {}", in_force.join(", "))));
    lines.extend(before_first(report));
    lines.extend(report.warnings.iter().take(1).map(|warning| format!("warning: {}", printable(warning))));
    lines.extend(unapproved(report));
    if let Some(last) = report.iterations.last() {
        lines.push(ending(last));
        let gates = gates(last);
        let room = 10_usize.saturating_sub(lines.len());
        let more = gates.len().saturating_sub(room);
        let shown = if more > 0 { room.saturating_sub(1) } else { room };
        lines.extend(gates.into_iter().take(shown));
        if more > 0 {
            lines.push(format!("  and {} more: swarm report {}", more + 1, report.name));
        }
        lines.extend(last_output(report, last));
        lines.extend(proof_lines(report, last));
    }
    lines.push(format!("next: {}", next(report)));
    lines
}

fn proof_lines(report: &Report, it: &Iteration) -> Vec<String> {
    if !it.is_complete() {
        return vec![];
    }
    let summary = proof_to_show(report, it);
    let parts = [("proof:", summary.holds), ("unproven:", summary.unproven)];
    let parts = parts.into_iter().filter(|(_, found)| !found.is_empty());
    let lines = |(head, found): (&str, Vec<String>)| {
        let found = found.into_iter().map(|found| format!("  {}", printable(&found)));
        std::iter::once(head.to_owned()).chain(found).collect::<Vec<_>>()
    };
    parts.flat_map(lines).collect()
}

fn ending(it: &Iteration) -> String {
    let verb = if it.has_failed() && !it.is_complete() { "failed" } else { "ended" };
    let took = duration(it.seconds as u64, " ");
    let why = it.trouble().or_else(|| it.end.map(|_| it.reason.clone()));
    let why = why.map(|why| format!(": {}", printable(&why))).unwrap_or_default();
    format!("iteration {} {verb} after {took}{why}", it.iteration)
}

/// Shows the last output of the agent when its iteration failed.
fn last_output(report: &Report, it: &Iteration) -> Vec<String> {
    if !shows_output(it) {
        return vec![];
    }
    let mut lines = vec![format!("the agent's last output (full log: swarm logs {}):", report.name)];
    lines.extend(quoted(&it.last_lines));
    lines
}

fn at_checks(report: &Report) -> String {
    match report.watched {
        // The baseline is not complete yet.
        None => "the baseline, before the first iteration".to_owned(),
        Some(_) => format!("after iteration {}", report.current_iteration),
    }
}

/// Suggests the next step, or explains why there is nothing to do.
fn next(report: &Report) -> String {
    step(report).unwrap_or_else(|| match &report.cause {
        Some(Cause::Checking { .. }) => {
            format!("nothing to do; checks are running: {}", at_checks(report))
        }
        _ => format!("nothing to do; to watch the agent: swarm attach {}", report.name),
    })
}

/// Suggests the next step; `None` if there is nothing to do.
pub(super) fn step(report: &Report) -> Option<String> {
    let name = &report.name;
    let is_unfinished = |end: LoopEnd| end.exit_code(true) != 0;
    let verdict = report.iterations.last().and_then(|it| it.verdict.as_ref());
    let was_changed = verdict.is_some_and(|verdict| !verdict.changed.is_empty());
    // While an agent works, it may still restore files that no iteration ended with.
    // A missing task file is one of them. Only restoring it helps.
    let changed = !report.unapproved.is_empty()
        && (was_changed || report.end.is_some())
        && report.end != Some(LoopEnd::PromptMissing);
    let is_approved = was_changed && report.unapproved.is_empty();
    if is_approved && report.end.is_some_and(is_unfinished) {
        return Some(format!("all watched files are as approved: {}", again(report)));
    }
    let reviews = [
        (changed, "the changed checks", "them"),
        (lacks_tests(report), "the tests", "their number"),
        (changed_tests(report), "the changed tests", "them"),
    ];
    let review = reviews.iter().find(|(applies, ..)| *applies);
    if let Some((_, what, accepted)) = review.filter(|_| report.end.is_none_or(is_unfinished)) {
        let again = report.end.map(|_| format!(", then {}", again(report))).unwrap_or_default();
        return Some(format!(
            "review {what} (swarm ralph diff {name}); to accept {accepted}: swarm ralph approve {name}{again}"
        ));
    }
    let lacks_memory = report.iterations.last().is_some_and(Iteration::is_out_of_memory);
    if lacks_memory && report.end.is_some_and(is_unfinished) {
        return Some(raise_memory(name));
    }
    if let Some(end) = report.end {
        return Some(after(report, end));
    }
    let situation = Situation {
        name,
        status: report.worker_status,
        is_loop: true,
        is_paused: report.status == LoopStatus::Paused,
        cause: report.cause.as_ref(),
        raise: report.raise.as_deref(),
    };
    match &report.cause {
        Some(Cause::Checking { .. }) => None,
        _ => next_step(&situation),
    }
}

/// Whether the last iteration was refused because of its tests, which were not approved since.
fn lacks_tests(report: &Report) -> bool {
    let Some(verdict) = report.iterations.last().and_then(|it| it.verdict.as_ref()) else { return false };
    let is_approved = |name: &str| {
        let tests =
            |checks: &[CheckResult]| checks.iter().find(|check| check.name == name).map(|check| check.tests);
        tests(&report.baseline) == tests(&verdict.checks)
    };
    verdict.proofs.iter().any(|proof| {
        let is_open = proof.check.as_ref().is_none_or(|name| !is_approved(name));
        proof.fails() && proof.layer == Layer::Inventory && is_open
    })
}

/// Whether the last iteration was refused because of changed test files that were not approved since.
fn changed_tests(report: &Report) -> bool {
    let last = report.iterations.last().filter(|last| last.commit != report.approved);
    let verdict = last.and_then(|last| last.verdict.as_ref());
    verdict.is_some_and(|verdict| verdict.proofs.iter().any(refuses_tests))
}

fn after(report: &Report, end: LoopEnd) -> String {
    let name = &report.name;
    match end {
        LoopEnd::Lost => start_again(name, true),
        LoopEnd::AllChecksPassed
        | LoopEnd::PromiseAccepted
        | LoopEnd::StoriesApproved
        | LoopEnd::DonePattern => match &report.worktree {
            Some(worktree) => merge_command(name, &worktree.base_repo, &last_work(report, &worktree.branch)),
            None if report.iterations.iter().any(|it| it.commit.is_some()) => {
                format!("review the work: swarm ralph diff {name}")
            }
            None => format!("review the work in {}", report.cwd.display()),
        },
        _ if matches!(&report.cause, Some(Cause::Stopped { reason: StopReason::NoGate, .. })) => {
            "require a check that passes at the start, or omit --allow-preexisting".to_owned()
        }
        _ if report.iterations.last().is_some_and(|it| it.no_agent) => {
            format!("fix why the agent did not start, then {}", again(report))
        }
        _ if is_stuck_at_base(report) => {
            "allow more time (--max-time) or use faster checks; a respawn would end in the same way"
                .to_owned()
        }
        LoopEnd::MaxIterations | LoopEnd::BudgetExhausted | LoopEnd::Timeout => {
            let verb = if report.raise.is_some() { "continue it" } else { "start it again" };
            // `ralph clean` deletes the iterations.
            let details = report.iterations.first().map(|_| format!("for details: swarm report {name}; "));
            format!("{}to {verb}: {}", details.unwrap_or_default(), again(report))
        }
        LoopEnd::PromptMissing => {
            format!("restore {}, then swarm respawn {name}", report.prompt_file.display())
        }
        LoopEnd::Failed | LoopEnd::Killed | LoopEnd::Cancelled => {
            format!("see its output: swarm logs {name}; then {}", again(report))
        }
    }
}

/// Returns the command that continues a loop that ended at a limit, or starts the loop again.
fn again(report: &Report) -> String {
    let name = &report.name;
    let continued = report.raise.as_ref().map(|changes| raise_and_resume(name, changes));
    continued.unwrap_or_else(|| format!("swarm respawn {name}"))
}
