//! `swarm ralph status`: one loop, for a person or as JSON.

use chrono::NaiveDateTime;
use swarm_state::advice::{self, Situation};
use swarm_state::model::LoopStatus;
use swarm_state::screen::printable;

use crate::cli::{PageFormat, WorkerPage};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::json;
use crate::client::worker::story;
use crate::out::{CommandResult, Failure};
use crate::protocol::{Call, Named, RalphView, WorkerView};

pub(super) async fn run(ctx: &ClientContext, args: &WorkerPage) -> CommandResult {
    let call = Call::RalphStatus(Named { name: args.name.to_string() });
    let view: RalphView = ctx.call(&call, QUICK_TIMEOUT).await?;
    match args.format {
        PageFormat::Json => print_json(ctx, &view).await?,
        PageFormat::Text => {
            ctx.out.lines(&page(&view))?;
            next_step(&view).iter().for_each(|hint| ctx.out.hint(hint));
        }
    }
    Ok(0)
}

pub(super) async fn print_json(ctx: &ClientContext, view: &RalphView) -> Result<(), Failure> {
    let call = Call::Status(Named { name: view.worker_name.clone() });
    let worker: WorkerView = ctx.call(&call, QUICK_TIMEOUT).await?;
    ctx.out.json(&json::ralph(view, &worker))
}

/// Formats the documented page.
fn page(view: &RalphView) -> Vec<String> {
    let started = view.last_iteration_started.as_deref().map_or_else(|| "-".to_owned(), time);
    let mut lines = vec![
        format!("Ralph Loop: {}", view.worker_name),
        format!("Status: {}", view.status),
        format!("Iteration: {}/{}", view.current_iteration, view.max_iterations),
        format!("Started: {}", time(&view.started)),
        format!("Current iteration started: {started}"),
        format!("Consecutive failures: {}", view.consecutive_failures),
        format!("Total failures: {}", view.total_failures),
        format!("Inactivity timeout: {}s", view.inactivity_timeout),
    ];
    if let Some((story, count)) = view.tasks.as_ref().and_then(story) {
        lines.extend([format!("Story: {story}"), format!("Stories: {count}")]);
    }
    lines.extend(view.done_pattern.as_ref().map(|pattern| format!("Done pattern: {}", printable(pattern))));
    lines
}

/// Formats `2024-01-15T10:30:00.000000` as `2024-01-15 10:30:00`; both are local time.
fn time(text: &str) -> String {
    text.parse::<NaiveDateTime>()
        .map_or_else(|_| printable(text), |t| t.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// Returns the reason and the next step. They are printed to stderr, since the documented page has no line for them.
fn next_step(view: &RalphView) -> Option<String> {
    let situation = Situation {
        name: &view.worker_name,
        status: view.worker_status,
        is_loop: true,
        is_paused: view.status == LoopStatus::Paused,
        cause: view.cause.as_ref(),
        raise: view.raise.as_deref(),
    };
    let step = advice::next_step(&situation)?;
    let why = view.reason.as_ref().map(|reason| format!("{}: ", printable(reason)));
    Some(format!("{}{step}", why.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use swarm_state::model::Status;

    use super::*;
    use crate::client::testing::ralph_view;

    #[test]
    fn status_page_has_the_documented_text() {
        let page_of = |view: &RalphView| page(view).join("\n");
        let full = "Ralph Loop: agent\nStatus: running\nIteration: 7/100\nStarted: 2024-01-15 10:30:00\n\
            Current iteration started: 2024-01-15 12:45:00\nConsecutive failures: 0\nTotal failures: 2\n\
            Inactivity timeout: 60s";
        assert_eq!(page_of(&ralph_view()), format!("{full}\nDone pattern: All tasks complete"));
        let mut view = ralph_view();
        view.done_pattern = None;
        assert_eq!(page_of(&view), full);
        view.last_iteration_started = None;
        assert!(page_of(&view).contains("\nCurrent iteration started: -\n"));
    }

    #[test]
    fn lost_loop_shows_the_next_step() {
        let mut view = ralph_view();
        assert_eq!(next_step(&view), None);
        view.worker_status = Status::Lost;
        view.reason = Some("the tmux server went away".into());
        assert_eq!(next_step(&view).unwrap(), "the tmux server went away: swarm ralph resume agent");
    }
}
