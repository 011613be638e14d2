//! Fetches the report of a loop, and formats the lines that `report`, `why`, `loop` and the follower share.

use std::path::Path;

use swarm_state::cause::Cause;
use swarm_state::ends::LoopEnd;
use swarm_state::gates::{CheckResult, Verdict};
use swarm_state::ledger::Iteration;
use swarm_state::model::{LoopStatus, Status};
use swarm_state::notice::{counted, dollars, duration};
use swarm_state::proof_summary::ProofSummary;
use swarm_state::screen::printable;
use unicode_width::UnicodeWidthStr;

use super::connect::SLOW_TIMEOUT;
use super::context::ClientContext;
use super::worker::quoted;
use crate::error::Result;
use crate::out::{for_hosts, host_with_files};
use crate::protocol::{Call, Report, ReportParams};
use crate::shell::quote_path;

pub(super) const EVIDENCE_LINES: usize = 3;

const MAX_QUOTED_CHECKS: usize = 3;

/// Fetches a whole report, with as many calls as it has pages.
pub(super) async fn fetch(ctx: &ClientContext, name: &str) -> Result<Report> {
    complete(ctx, page(ctx, name, 1).await?).await
}

/// Adds the pages that follow the first one.
pub(super) async fn complete(ctx: &ClientContext, mut report: Report) -> Result<Report> {
    while let Some(next) = report.next.take() {
        let more = page(ctx, &report.name, next).await?;
        report.iterations.extend(more.iterations);
        report.next = more.next;
    }
    Ok(report)
}

async fn page(ctx: &ClientContext, name: &str, from: u32) -> Result<Report> {
    ctx.call(&Call::RalphReport(ReportParams { name: name.to_owned(), from }), SLOW_TIMEOUT).await
}

/// The word for the loop's end; `paused` or `running` for one that has not ended.
pub(super) fn end_word(report: &Report) -> &'static str {
    match (report.end, report.status) {
        (Some(end), _) => end.word(),
        (None, LoopStatus::Paused) => "paused",
        (None, LoopStatus::Running | LoopStatus::Stopped | LoopStatus::Failed) => "running",
    }
}

/// Formats why the loop is in its state, after a colon and without the status, which stands before it.
pub(super) fn why(report: &Report) -> String {
    let reason = match &report.cause {
        Some(Cause::Paused { by, detail }) if report.worker_status == Status::Paused => {
            Some(detail.as_deref().unwrap_or(by.reason()))
        }
        _ => report.reason.as_deref(),
    };
    reason.map(|reason| format!(": {}", printable(reason))).unwrap_or_default()
}

/// Formats `3 iterations, 2m 5s, $0.12`.
pub(super) fn used(report: &Report) -> String {
    let count = counted(report.iterations.len() as u64, "iteration");
    let mut text = format!("{count}, {}", duration(report.seconds as u64, " "));
    if report.cost > 0.0 {
        text += &format!(", {}", dollars((report.cost * 1e6).round() as u64));
    }
    if report.tokens > 0 {
        text += &format!(", {}", counted(report.tokens, "token"));
    }
    text
}

pub(super) fn agent_seconds(iterations: &[Iteration]) -> f64 {
    iterations.iter().map(|it| it.seconds).sum()
}

/// The time of all checks; `None` if none is known.
pub(super) fn check_seconds(iterations: &[Iteration]) -> Option<f64> {
    iterations.iter().filter_map(Iteration::check_seconds).reduce(|sum, next| sum + next)
}

