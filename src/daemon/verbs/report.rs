//! `ralph.report`: what each iteration of a loop did.

use std::time::Duration;

use swarm_state::ends::LoopEnd;
use swarm_state::engine::{Now, Phase};
use swarm_state::ignored::IgnoredFiles;
use swarm_state::proof::Layer;

use crate::daemon::caller::refuse_own;
use crate::daemon::reply::Later;
use crate::daemon::slot::{Slot, loop_run_of};
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::ralph_diff::MAX_ANSWER_BYTES;
use crate::daemon::verbs::ralph_resume::limits_to_raise;
use crate::daemon::views;
use crate::error::{Error, Result};
use crate::git;
use crate::loops::{LoopRun, is_program};
use crate::protocol::{Report, ReportParams, Watched};
use crate::store::read_bounded;

/// How long a report waits for the ignored files of a worktree.
const LISTING_TIMEOUT: Duration = Duration::from_secs(3);

/// How many watched files a report names.
const MAX_WATCHED_FILES: usize = 20;

impl Supervisor {
    pub(crate) fn ralph_report(&mut self, params: &ReportParams, peer: Option<i32>) -> Later<Report> {
        let now = self.now();
        let (_, slot) = self.find_loop(&params.name)?;
        let has_secrets = slot.spec.ralph.as_ref().is_some_and(|r| !r.gates.rooms.is_empty());
        let is_own = has_secrets && refuse_own(slot, peer, "read its report").is_err();
        let (report, loop_run, from) = (outline(slot, now)?, loop_run_of(slot), params.from.max(1));
        Ok(Box::pin(async move {
            let tree = report.worktree.as_ref().filter(|_| from == 1).map(|tree| tree.path.clone());
            let filled = tokio::task::spawn_blocking(move || filled(report, &loop_run, from)).await;
            let mut report = filled.map_err(|e| Error::internal(format!("a report failed: {e}")))?;
            if is_own {
                hide_held_out(&mut report);
            }
            if let Some(tree) = tree.filter(|tree| tree.exists()) {
                let listed = tokio::time::timeout(LISTING_TIMEOUT, git::ignored(&tree)).await;
                report.ignored = listed.ok().and_then(Result::ok).unwrap_or_default();
            }
            Ok(report)
        }))
    }
}

/// The report's fields that need no file.
fn outline(slot: &Slot, now: Now) -> Result<Report> {
    let missing = || Error::internal("the loop's numbers are missing");
    let (ralph, spec) =
        (slot.engine.ralph().ok_or_else(missing)?, slot.spec.ralph.as_ref().ok_or_else(missing)?);
    let spent = ralph.spent(now);
    let (outages, outage_seconds) = ralph.outages(now.wall);
    let end = match slot.engine.phase() {
        Phase::Stopped { reason } => Some(reason.end()),
        Phase::Lost => Some(LoopEnd::Lost),
        _ => None,
    };
    let loop_run = loop_run_of(slot);
    Ok(Report {
        name: slot.spec.name.to_string(),
        task: String::new(),
        prompt_file: spec.prompt_file.clone(),
        status: slot.engine.loop_status().ok_or_else(missing)?,
        worker_status: slot.status(),
        reason: views::reason(slot),
        cause: views::cause(slot),
        outage: slot.engine.outage().map(|outage| outage.kind),
        paused_by: ralph.paused,
        outages,
        outage_seconds: outage_seconds as f64,
        end,
        started: slot.origin.started.to_rfc3339(),
        current_iteration: ralph.iteration,
        max_iterations: ralph.max_iterations,
        consecutive_failures: ralph.failures,
        gates: spec.gates.clone(),
        done_pattern: slot.spec.done_pattern.clone(),
        budgets: ralph.budgets.clone(),
        seconds: spent.time.as_secs_f64(),
        cost: spent.cost as f64 / 1e6,
        tokens: spent.tokens,
        baseline: vec![],
        iterations: vec![],
        next: None,
        watched: None,
        unapproved: vec![],
        approved: None,
        warnings: vec![],
        snapshots: loop_run.reference(0).trim_end_matches('0').trim_end_matches('/').to_owned(),
        cwd: loop_run.cwd,
        worktree: slot.worktree.clone(),
        sandbox: slot.spec.sandbox.as_ref().map(|sandbox| sandbox.kind),
        ignored: IgnoredFiles::default(),
        raise: limits_to_raise(slot),
    })
}

/// Adds the fields that are read from files, as far as they fit an answer.
fn filled(mut report: Report, loop_run: &LoopRun, from: u32) -> Report {
    report.task = match &report.gates.tasks {
        Some(gate) => format!("the task list {}", gate.file()),
        None => first_line(&report.prompt_file),
    };
    let mut room = MAX_ANSWER_BYTES;
    if from == 1 {
        if let Some(base) = loop_run.read_base() {
            let files = base.protected.keys().filter(|file| !is_program(file));
            let first = files.clone().take(MAX_WATCHED_FILES).cloned().collect();
            report.watched = Some(Watched { count: files.count() as u64, files: first });
            (report.baseline, report.warnings, report.approved) = (base.checks, base.warnings, base.approved);
            report.unapproved = loop_run.unapproved().unwrap_or_default();
            report.unapproved.truncate(MAX_WATCHED_FILES);
        }
        room = room.saturating_sub(size(&report.baseline));
    }
    for number in from..=report.current_iteration {
        let Some(iteration) = loop_run.read_iteration(number) else { continue };
        let takes = size(&iteration);
        if takes > room && !report.iterations.is_empty() {
            report.next = Some(number);
            break;
        }
        room = room.saturating_sub(takes);
        report.iterations.push(iteration);
    }
    report
}

/// Leaves out the held-out checks: the report is for their own agent.
fn hide_held_out(report: &mut Report) {
    report.gates.rooms.final_checks.clear();
    report.gates.rooms.hidden = None;
    for iteration in &mut report.iterations {
        // A warning may name a hidden file.
        iteration.warnings.clear();
        iteration.verdict.iter_mut().for_each(|verdict| verdict.cannot_check = None);
        let proofs = iteration.verdict.iter_mut().flat_map(|verdict| &mut verdict.proofs);
        for proof in proofs.filter(|proof| proof.layer == Layer::HeldOut) {
            (proof.check, proof.output) = (None, None);
        }
    }
}

fn size(value: &impl serde::Serialize) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

fn first_line(file: &std::path::Path) -> String {
    let text = read_bounded(file, 1 << 20).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = text.unwrap_or_default();
    let line =
        text.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(|line| !line.is_empty());
    line.unwrap_or_default().chars().take(200).collect()
}
