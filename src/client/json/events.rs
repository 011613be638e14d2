//! The JSON of an event.

use serde_json::Value;
use swarm_state::model::Exit;
use swarm_state::notice::{Entry, IterationExit, StopReason};

use super::{Fields, end_word};
use crate::protocol::Notice;

pub(in crate::client) fn notice(notice: &Notice) -> Value {
    let mut fields = Fields::of(notice);
    fields.rename("worker", "name");
    match &notice.entry {
        Entry::IterationStarted { .. } => fields.rename("max", "max_iterations"),
        Entry::IterationEnded { exit, .. } => run_end(&mut fields, *exit),
        Entry::IterationFailed { exit, .. } | Entry::RunEnded { exit, .. } => {
            let is_plain = matches!(notice.entry, Entry::RunEnded { .. });
            run_end(&mut fields, *exit);
            fields.rename("attempt", "failures");
            fields.rename("limit", if is_plain { "max_restarts" } else { "max_failures" });
            fields.rename("backoff", "retry_seconds");
        }
        Entry::Inactivity { .. } | Entry::InactivityExtended { .. } => {
            fields.rename("timeout", "timeout_seconds")
        }
        Entry::Outage { parked, .. } => {
            fields.rename("wait", "retry_seconds");
            fields.set("parked", *parked);
        }
        Entry::OutOfTime { .. } => fields.rename("limit", "timeout_seconds"),
        Entry::LoopComplete { reason, .. } | Entry::LoopFailed { reason, .. } => {
            fields.set("end", reason.end());
            fields.set("reason", reason.text());
        }
        Entry::Stopped { reason } => {
            fields.set("reason", reason.text());
            exit_status(&mut fields, if let StopReason::Exited(exit) = reason { Some(*exit) } else { None });
        }
        _ => {}
    }
    fields.take()
}

/// Replaces `exit` by its word and its exit status.
fn run_end(fields: &mut Fields, exit: IterationExit) {
    fields.rename("exit", "end");
    fields.set("end", end_word(exit));
    exit_status(fields, if let IterationExit::Exit(exit) = exit { Some(exit) } else { None });
}

/// Adds the exit status of an agent that ended by itself.
fn exit_status(fields: &mut Fields, exit: Option<Exit>) {
    fields.set("exit_code", exit.and_then(Exit::code));
    fields.set("signal", exit.and_then(Exit::signal));
}