pub(super) fn gates(it: &Iteration) -> Vec<String> {
    let Some(verdict) = &it.verdict else { return vec![] };
    let mut lines = vec![];
    for check in &verdict.checks {
        let excused = verdict.excused.contains(&check.name);
        let word = if excused && !check.passed {
            "FAIL (it failed before the loop, allowed)"
        } else {
            outcome(check)
        };
        lines.push(format!("  {word}  {}", printable(&check.name)));
    }
    if let Some(tasks) = &verdict.tasks {
        lines.push(format!("  STORY {}", printable(&tasks.summary_with_count())));
        let checks = tasks.checks.iter();
        lines.extend(checks.map(|check| format!("  {}  {}", outcome(check), printable(&check.name))));
    }
    lines.extend(verdict.faults().iter().map(|remark| format!("  FAIL  {}", printable(remark))));
    let outputs =
        verdict.proofs.iter().filter(|proof| proof.fails()).filter_map(|proof| proof.output.as_ref());
    lines.extend(outputs.map(|file| format!("  output: {}", printable(&file.to_string_lossy()))));
    if verdict.promise.is_some_and(swarm_state::promise::Claim::holds) {
        let seen = verdict.promise_seen.map(|source| format!(" (promise seen in: {})", source.word()));
        lines.push(format!("  PASS  the agent printed its promise{}", seen.unwrap_or_default()));
    }
    if verdict.done_pattern == Some(true) {
        lines.push("  PASS  the done pattern appeared".into());
    }
    lines.extend(verdict.notes().iter().map(|note| format!("  note: {}", printable(note))));
    lines.extend(it.warnings.iter().map(|warning| format!("  warning: {}", printable(warning))));
    lines
}

/// The proof of an iteration: what holds, and what remains unproven.
pub(super) fn proof(report: &Report, it: &Iteration) -> ProofSummary {
    let watched = report.watched.as_ref().map(|watched| watched.count);
    it.verdict.as_ref().map(|verdict| ProofSummary::of(&report.gates, verdict, watched)).unwrap_or_default()
}

/// The same without the notes that [`gates`] shows.
pub(super) fn proof_to_show(report: &Report, it: &Iteration) -> ProofSummary {
    let mut summary = proof(report, it);
    let notes = it.verdict.as_ref().map(Verdict::notes).unwrap_or_default();
    summary.unproven.retain(|found| !notes.contains(found));
    summary
}

pub(super) fn outcome(check: &CheckResult) -> &'static str {
    match (check.passed, check.cut) {
        (true, _) => "PASS",
        (false, true) => "FAIL (the loop's time ran out)",
        (false, false) => "FAIL",
    }
}

pub(super) fn is_stuck_at_base(report: &Report) -> bool {
    report.end == Some(LoopEnd::Timeout) && report.iterations.is_empty()
}

/// Explains why there was no iteration, where the reason alone does not.
pub(super) fn before_first(report: &Report) -> Option<String> {
    let cut = report.baseline.iter().find(|check| check.cut);
    let cut = cut.map(|check| format!(" (at '{}')", printable(&check.name))).unwrap_or_default();
    is_stuck_at_base(report)
        .then(|| format!("the baseline used all of the loop's time{cut}; no agent was started"))
}

pub(super) fn worktree(report: &Report) -> Vec<String> {
    let Some(worktree) = &report.worktree else { return vec![] };
    let (path, repo) = (worktree.path.display(), worktree.base_repo.display());
    let ignored = &report.ignored;
    let (name, branch) = (&report.name, &worktree.branch);
    let look = format!("  look:   swarm ralph diff {name}");
    let mut lines = match host_with_files() {
        None => vec![
            format!("worktree: {path} (branch {branch}); commit the uncommitted work, then merge:"),
            look,
            format!("  commit: git -C '{path}' add -A && git -C '{path}' commit -m '{name}'"),
            format!("  merge:  git -C '{repo}' merge {branch}"),
        ],
        Some(host) => vec![
            format!("worktree on {host}: {path} (branch {branch})"),
            look,
            format!("  merge:  {}", merge_command(name, &worktree.base_repo, &last_work(report, branch))),
        ],
    };
    let mut remove = format!("  remove: swarm clean {name}");
    if !ignored.data.is_empty() {
        lines.push("  keep:   copy the ignored files that you need; they are in no commit".to_owned());
        remove.push_str(" --discard-ignored");
    }
    if !ignored.is_empty() {
        remove.push_str(&format!("  (deletes ignored files: {})", ignored.summary()));
    }
    lines.push(remove);
    for_hosts(&lines)
}

/// The snapshot with all work of a loop, including uncommitted files; the branch if there is none.
pub(super) fn last_work(report: &Report, branch: &str) -> String {
    let last = report.iterations.iter().rev().find(|it| it.commit.is_some());
    last.map_or_else(|| branch.to_owned(), |it| format!("{}/{}", report.snapshots, it.iteration))
}

