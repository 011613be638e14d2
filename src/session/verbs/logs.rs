//! `swarm session logs`: print what each stop decided.

use swarm_state::screen::printable;
use swarm_state::session::{Decision, LogLine, PromiseFound};

use crate::cli::{PageFormat, SessionWhich};
use crate::error::Error;
use crate::out::{CommandResult, Out};
use crate::session::selection::{last, named, which};
use crate::session::store::Sessions;

pub(super) fn run(sessions: &Sessions, args: &SessionWhich, out: Out) -> CommandResult {
    let found = which(sessions, &args.place)?;
    let owner = found.as_ref().and_then(|found| found.file.as_ref().ok()?.state().session().cloned());
    let session = match named(&args.place)?.or(owner) {
        Some(session) => session,
        None => last(sessions, &args.place)?.ok_or_else(|| {
            Error::invalid("no session loop was run in this directory")
                .hint("swarm session ls; then: swarm session logs --session-id ID")
        })?,
    };
    let lines = sessions.log_lines(&session);
    match args.format {
        PageFormat::Json => out.json(&lines)?,
        PageFormat::Text if lines.is_empty() => out.line("nothing is logged of this session")?,
        PageFormat::Text => out.lines(&lines.iter().map(log_line).collect::<Vec<_>>())?,
    }
    Ok(0)
}

fn log_line(line: &LogLine) -> String {
    let decision = match (line.decision, line.status) {
        (Decision::Block, _) => "goes on",
        (Decision::Allow, Some(status)) => status.word(),
        (Decision::Allow, None) => "allowed",
    };
    let time = line.time.format("%Y-%m-%d %H:%M:%S");
    // No stop that was judged: a start, a cancel, a doubt.
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
