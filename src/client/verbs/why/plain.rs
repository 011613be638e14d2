//! The page of `swarm why` for a worker that is not a loop.

use swarm_state::advice::{next_step, raise_memory};
use swarm_state::cause::Cause;
use swarm_state::model::Status;
use swarm_state::screen::printable;

use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::worker::{quoted, situation};
use crate::error::Result;
use crate::protocol::{Call, Lines, LogsParams, WorkerView};
use crate::shell::join;

const OUTPUT_LINES: u32 = 15;

/// Formats the page, with the last output of the current or last run.
pub(super) async fn page(ctx: &ClientContext, worker: &WorkerView) -> Result<Vec<String>> {
    let output: Lines = ctx.call(&output_call(&worker.name), QUICK_TIMEOUT).await?;
    Ok(lines(worker, &output.lines))
}

pub(super) fn output_call(name: &str) -> Call {
    let (lines, history) = (Some(OUTPUT_LINES), false);
    Call::Logs(LogsParams { name: name.to_owned(), lines, history, iteration: None, from: None })
}

fn lines(worker: &WorkerView, output: &[String]) -> Vec<String> {
    let name = &worker.name;
    let reason = worker.reason.as_deref().filter(|reason| *reason != worker.status.as_str());
    let reason = reason.map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
    let mut lines = vec![
        format!("{name}: {}{reason}", worker.status),
        format!("command: {}", printable(&join(&worker.cmd))),
    ];
    lines.extend(exit(worker));
    if !output.is_empty() {
        lines.push(format!("the last output (full log: swarm logs {name}):"));
        lines.extend(quoted(output));
    }
    lines.push(format!("next: {}", next(worker)));
    lines
}

/// Formats the last run's exit status. If swarm ended the run, the reason is enough.
fn exit(worker: &WorkerView) -> Option<String> {
    match (&worker.ended, worker.signal, worker.exit_code) {
        (Some(_), ..) | (None, None, None) => None,
        (None, Some(signal), _) => Some(format!("ended by signal {signal}")),
        (None, None, Some(code)) => Some(format!("exit status: {code}")),
    }
}

/// Suggests the next step. The advice for a failed worker is this page.
pub(super) fn next(worker: &WorkerView) -> String {
    let name = &worker.name;
    let is_earlier = matches!(worker.cause, Some(Cause::EarlierSwarm { .. }));
    if worker.cause.as_ref().is_some_and(Cause::is_out_of_memory) {
        return raise_memory(name);
    }
    if worker.status == Status::Failed && !is_earlier {
        return format!("fix the cause, then swarm respawn {name}");
    }
    next_step(&situation(worker)).unwrap_or_else(|| {
        if worker.status.is_finished() {
            "nothing to do".to_owned()
        } else {
            format!("nothing to do; to watch the agent: swarm attach {name}")
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::testing::view;

    #[test]
    fn each_status_has_a_reason_and_a_next_step() {
        for (status, reason, signal, exit_code, expected) in [
            (
                "failed",
                Some("exit status 3"),
                None,
                Some(3),
                "exit status: 3\nnext: fix the cause, then swarm respawn a",
            ),
            (
                "failed",
                Some("signal 9"),
                Some(9),
                Some(137),
                "ended by signal 9\nnext: fix the cause, then swarm respawn a",
            ),
            ("killed", Some("killed"), None, None, "next: nothing to do"),
            ("done", Some("exited"), None, Some(0), "exit status: 0\nnext: nothing to do"),
            ("running", None, None, None, "next: nothing to do; to watch the agent: swarm attach a"),
            ("lost", None, None, None, "next: swarm respawn a"),
        ] {
            let reason = reason.map(str::to_owned);
            let worker =
                WorkerView { reason: reason.clone(), signal, exit_code, ..view("a", status, json!({})) };
            let head = match reason.filter(|reason| reason != status) {
                Some(reason) => format!("a: {status}: {reason}"),
                None => format!("a: {status}"),
            };
            assert_eq!(lines(&worker, &[]).join("\n"), format!("{head}\ncommand: claude\n{expected}"));
        }
    }

    #[test]
    fn output_has_no_control_characters() {
        let text = lines(&view("a", "running", json!({})), &["red\x1b[2J".into()]).join("\n");
        assert!(
            text.contains("\nthe last output (full log: swarm logs a):\n  | red") && !text.contains('\x1b')
        );
    }
}
