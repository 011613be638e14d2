//! `swarm session logs`: show what was decided at each stop.

use swarm_state::screen::printable;
use swarm_state::session::{Decision, LogLine, PromiseFound};

use crate::cli::{PageFormat, SessionWhich};
use crate::error::Error;
use crate::out::{CommandResult, Out};
use crate::session::start::{find_named_loop, last_session, named_session};
use crate::session::store::SessionStore;

pub(super) fn run(sessions: &SessionStore, args: &SessionWhich, out: Out) -> CommandResult {
    let found = find_named_loop(sessions, &args.place)?;
    let owner = found.as_ref().and_then(|found| found.file.as_ref().ok()?.state().session().cloned());
    let session = match named_session(&args.place)?.or(owner) {
        Some(session) => session,
        None => last_session(sessions, &args.place)?.ok_or_else(|| {
            Error::invalid("no session loop was run in this directory")
                .hint("swarm session ls; then: swarm session logs --session-id ID")
        })?,
    };
    let lines = sessions.log_lines(&session);
    match args.format {
        PageFormat::Json => out.json_list(&lines.iter().map(log_object).collect::<Vec<_>>())?,
        PageFormat::Text if lines.is_empty() => out.line("the log of this session is empty")?,
        PageFormat::Text => out.lines(&lines.iter().map(log_line).collect::<Vec<_>>())?,
    }
    Ok(0)
}

/// A line of the log, under the names that other verbs use.
fn log_object(line: &LogLine) -> serde_json::Value {
    serde_json::json!({
        "at": line.time.to_rfc3339(),
        "iteration": line.iteration,
        "promise": line.promise,
        "decision": line.decision,
        "status": line.status,
        "reason": line.why,
    })
}

fn log_line(line: &LogLine) -> String {
    let decision = match (line.decision, line.status) {
        (Decision::Block, _) => "goes on",
        (Decision::Allow, Some(status)) => status.word(),
        (Decision::Allow, None) => "allowed",
    };
    let time = line.time.format("%Y-%m-%d %H:%M:%S");
    // A start, a cancellation, or a stop that was allowed without a decision.
    if line.promise == PromiseFound::Unread {
        let status = line.status.map(|status| format!("{}  ", status.word())).unwrap_or_default();
        return format!("{time}  iteration {}  {status}({})", line.iteration, printable(&line.why));
    }
    format!(
        "{time}  iteration {}  promise {}  {decision}  ({})",
        line.iteration,
        line.promise.word(),
        printable(&line.why)
    )
}
