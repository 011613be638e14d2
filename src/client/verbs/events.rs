//! `swarm events`: show events as they happen, as text or one JSON object a line.
//!
//! If notices are missing, a line reports it at their place. After a number that the daemon can no longer continue
//! from, another line lists the current status of the workers.
//!
//! With `--notify`, notifications are received from the daemon too, and shown by an escape sequence. Their connection
//! is made again after a restart of the daemon, and never starts one.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde_json::json;
use swarm_state::notify::Notification;
use swarm_state::screen::printable;

use crate::cli::{Events, PageFormat, Since};
use crate::client::connect::{self, Client};
use crate::client::context::{ClientContext, RECONNECT_DELAY};
use crate::client::json;
use crate::client::subscription::{
    DurableSubscription, Update, daemon_stopped, refuse_unknown, unknown_worker,
};
use crate::client::worker::local_time;
use crate::error::{Error, Result};
use crate::out::json::json_text;
use crate::out::{CommandResult, Failure, Out};
use crate::protocol::{
    Call, MissingNotices, MissingReason, NextNotification, Notice, NotifyNextParams, Snapshot,
};
use crate::remote::Place;

pub(super) async fn run(ctx: &ClientContext, args: &Events) -> CommandResult {
    let filter = Filter::new(args);
    let follow = args.follow || args.notify;
    let since = match args.since {
        Some(Since::Seq(seq)) => Some(seq),
        Some(Since::Time(_)) => Some(0),
        None => (!follow).then_some(0),
    };
    // All workers: the name of a deleted one is known only from its notices.
    let mut subscription = DurableSubscription::new(ctx.place()?, &BTreeSet::new(), since);
    let reader_gone = ctx.out.reader_gone();
    tokio::pin!(reader_gone);
    if args.notify {
        show_notifications(ctx.place()?, ctx.out)?;
    }
    let (mut begun, mut left, mut gaps) = (false, 0, vec![]);
    let mut unknown = filter.names.clone();
    loop {
        let update = tokio::select! {
            update = subscription.next() => update?,
            () = &mut reader_gone => return Err(Failure::ReaderGone),
        };
        match update {
            Update::Snapshot(snapshot) => {
                if follow && !begun {
                    refuse_unknown(&filter.names, &snapshot)?;
                }
                unknown.retain(|name| !snapshot.workers.iter().any(|worker| worker.name == **name));
                left = snapshot.replayed;
                let missed = is_missed(&snapshot, begun.then_some(1).or(since));
                gaps = snapshot.missing.clone();
                // The line of the snapshot reports these.
                gaps.retain(|gap| !missed || gap.reason != MissingReason::Dropped);
                if missed || (!begun && follow && since.is_none()) {
                    ctx.out.lines(&state(snapshot, missed, &filter.names, args.format)?)?;
                }
                begun = true;
            }
            Update::DaemonStopped => return Err(daemon_stopped().into()),
            Update::Notice(notice) => {
                left = left.saturating_sub(1);
                unknown.remove(notice.worker.as_str());
                let is_late = filter.is_late(&notice);
                let here = gaps.partition_point(|gap| gap.after < notice.seq);
                for gap in gaps.drain(..here).filter(|_| is_late) {
                    ctx.out.line(&gap_line(gap, args.format)?)?;
                }
                if is_late && filter.wants(&notice) {
                    ctx.out.line(&line(&notice, args.format)?)?;
                }
            }
        }
        if left == 0 {
            for gap in gaps.drain(..) {
                ctx.out.line(&gap_line(gap, args.format)?)?;
            }
        }
        if !follow && left == 0 {
            return unknown.first().map_or(Ok(0), |name| Err(unknown_worker(name).into()));
        }
    }
}

struct Filter<'a> {
    names: BTreeSet<&'a str>,
    kinds: &'a [String],
    from: Option<DateTime<FixedOffset>>,
}

impl<'a> Filter<'a> {
    fn new(args: &'a Events) -> Self {
        let from = match args.since {
            Some(Since::Time(time)) => Some(time),
            Some(Since::Seq(_)) | None => None,
        };
        let names = args.names.iter().chain(&args.workers).map(|name| name.as_str()).collect();
        Self { names, kinds: &args.kinds, from }
    }

    /// Whether it happened in the requested time.
    fn is_late(&self, notice: &Notice) -> bool {
        self.from.is_none_or(|from| DateTime::parse_from_rfc3339(&notice.at).is_ok_and(|at| at >= from))
    }

    fn wants(&self, notice: &Notice) -> bool {
        (self.names.is_empty() || self.names.contains(notice.worker.as_str()))
            && (self.kinds.is_empty() || self.kinds.contains(&notice.entry.kind()))
    }
}

/// Whether requested notices are missing. With `--since 0` the first notice is not known, so none counts as missing.
fn is_missed(snapshot: &Snapshot, since: Option<u64>) -> bool {
    since.is_some_and(|since| since > 0) && (snapshot.gap || snapshot.foreign)
}

