//! `swarm report`: summarize each iteration of a loop.

use swarm_state::ledger::Iteration;
use swarm_state::notice::{IterationExit, counted, dollars, duration};
use swarm_state::screen::printable;

use crate::cli::{ReportArgs, ReportFormat};
use crate::client::context::ClientContext;
use crate::client::json;
use crate::client::report::{
    before_first, end_word, fetch, gates, outcome, unapproved, used, watched, worktree,
};
use crate::client::worker::local_time;
use crate::out::CommandResult;
use crate::protocol::Report;

pub(super) async fn run(ctx: &ClientContext, args: &ReportArgs) -> CommandResult {
    let report = fetch(ctx, args.name.as_str()).await?;
    match args.format {
        ReportFormat::Json => ctx.out.json(&json::report(&report))?,
        ReportFormat::Md => ctx.out.lines(&markdown(&report))?,
    }
    Ok(0)
}

/// Formats the report as Markdown.
fn markdown(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("# {}", report.name), String::new()];
    if !report.task.is_empty() {
        lines.extend([printable(&report.task), String::new()]);
    }
    let why = report.reason.as_ref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
    lines.push(format!("{}, {}{why}", end_word(report), used(report)));
    lines.extend(before_first(report));
    lines.extend([String::new(), header(), "|---|---|---|---|---|---|---|---|---|".into()]);
    lines.extend(report.iterations.iter().map(row));
    if !report.baseline.is_empty() {
        lines.extend([String::new(), "Before the first iteration:".into(), String::new()]);
        lines.extend(report.baseline.iter().map(|c| format!("- {} {}", outcome(c), printable(&c.name))));
    }
    let told = watched(report)
        .into_iter()
        .chain(unapproved(report))
        .chain(report.warnings.iter().map(|w| format!("warning: {w}")));
    let told: Vec<String> = told.map(|line| format!("- {}", printable(&line))).collect();
    if !told.is_empty() {
        lines.extend([String::new(), "All iterations:".into(), String::new()]);
        lines.extend(told);
    }
    for it in &report.iterations {
        let gates = gates(it);
        if !gates.is_empty() {
            let how = it.trouble().map(|how| format!(" ({})", printable(&how))).unwrap_or_default();
            lines.extend([String::new(), format!("Iteration {}{how}:", it.iteration), String::new()]);
            lines.extend(gates.into_iter().map(|line| format!("- {}", line.trim_start())));
        }
    }
    let worktree = worktree(report);
    if !worktree.is_empty() {
        lines.push(String::new());
        lines.extend(worktree);
    }
    lines
}

fn header() -> String {
    "| iteration | started | took | exit | cost | tokens | tools | changed | snapshot |".into()
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
        exit,
        verdict.and_then(|v| v.cost).map_or_else(unknown, dollars),
        verdict.and_then(|v| v.tokens).map_or_else(unknown, |n| n.to_string()),
        it.tool_calls.map_or_else(unknown, |n| n.to_string()),
        it.diff.map_or_else(unknown, |d| format!("{} +{} -{}", counted(d.files, "file"), d.added, d.removed)),
        it.commit.as_deref().map_or_else(unknown, |commit| commit.chars().take(10).collect()),
    ];
    format!("| {} |", cells.join(" | "))
}
