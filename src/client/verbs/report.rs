//! `swarm report`: summarize each iteration of one loop, or of all, the worst first.

use chrono::{DateTime, FixedOffset};
use serde_json::json;
use swarm_state::ledger::Iteration;
use swarm_state::notice::{IterationExit, counted, dollars, duration};
use swarm_state::screen::printable;
use swarm_state::tasks::history::{StoryHistory, story_histories};

use crate::cli::{PageFormat, ReportArgs, ReportFormat};
use crate::client::batch::BatchErrors;
use crate::client::context::ClientContext;
use crate::client::evidence;
use crate::client::json;
use crate::client::report::{
    agent_seconds, before_first, check_seconds, end_word, fetch, gates, outcome, proof_to_show, unapproved,
    used, watched, worktree,
};
use crate::client::verbs::why::{facts, worst_first};
use crate::client::worker::{is_loop, local_time};
use crate::out::CommandResult;
use crate::out::json::error_object;
use crate::protocol::{Call, Report, ReportParams, WorkerView};

/// How much of a report is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Full,
    /// The table, and the last iteration.
    Short,
}

pub(super) async fn run(ctx: &ClientContext, args: &ReportArgs) -> CommandResult {
    let Some(name) = &args.name else { return all(ctx, args).await };
    let report = fetch(ctx, name.as_str()).await?;
    match args.format {
        ReportFormat::Json => ctx.out.json(&json::report(&report, &after(&report, args.since).iterations))?,
        ReportFormat::Md => {
            ctx.out.lines(&markdown(&report, args.since, Length::Full))?;
            ctx.report_seen(&report.name, report.worker_status.is_finished()).await;
        }
    }
    Ok(0)
}

/// Prints a short report for each worker.
async fn all(ctx: &ClientContext, args: &ReportArgs) -> CommandResult {
    let workers = worst_first(ctx, args.since).await?;
    let call = |worker: &WorkerView| {
        is_loop(worker).then(|| Call::RalphReport(ReportParams { name: worker.name.clone(), from: 1 }))
    };
    let mut errors = BatchErrors::new(ctx.out, PageFormat::Text, false);
    let (mut objects, mut pages) = (vec![], vec![]);
    for (worker, facts) in workers.iter().zip(facts(ctx, &workers, call).await?) {
        match (facts.report, facts.output) {
            (Ok(Some(report)), _) => {
                objects.push(json::report(&report, &after(&report, args.since).iterations));
                pages.push(markdown(&report, args.since, Length::Short).join("\n"));
            }
            (Ok(None), Ok(output)) => {
                let lines = output.map(|output| output.lines).unwrap_or_default();
                objects.push(json::plain_report(worker, &lines));
                pages.push(plain(worker, &lines).join("\n"));
            }
            (Err(error), _) | (_, Err(error)) => {
                objects.push(json!({"name": worker.name, "error": error_object(&error)}));
                errors.add(&worker.name, error)?;
            }
        }
    }
    match args.format {
        ReportFormat::Json => ctx.out.json_list(&objects)?,
        ReportFormat::Md if pages.is_empty() => {}
        ReportFormat::Md => ctx.out.line(&pages.join("\n\n"))?,
    }
    errors.end()
}

/// The report without the iterations that ended before a time.
fn after(report: &Report, since: Option<DateTime<FixedOffset>>) -> Report {
    let mut report = report.clone();
    let is_late = |it: &Iteration| {
        since.is_none_or(|since| DateTime::parse_from_rfc3339(&it.ended).is_ok_and(|at| at >= since))
    };
    report.iterations.retain(is_late);
    report
}

/// Formats the table of the stories of a task list.
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

/// Formats the section of a worker that is not a loop.
fn plain(worker: &WorkerView, output: &[String]) -> Vec<String> {
    let reason = worker.reason.as_deref().filter(|reason| *reason != worker.status.as_str());
    let reason = reason.map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
    let mut lines = vec![format!("# {}", worker.name), String::new(), format!("{}{reason}", worker.status)];
    lines.extend(evidence::last_lines(output));
    lines
}

/// Formats the report as Markdown.
fn markdown(report: &Report, since: Option<DateTime<FixedOffset>>, length: Length) -> Vec<String> {
    let mut lines = vec![format!("# {}", report.name), String::new()];
    if !report.task.is_empty() {
        lines.extend([printable(&report.task), String::new()]);
    }
    let used = used(report);
    let report = &after(report, since);
    lines.extend(summary(report, &used, since));
    lines.extend(before_first(report));
    if !report.iterations.is_empty() || length == Length::Full {
        lines.extend([String::new(), header(), "|---|---|---|---|---|---|---|---|---|---|".into()]);
        lines.extend(report.iterations.iter().map(row));
    }
    if length == Length::Short {
        lines.extend(report.iterations.last().map(of_iteration).unwrap_or_default());
        lines.extend(proof_lines(report));
        return lines;
    }
    if !report.baseline.is_empty() {
        lines.extend([String::new(), "Before the first iteration:".into(), String::new()]);
        lines.extend(report.baseline.iter().map(|c| format!("- {} {}", outcome(c), printable(&c.name))));
    }
    lines.extend(stories(report));
    let told = watched(report)
        .into_iter()
        .chain(unapproved(report))
        .chain(report.warnings.iter().map(|w| format!("warning: {w}")));
    let told: Vec<String> = told.map(|line| format!("- {}", printable(&line))).collect();
    if !told.is_empty() {
        lines.extend([String::new(), "All iterations:".into(), String::new()]);
        lines.extend(told);
    }
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
fn summary(report: &Report, used: &str, since: Option<DateTime<FixedOffset>>) -> Vec<String> {
    let why = report.reason.as_ref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
    let mut lines = vec![format!("{}, {used}{why}", end_word(report))];
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
fn of_iteration(it: &Iteration) -> Vec<String> {
    let (gates, agent) = (gates(it), evidence::of_agent(it));
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
            lines.extend(evidence::of_check(&check.output));
        }
    }
    lines
}

/// Formats the proof of the last iteration, if it is complete.
fn proof_lines(report: &Report) -> Vec<String> {
    let is_complete = |it: &&Iteration| it.is_complete();
    let Some(last) = report.iterations.last().filter(is_complete) else { return vec![] };
    let summary = proof_to_show(report, last);
    if summary.holds.is_empty() {
        return vec![];
    }
    let mut lines = vec![String::new(), "Proof:".into(), String::new()];
    lines.extend(summary.holds.iter().map(|found| format!("- {}", printable(found))));
    lines.extend(summary.unproven.iter().map(|found| format!("- unproven: {}", printable(found))));
    lines
}

fn header() -> String {
    "| iteration | started | agent | checks | exit | cost | tokens | tools | changed | snapshot |".into()
}

fn row(it: &Iteration) -> String {
    let unknown = || "-".to_owned();
    let verdict = it.verdict.as_ref();
    let exit = match (it.exit_code, it.signal) {
        _ if it.end.is_some() && !it.no_agent => it.end.map(IterationExit::word).unwrap_or_default(),
        (_, Some(signal)) => format!("signal {signal}"),
        _ if it.no_agent => "not started".into(),
        (Some(code), None) => code.to_string(),
        (None, None) => "unknown".into(),
    };
    let cells = [
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
    ];
    format!("| {} |", cells.join(" | "))
}
