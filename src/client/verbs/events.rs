//! `swarm events`: show events as they happen, as text or one JSON object a line.
//!
//! If notices are missing, a line reports it and lists the current status of the workers.

use std::collections::BTreeSet;

use serde_json::json;
use swarm_state::screen::printable;

use crate::cli::{Events, PageFormat};
use crate::client::context::ClientContext;
use crate::client::json;
use crate::client::subscription::{DurableSubscription, Update, daemon_stopped, refuse_unknown};
use crate::client::worker::local_time;
use crate::error::Result;
use crate::out::json::json_text;
use crate::out::{CommandResult, Failure};
use crate::protocol::{Notice, Snapshot};

pub(super) async fn run(ctx: &ClientContext, args: &Events) -> CommandResult {
    let names: BTreeSet<&str> = args.names.iter().map(|name| name.as_str()).collect();
    let since = args.since.or((!args.follow).then_some(0));
    let mut subscription = DurableSubscription::new(ctx.paths()?, &names, since);
    let reader_gone = ctx.out.reader_gone();
    tokio::pin!(reader_gone);
    let (mut begun, mut left) = (false, 0);
    loop {
        let update = tokio::select! {
            update = subscription.next() => update?,
            () = &mut reader_gone => return Err(Failure::ReaderGone),
        };
        match update {
            Update::Snapshot(snapshot) => {
                if !begun {
                    refuse_unknown(&names, &snapshot)?;
                }
                left = snapshot.replayed;
                let missed = is_missed(&snapshot, begun.then_some(1).or(since));
                if missed || (!begun && args.follow && since.is_none()) {
                    ctx.out.lines(&state(snapshot, missed, &names, args.format)?)?;
                }
                begun = true;
            }
            Update::DaemonStopped => return Err(daemon_stopped().into()),
            Update::Notice(notice) => {
                left = left.saturating_sub(1);
                if names.is_empty() || names.contains(notice.worker.as_str()) {
                    ctx.out.line(&line(&notice, args.format)?)?;
                }
            }
        }
        if !args.follow && left == 0 {
            return Ok(0);
        }
    }
}

/// Whether requested notices are missing. With `--since 0` the first notice is not known, so none counts as missing.
fn is_missed(snapshot: &Snapshot, since: Option<u64>) -> bool {
    since.is_some_and(|since| since > 0) && (snapshot.gap || snapshot.foreign)
}

/// Formats the current status of the workers.
fn state(
    mut snapshot: Snapshot,
    missed: bool,
    names: &BTreeSet<&str>,
    format: PageFormat,
) -> Result<Vec<String>> {
    snapshot.workers.retain(|worker| names.is_empty() || names.contains(worker.name.as_str()));
    let Snapshot { seq, workers, .. } = snapshot;
    if format == PageFormat::Json {
        let workers = json::workers(&workers);
        let line = json!({"seq": seq, "kind": "snapshot", "gap": missed, "workers": workers});
        return Ok(vec![json_text(&line)?]);
    }
    if !missed {
        return Ok(vec![]);
    }
    let workers: Vec<String> = workers.iter().map(|w| format!("{} {}", w.name, w.status)).collect();
    let workers = if workers.is_empty() { "none".to_owned() } else { workers.join(", ") };
    Ok(vec![format!("(some notices are missing here; the workers are now: {workers})")])
}

fn line(notice: &Notice, format: PageFormat) -> Result<String> {
    if format == PageFormat::Json {
        return json_text(&json::notice(notice));
    }
    let at = local_time(&notice.at);
    Ok(printable(&format!("{at}  {}: {}", notice.worker, notice.entry.words())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::view;

    fn snapshot(gap: bool, foreign: bool) -> Snapshot {
        let workers = vec![view("a", "running", json!({})), view("b", "done", json!({}))];
        Snapshot { seq: 9, gap, workers, foreign, replayed: 0 }
    }

    #[test]
    fn what_is_missing_is_known() {
        assert!(is_missed(&snapshot(true, false), Some(5)) && is_missed(&snapshot(false, true), Some(5)));
        assert!(!is_missed(&snapshot(false, false), Some(5)));
        assert!(!is_missed(&snapshot(true, true), Some(0)) && !is_missed(&snapshot(false, true), None));
    }

    #[test]
    fn the_state_is_one_line_of_the_wanted_workers() {
        let only = BTreeSet::from(["b"]);
        let lines = state(snapshot(true, false), true, &only, PageFormat::Json).unwrap();
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0]
                .starts_with(r#"{"schema":1,"seq":9,"kind":"snapshot","gap":true,"workers":[{"name":"b","#)
        );
        let lines = state(snapshot(true, false), true, &BTreeSet::new(), PageFormat::Text).unwrap();
        assert_eq!(lines, ["(some notices are missing here; the workers are now: a running, b done)"]);
        assert_eq!(state(snapshot(false, false), false, &only, PageFormat::Text).unwrap(), [""; 0]);
    }

    #[test]
    fn a_line_for_people_has_the_time_the_worker_and_the_words() {
        let notice: Notice = serde_json::from_value(json!({
            "seq": 1, "worker": "a", "at": "2026-01-15T10:35:00.123456+01:00", "status": "running",
            "kind": "warning", "message": "x\u{1b}[2Jy"
        }))
        .unwrap();
        let text = line(&notice, PageFormat::Text).unwrap();
        let start = format!("{}  a: warning: x", local_time("2026-01-15T10:35:00+01:00"));
        assert!(text.starts_with(&start) && !text.contains('\x1b'), "{text}");
    }
}
