//! `swarm report`: the morning view of all workers, or each iteration of one loop.

use crate::cli::{ReportArgs, ReportFormat};
use crate::client::context::ClientContext;
use crate::client::json;
use crate::client::report::fetch;
use crate::out::CommandResult;

mod charts;
mod html;
mod loop_page;
mod markdown;
pub(crate) mod morning;
#[cfg(test)]
mod sample;
mod text;

use loop_page::after;

pub(super) async fn run(ctx: &ClientContext, args: &ReportArgs) -> CommandResult {
    let Some(name) = &args.name else { return morning::run(ctx, args).await };
    let report = fetch(ctx, name.as_str()).await?;
    match args.format {
        ReportFormat::Json => ctx.out.json(&json::report(&report, &after(&report, args.since).iterations))?,
        ReportFormat::Html => ctx.out.line(&html::loop_report(&report, args.since))?,
        ReportFormat::Text | ReportFormat::Markdown => {
            let lines = loop_page::markdown(&report, args.since);
            let is_text = args.format == ReportFormat::Text;
            let lines =
                if is_text { lines } else { lines.iter().map(|line| markdown::inert(line)).collect() };
            ctx.out.lines(&lines)?;
            ctx.report_seen(&report.name, report.worker_status.is_finished()).await;
        }
    }
    Ok(0)
}
