//! The report of one loop as Markdown, which is also its text.

use chrono::{DateTime, FixedOffset};
use swarm_state::ledger::Iteration;
use swarm_state::notice::{IterationExit, counted, dollars, duration};
use swarm_state::screen::printable;
use swarm_state::tasks::history::{StoryHistory, story_histories};

use crate::client::report::{
    agent_seconds, before_first, check_seconds, end_word, gates, outcome, proof_to_show, quoted_agent,
    quoted_check, unapproved, used, watched, why, worktree,
};
use crate::client::worker::local_time;
use crate::protocol::Report;

/// The report without the iterations that ended before a time.
pub(super) fn after(report: &Report, since: Option<DateTime<FixedOffset>>) -> Report {
    let mut report = report.clone();
    let is_late = |it: &Iteration| {
        since.is_none_or(|since| DateTime::parse_from_rfc3339(&it.ended).is_ok_and(|at| at >= since))
    };
    report.iterations.retain(is_late);
    report
}

pub(super) fn baseline(report: &Report) -> Vec<String> {
    let rows = report.baseline.iter().map(|check| format!("- {} {}", outcome(check), printable(&check.name)));
    titled("Before the first iteration:", rows.collect())
}

pub(super) fn remarks(report: &Report) -> Vec<String> {
    let found = watched(report)
        .into_iter()
        .chain(unapproved(report))
        .chain(report.warnings.iter().map(|w| format!("warning: {w}")));
    titled("All iterations:", found.map(|line| format!("- {}", printable(&line))).collect())
}

fn titled(title: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    [vec![String::new(), title.to_owned(), String::new()], lines].concat()
}

fn stories(report: &Report) -> Vec<String> {
    let rows = story_histories(&report.iterations);
    if rows.is_empty() {
        return vec![];
    }
    let head = ["", "| story | state | reviews | iterations | title |", "|---|---|---|---|---|"];
    let row = |row: &StoryHistory| {
        let title = printable(&row.title).replace('|', "\\|");
        format!(
            "| {} | {} | {} | {} | {title} |",
            printable(&row.story),
            row.state,
            row.reviews,
            row.iterations
        )
    };
    head.map(str::to_owned).into_iter().chain(rows.iter().map(row)).collect()
}

pub(super) fn markdown(report: &Report, since: Option<DateTime<FixedOffset>>) -> Vec<String> {
    let mut lines = vec![format!("# {}", report.name), String::new()];
    if !report.task.is_empty() {
        lines.extend([printable(&report.task), String::new()]);
    }
    let used = used(report);
    let report = &after(report, since);
    lines.extend(summary(report, &used, since));
    lines.extend(before_first(report));
    let table_row = |cells: [String; 10]| format!("| {} |", cells.join(" | "));
    lines.extend([String::new(), table_row(HEADER.map(str::to_owned))]);
    lines.push("|---|---|---|---|---|---|---|---|---|---|".into());
    lines.extend(report.iterations.iter().map(|it| table_row(cells(it))));
    lines.extend(baseline(report));
    lines.extend(stories(report));
    lines.extend(remarks(report));
    lines.extend(report.iterations.iter().flat_map(of_iteration));
    lines.extend(proof_lines(report));
    let worktree = worktree(report);
    if !worktree.is_empty() {
        lines.push(String::new());
        lines.extend(worktree);
    }
    lines
}

/// Formats the state of the loop and its use of time.
pub(super) fn summary(report: &Report, used: &str, since: Option<DateTime<FixedOffset>>) -> Vec<String> {
    let mut lines = vec![format!("{}, {used}{}", end_word(report), why(report))];
    if let Some(since) = since {
        let iterations = counted(report.iterations.len() as u64, "iteration");
        lines.push(format!("since {}: {iterations}", since.format("%Y-%m-%d %H:%M")));
    }
    if let Some(checks) = check_seconds(&report.iterations) {
        let time = |seconds: f64| duration(seconds as u64, " ");
        lines.push(format!("agent: {}, checks: {}", time(agent_seconds(&report.iterations)), time(checks)));
    }
    lines.extend(report.sandbox.map(|kind| format!("sandbox: {}", kind.as_str())));
    if report.outages > 0 {
        let lost = duration(report.outage_seconds as u64, " ");
        lines.push(format!("{}, {lost} lost", counted(u64::from(report.outages), "outage")));
    }
    lines
}

/// Formats the gates of an iteration, with the last output of checks and of an agent that failed.
pub(super) fn of_iteration(it: &Iteration) -> Vec<String> {
    let (gates, agent) = (gates(it), quoted_agent(it));
    if gates.is_empty() && agent.is_empty() {
        return vec![];
    }
    let how = it.trouble().map(|how| format!(" ({})", printable(&how))).unwrap_or_default();
    let mut lines = vec![String::new(), format!("Iteration {}{how}:", it.iteration), String::new()];
    if !agent.is_empty() {
        lines.push("- the agent's last output:".to_owned());
        lines.extend(agent);
    }
    let checks = it.verdict.as_ref().map_or(&[][..], |verdict| &verdict.checks);
    for (number, gate) in gates.iter().enumerate() {
        lines.push(format!("- {}", gate.trim_start()));
        if let Some(check) = checks.get(number).filter(|check| !check.passed) {
            lines.extend(quoted_check(&check.output));
        }
    }
    lines
}

/// Formats the proof of the last iteration, if it is complete.
pub(super) fn proof_lines(report: &Report) -> Vec<String> {
    let Some(last) = report.iterations.last().filter(|it| it.is_complete()) else { return vec![] };
    let summary = proof_to_show(report, last);
    if summary.holds.is_empty() {
        return vec![];
    }
    let mut lines = vec![String::new(), "Proof:".into(), String::new()];
    lines.extend(summary.holds.iter().map(|found| format!("- {}", printable(found))));
    lines.extend(summary.unproven.iter().map(|found| format!("- unproven: {}", printable(found))));
    lines
}

pub(super) const HEADER: [&str; 10] =
    ["iteration", "started", "agent", "checks", "exit", "cost", "tokens", "tools", "changed", "snapshot"];

pub(super) fn cells(it: &Iteration) -> [String; 10] {
    let unknown = || "-".to_owned();
    let verdict = it.verdict.as_ref();
    let exit = match (it.exit_code, it.signal) {
        _ if it.end.is_some() && !it.no_agent => it.end.map(IterationExit::word).unwrap_or_default(),
        (_, Some(signal)) => format!("signal {signal}"),
        _ if it.no_agent => "not started".into(),
        (Some(code), None) => code.to_string(),
        (None, None) => "unknown".into(),
    };
    [
        it.iteration.to_string(),
        it.started.as_deref().map_or_else(unknown, |at| local_time(at).replace(' ', "T")),
        duration(it.seconds as u64, " "),
        it.check_seconds().map_or_else(unknown, |seconds| duration(seconds as u64, " ")),
        exit,
        verdict.and_then(|v| v.cost).map_or_else(unknown, dollars),
        verdict.and_then(|v| v.tokens).map_or_else(unknown, |n| n.to_string()),
        it.tool_calls.map_or_else(unknown, |n| n.to_string()),
        it.diff.map_or_else(unknown, |d| format!("{} +{} -{}", counted(d.files, "file"), d.added, d.removed)),
        it.commit.as_deref().map_or_else(unknown, |commit| commit.chars().take(10).collect()),
    ]
}