/// The command that merges a branch or a snapshot of the worker. From a host, it comes into the repository of the
/// current directory.
pub(super) fn merge_command(name: &str, repo: &Path, work: &str) -> String {
    match host_with_files() {
        None => format!("git -C {} merge {work}", quote_path(repo)),
        Some(host) => {
            let fetched =
                work.strip_prefix("refs/swarm/").map(|rest| format!("refs/swarm-hosts/{host}/{rest}"));
            format!("swarm fetch {name} && git merge {}", fetched.as_deref().unwrap_or(work))
        }
    }
}

pub(super) fn watched(report: &Report) -> Option<String> {
    let watched = report.watched.as_ref().filter(|_| !report.gates.is_empty())?;
    if report.gates.allow_changed_checks {
        return Some("watched: no file, because of --allow-changed-checks".to_owned());
    }
    let shown: Vec<&str> = watched.files.iter().take(3).map(String::as_str).collect();
    let more = watched.count.saturating_sub(shown.len() as u64);
    Some(match (shown.is_empty(), more) {
        (true, _) if !report.gates.protect.is_empty() => {
            "watched: no file; --protect matches none".to_owned()
        }
        (true, _) => "watched: no file; add some with --protect".to_owned(),
        (false, 0) => format!("watched: {}", printable(&shown.join(", "))),
        (false, more) => format!("watched: {} and {more} more", printable(&shown.join(", "))),
    })
}

/// Lists the watched files that changed without approval, except those that the last iteration lists already.
pub(super) fn unapproved(report: &Report) -> Option<String> {
    let verdict = report.iterations.last().and_then(|last| last.verdict.as_ref());
    let is_listed = |file: &String| verdict.is_some_and(|verdict| verdict.changed.contains(file));
    let unlisted: Vec<String> = report.unapproved.iter().filter(|file| !is_listed(file)).cloned().collect();
    let files = printable(&swarm_state::notice::named(&unlisted, 3));
    (!unlisted.is_empty()).then(|| format!("changed without approval since the start: {files}"))
}

/// Whether the agent's last output explains the end of the iteration.
pub(super) fn shows_output(it: &Iteration) -> bool {
    !it.last_lines.is_empty() && it.trouble().is_some() && !it.is_complete()
}

/// Quotes the last output of an agent that failed.
pub(super) fn quoted_agent(it: &Iteration) -> Vec<String> {
    if shows_output(it) { quoted_end(&it.last_lines) } else { vec![] }
}

/// Quotes the last output of a check, which ends with its exit status.
pub(super) fn quoted_check(output: &str) -> Vec<String> {
    quoted_end(&output.lines().map(str::to_owned).collect::<Vec<_>>())
}

/// Quotes the last output of the checks that failed, each below its name.
pub(super) fn quoted_checks(it: &Iteration) -> Vec<String> {
    let Some(verdict) = &it.verdict else { return vec![] };
    let failed = verdict.failed_checks().take(MAX_QUOTED_CHECKS);
    let lines = failed.flat_map(|check| {
        let name = format!("  {}  {}", outcome(check), printable(&check.name));
        [name].into_iter().chain(quoted_check(&check.output))
    });
    lines.collect()
}

/// Quotes the last lines that are not empty.
pub(super) fn quoted_end(lines: &[String]) -> Vec<String> {
    let mut last: Vec<String> =
        lines.iter().rev().filter(|line| !line.trim().is_empty()).take(EVIDENCE_LINES).cloned().collect();
    last.reverse();
    quoted(&last).collect()
}

/// Breaks a next step into lines of `width` columns behind `head`, only after punctuation: a command stays on one line.
pub(super) fn wrapped(head: &str, next: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for word in next.split_inclusive(' ') {
        let can_break = parts.last().is_some_and(|part| part.trim_end().ends_with([',', ';', ':']));
        match parts.last_mut().filter(|_| !can_break) {
            Some(part) => part.push_str(word),
            None => parts.push(word.to_owned()),
        }
    }
    let mut lines = vec![head.to_owned()];
    for (index, part) in parts.iter().enumerate() {
        match lines.last_mut() {
            Some(line) if index == 0 || line.width() + part.trim_end().width() <= width => {
                line.push_str(part)
            }
            _ => lines.push(" ".repeat(head.len()) + part),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}