fn gap_line(gap: MissingNotices, format: PageFormat) -> Result<String> {
    if format == PageFormat::Json {
        return json_text(&json!({"seq": gap.after, "kind": "missing", "reason": gap.reason}));
    }
    let text = match gap.reason {
        MissingReason::Dropped => "earlier events are no longer stored",
        MissingReason::Unwritten => "events are missing here: they could not be written to disk",
        MissingReason::Damaged => "events are missing here: the event log is damaged",
    };
    Ok(format!("({text})"))
}

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
        return json_text(&json::events::notice(notice));
    }
    let at = local_time(&notice.at);
    Ok(printable(&format!("{at}  {}: {}", notice.worker, notice.entry.words())))
}

/// How long to wait for a notification before the client asks again.
const NEXT_TIMEOUT: Duration = Duration::from_secs(3600);

/// Shows the notifications from now on in this terminal, in a task. Fails if standard output is not a terminal.
fn show_notifications(place: Place, out: Out) -> Result<()> {
    if !Out::is_terminal() {
        return Err(Error::usage("--notify needs a terminal as standard output"));
    }
    let terminal = NotifyTerminal::from_env();
    tokio::spawn(async move {
        let (mut client, mut after) = (None, None);
        loop {
            match next_notification(&place, &mut client, &mut after).await {
                // The command itself handles a terminal that is gone.
                Ok(Some(message)) => drop(out.raw(&terminal.sequence(&message))),
                Ok(None) => {}
                Err(_) => {
                    client = None;
                    tokio::time::sleep(RECONNECT_DELAY).await;
                }
            }
        }
    });
    Ok(())
}

async fn next_notification(
    place: &Place,
    client: &mut Option<Client>,
    after: &mut Option<u64>,
) -> Result<Option<Notification>> {
    let client = match client {
        Some(client) => client,
        None => client.insert(connect::require_existing(place).await?),
    };
    let call = Call::NotifyNext(NotifyNextParams { after: *after });
    let NextNotification { seq, message } = client.call(&call, NEXT_TIMEOUT).await?;
    *after = Some(seq);
    Ok(message)
}

/// The environment that decides which escape sequence a terminal understands.
#[derive(Clone, Copy, Debug)]
struct NotifyTerminal {
    /// The terminal is inside tmux, which passes a sequence on only if it is wrapped.
    inside_tmux: bool,
    /// The terminal understands the sequence of rxvt (OSC 777) and not that of most others (OSC 9).
    is_rxvt: bool,
}

impl NotifyTerminal {
    fn from_env() -> Self {
        let is_rxvt = std::env::var("TERM").is_ok_and(|term| term.starts_with("rxvt"));
        Self { inside_tmux: std::env::var_os("TMUX").is_some_and(|value| !value.is_empty()), is_rxvt }
    }

    /// The escape sequence that shows a message, and a bell.
    fn sequence(self, message: &Notification) -> String {
        // A semicolon separates the parts of OSC 777.
        let clean = |text: &str| printable(text).replace(';', ",");
        let shown = match self.is_rxvt {
            true => format!("\x1b]777;notify;{};{}\x07", clean(&message.title()), clean(&message.reason)),
            false => format!("\x1b]9;{}\x07", clean(&message.line())),
        };
        let shown = match self.inside_tmux {
            true => format!("\x1bPtmux;{}\x1b\\", shown.replace('\x1b', "\x1b\x1b")),
            false => shown,
        };
        shown + "\x07"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::view;

    fn snapshot(gap: bool, foreign: bool) -> Snapshot {
        let workers = vec![view("a", "running", json!({})), view("b", "done", json!({}))];
        Snapshot { seq: 9, gap, workers, foreign, replayed: 0, missing: vec![] }
    }

    #[test]
    fn missing_events_are_detected() {
        assert!(is_missed(&snapshot(true, false), Some(5)) && is_missed(&snapshot(false, true), Some(5)));
        assert!(!is_missed(&snapshot(false, false), Some(5)));
        assert!(!is_missed(&snapshot(true, true), Some(0)) && !is_missed(&snapshot(false, true), None));
    }

    #[test]
    fn snapshot_is_one_line_with_the_selected_workers() {
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
    fn text_line_has_the_time_the_worker_and_the_message() {
        let notice: Notice = serde_json::from_value(json!({
            "seq": 1, "worker": "a", "at": "2026-01-15T10:35:00.123456+01:00", "status": "running",
            "kind": "warning", "message": "x\u{1b}[2Jy"
        }))
        .unwrap();
        let text = line(&notice, PageFormat::Text).unwrap();
        let start = format!("{}  a: warning: x", local_time("2026-01-15T10:35:00+01:00"));
        assert!(text.starts_with(&start) && !text.contains('\x1b'), "{text}");
    }

    #[test]
    fn notification_sequence_of_each_terminal() {
        let line = include_str!("../../../tests/golden/notifications.jsonl").lines().next().unwrap();
        let message: Notification = serde_json::from_str(line).unwrap();
        for (inside_tmux, is_rxvt, sequence) in [
            (false, false, "\x1b]9;api needs you: asks for permission\x07\x07"),
            (true, false, "\x1bPtmux;\x1b\x1b]9;api needs you: asks for permission\x07\x1b\\\x07"),
            (false, true, "\x1b]777;notify;api needs you;asks for permission\x07\x07"),
        ] {
            assert_eq!(NotifyTerminal { inside_tmux, is_rxvt }.sequence(&message), sequence);
        }
    }
}
