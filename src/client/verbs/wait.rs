//! `swarm wait`: wait until workers have ended, are ready, are idle or wait for a person.
//!
//! It reads the notices, and the snapshot with which each subscription begins; it does not poll. The outcome of a view
//! or a notice is computed by pure functions, which are tested here.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use swarm_state::advice::start_again;
use swarm_state::cause::Cause;
use swarm_state::model::Status;
use swarm_state::notice::Entry;
use swarm_state::screen::printable;
use tokio::time::{Instant, timeout_at};

use crate::cli::{PageFormat, Wait, WaitFor, word};
use crate::client::context::ClientContext;
use crate::client::subscription::{DurableSubscription, Update, daemon_stopped, refuse_unknown};
use crate::client::worker::is_loop;
use crate::error::{Error, ErrorCode, Result};
use crate::out::json::error_object;
use crate::out::{CommandResult, Failure};
use crate::protocol::{Notice, Snapshot, WorkerView};

#[derive(Clone, Debug, PartialEq, Eq)]
enum WaitOutcome {
    /// The condition holds. The reason of a successful end, if it is one.
    Holds(Option<String>),
    /// The worker has ended, and the condition does not hold.
    Ended(Status, String),
    /// The worker's tmux server is gone.
    Lost,
    /// The worker no longer exists, or another one has its name.
    Gone,
}

struct Waiter {
    name: String,
    /// When the worker was spawned. It identifies the worker: another one of the same name has another time.
    started: String,
    is_loop: bool,
    decided: bool,
}

pub(super) async fn run(ctx: &ClientContext, args: &Wait) -> CommandResult {
    let names: BTreeSet<&str> = args.names.iter().map(|name| name.as_str()).collect();
    // A timeout that overflows the clock counts as none.
    let deadline = args.timeout.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    let mut subscription = DurableSubscription::new(ctx.place()?, &names, None);
    let Update::Snapshot(mut snapshot) = subscription.next().await? else {
        return Err(Error::new(ErrorCode::Internal, "a subscription without a snapshot").into());
    };
    let mut waiters = waiters(&names, &snapshot)?;
    if waiters.is_empty() {
        ctx.out.note("no live workers to wait for");
    }
    let mut status = 0;
    loop {
        for waiter in waiters.iter_mut().filter(|w| !w.decided) {
            if let Some(verdict) = waiter.at(&snapshot, args.what) {
                status = status.max(waiter.report(ctx, args, &verdict)?);
            }
        }
        // Until the next snapshot.
        snapshot = loop {
            if waiters.iter().all(|w| w.decided) {
                return Ok(status);
            }
            match next(&mut subscription, deadline).await {
                None => return timed_out(ctx, args, &waiters),
                Some(Ok(Update::Snapshot(next))) => break next,
                Some(Ok(Update::Notice(notice))) => {
                    let known = notice.seq <= snapshot.seq;
                    let wanted = |w: &&mut Waiter| !w.decided && w.name == notice.worker;
                    if let Some(waiter) = waiters.iter_mut().find(wanted)
                        && let Some(verdict) = outcome_of_notice(&notice, args.what, known)
                    {
                        status = status.max(waiter.report(ctx, args, &verdict)?);
                    }
                }
                Some(Ok(Update::DaemonStopped)) => return Err(daemon_stopped().into()),
                // Another daemon answers, which does not have the only worker.
                Some(Err(error)) if error.code == ErrorCode::NotFound => {
                    break Snapshot { workers: vec![], ..snapshot };
                }
                Some(Err(error)) => return Err(error.into()),
            }
        };
    }
}

/// Returns the next update; `None` when the time has run out.
async fn next(subscription: &mut DurableSubscription, deadline: Option<Instant>) -> Option<Result<Update>> {
    match deadline {
        None => Some(subscription.next().await),
        Some(deadline) => timeout_at(deadline, subscription.next()).await.ok(),
    }
}

fn waiters(names: &BTreeSet<&str>, snapshot: &Snapshot) -> Result<Vec<Waiter>> {
    let waiter = |worker: &WorkerView| Waiter {
        name: worker.name.clone(),
        started: worker.started.clone(),
        is_loop: is_loop(worker),
        decided: false,
    };
    refuse_unknown(names, snapshot)?;
    let is_meant = |w: &&WorkerView| {
        if names.is_empty() { w.status.is_live_or_paused() } else { names.contains(w.name.as_str()) }
    };
    Ok(snapshot.workers.iter().filter(is_meant).map(waiter).collect())
}

fn timed_out(ctx: &ClientContext, args: &Wait, waiters: &[Waiter]) -> CommandResult {
    let out: Vec<&str> = waiters.iter().filter(|w| !w.decided).map(|w| w.name.as_str()).collect();
    let (word, seconds) = (word(args.what), args.timeout.unwrap_or(0));
    let message = format!("timeout after {seconds} s: still waiting for {} ({word})", out.join(", "));
    let error = Error::new(ErrorCode::Timeout, message).hint("swarm ls");
    if args.format == PageFormat::Text {
        return Err(error.into());
    }
    for name in &out {
        print_json(ctx, name, args.what, ("timeout", None, None), Some(&error))?;
    }
    ctx.out.error(&error);
    Ok(error.code.exit_status())
}

/// The fields `result`, `status` and `reason` of the JSON.
type OutcomeFields<'a> = (&'static str, Option<&'static str>, Option<&'a str>);

fn print_json(
    ctx: &ClientContext,
    name: &str,
    what: WaitFor,
    (result, status, reason): OutcomeFields<'_>,
    error: Option<&Error>,
) -> Result<(), Failure> {
    ctx.out.json_line(&json!({
        "name": name, "for": word(what), "result": result, "status": status, "reason": reason,
        "error": error.map(error_object)
    }))
}

impl Waiter {
    fn at(&self, snapshot: &Snapshot, what: WaitFor) -> Option<WaitOutcome> {
        match snapshot.workers.iter().find(|w| w.name == self.name) {
            Some(worker) if worker.started == self.started => outcome_of_view(worker, what),
            Some(_) | None => Some(WaitOutcome::Gone),
        }
    }

    fn report(&mut self, ctx: &ClientContext, args: &Wait, verdict: &WaitOutcome) -> Result<u8, Failure> {
        self.decided = true;
        if args.format == PageFormat::Json {
            let error = self.failure(args.what, verdict);
            print_json(ctx, &self.name, args.what, verdict.fields(args.what), error.as_ref())?;
        } else if let WaitOutcome::Holds(reason) = verdict {
            ctx.out.line(&self.success_line(args.what, reason.as_deref()))?;
        }
        let Some(error) = self.failure(args.what, verdict) else { return Ok(0) };
        ctx.out.error(&error);
        Ok(1)
    }

    /// Formats `agent: done (done pattern matched)` or `agent: idle`.
    fn success_line(&self, what: WaitFor, reason: Option<&str>) -> String {
        let word = if reason.is_some() { "done".to_owned() } else { word(what) };
        let reason = reason.map(|reason| format!(" ({})", printable(reason))).unwrap_or_default();
        format!("{}: {word}{reason}", self.name)
    }

    fn failure(&self, what: WaitFor, verdict: &WaitOutcome) -> Option<Error> {
        let name = &self.name;
        let (message, hint) = match verdict {
            WaitOutcome::Holds(_) => return None,
            WaitOutcome::Ended(outcome, reason) => {
                let reason = printable(reason);
                let how = match outcome {
                    Status::Killed => "was killed".to_owned(),
                    Status::Failed => format!("failed ({reason})"),
                    _ => format!("has ended ({reason})"),
                };
                let never = match is_end(what) {
                    true => String::new(),
                    false => format!(", so it can no longer become {}", word(what)),
                };
                (format!("worker '{name}' {how}{never}"), Some(format!("swarm why {name}")))
            }
            WaitOutcome::Lost => {
                let hint = start_again(name, self.is_loop);
                (format!("worker '{name}' is lost: {}", Cause::Lost { host: None }.text()), Some(hint))
            }
            WaitOutcome::Gone => (format!("worker '{name}' no longer exists"), None),
        };
        Some(Error { hint, ..Error::new(ErrorCode::Conflict, message) })
    }
}

impl WaitOutcome {
    fn fields(&self, what: WaitFor) -> OutcomeFields<'_> {
        match self {
            Self::Holds(None) => ("ok", None, None),
            Self::Holds(Some(reason)) => ("ok", Some("done"), Some(reason.as_str())),
            Self::Ended(status, reason) => {
                debug_assert!(*status != Status::Done || !is_end(what), "that is what was waited for");
                ("failed", Some(status.as_str()), Some(reason.as_str()))
            }
            Self::Lost => ("failed", Some("lost"), None),
            Self::Gone => ("gone", None, None),
        }
    }
}

/// Whether the command waits for the end of a worker.
fn is_end(what: WaitFor) -> bool {
    matches!(what, WaitFor::Exit | WaitFor::Done)
}

fn outcome_of_end(status: Status, reason: String, what: WaitFor) -> WaitOutcome {
    if status == Status::Done && is_end(what) {
        WaitOutcome::Holds(Some(reason))
    } else {
        WaitOutcome::Ended(status, reason)
    }
}

fn outcome_of_view(worker: &WorkerView, what: WaitFor) -> Option<WaitOutcome> {
    if worker.status.is_finished() {
        return Some(outcome_of_end(worker.status, worker.reason.clone().unwrap_or_default(), what));
    }
    if worker.status == Status::Lost {
        return Some(WaitOutcome::Lost);
    }
    let holds = match what {
        WaitFor::Exit | WaitFor::Done => false,
        WaitFor::Ready => worker.ready,
        WaitFor::Idle => worker.idle,
        WaitFor::Waiting => worker.status == Status::Waiting,
    };
    holds.then_some(WaitOutcome::Holds(None))
}

/// Returns the outcome by a notice, if there is one. `known`: the last snapshot was made after the notice.
fn outcome_of_notice(notice: &Notice, what: WaitFor, known: bool) -> Option<WaitOutcome> {
    match &notice.entry {
        Entry::LoopComplete { reason, .. } | Entry::LoopFailed { reason, .. } | Entry::Stopped { reason } => {
            return Some(outcome_of_end(reason.status(), reason.text(), what));
        }
        // A known loss is ignored, since the worker may have been resumed in the meantime.
        Entry::Lost { .. } if !known => return Some(WaitOutcome::Lost),
        Entry::Cleaned if !known => return Some(WaitOutcome::Gone),
        _ => {}
    }
    let holds = match (what, &notice.entry) {
        (WaitFor::Ready, Entry::Ready { .. } | Entry::Idle { .. }) => true,
        (WaitFor::Idle, Entry::Idle { .. }) => true,
        (WaitFor::Waiting, _) => notice.status == Status::Waiting,
        (WaitFor::Exit | WaitFor::Done | WaitFor::Ready | WaitFor::Idle, _) => false,
    };
    holds.then_some(WaitOutcome::Holds(None))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::client::testing::view;

    fn notice_of(entry: Value, status: &str) -> Notice {
        let mut notice = json!({"seq": 7, "worker": "a", "at": "t", "status": status});
        notice.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        serde_json::from_value(notice).unwrap()
    }

    #[test]
    fn end_of_a_worker_fulfills_the_wait_or_fails_it() {
        let end = |reason: Value| notice_of(json!({"kind": "stopped", "reason": reason}), "done");
        let good = end(json!({"exited": {"code": 0}}));
        let bad = end(json!({"exited": {"code": 3}}));
        for what in [WaitFor::Exit, WaitFor::Done] {
            assert_eq!(
                outcome_of_notice(&good, what, false),
                Some(WaitOutcome::Holds(Some("exited".into())))
            );
        }
        for what in [WaitFor::Ready, WaitFor::Idle, WaitFor::Waiting] {
            assert_eq!(
                outcome_of_notice(&good, what, false),
                Some(WaitOutcome::Ended(Status::Done, "exited".into()))
            );
        }
        let failed = WaitOutcome::Ended(Status::Failed, "exit status 3".into());
        assert_eq!(outcome_of_notice(&bad, WaitFor::Exit, true), Some(failed));
        let killed = WaitOutcome::Ended(Status::Killed, "killed".into());
        assert_eq!(outcome_of_notice(&end(json!("killed")), WaitFor::Exit, false), Some(killed));
        let loop_end =
            notice_of(json!({"kind": "loop_complete", "iterations": 2, "reason": "complete"}), "done");
        assert!(matches!(
            outcome_of_notice(&loop_end, WaitFor::Done, false),
            Some(WaitOutcome::Holds(Some(_)))
        ));
    }

    #[test]
    fn screen_state_fulfills_only_the_requested_condition() {
        let idle = notice_of(json!({"kind": "idle", "run": 1}), "running");
        let ready = notice_of(json!({"kind": "ready", "run": 1}), "running");
        let waits = notice_of(json!({"kind": "waiting", "run": 1, "reason": "trust"}), "waiting");
        let holds = |notice, what| outcome_of_notice(notice, what, false) == Some(WaitOutcome::Holds(None));
        assert!(holds(&ready, WaitFor::Ready) && holds(&idle, WaitFor::Ready) && holds(&idle, WaitFor::Idle));
        assert!(holds(&waits, WaitFor::Waiting));
        assert!(!holds(&ready, WaitFor::Idle) && !holds(&idle, WaitFor::Waiting));
        for notice in [&idle, &ready, &waits] {
            assert_eq!(outcome_of_notice(notice, WaitFor::Exit, false), None);
        }
        let mut worker = view("a", "running", json!({}));
        assert_eq!(outcome_of_view(&worker, WaitFor::Ready), None);
        worker.ready = true;
        assert_eq!(outcome_of_view(&worker, WaitFor::Ready), Some(WaitOutcome::Holds(None)));
        assert_eq!(outcome_of_view(&worker, WaitFor::Idle), None);
        assert_eq!(
            outcome_of_view(&view("a", "waiting", json!({})), WaitFor::Waiting),
            Some(WaitOutcome::Holds(None))
        );
    }

    #[test]
    fn wait_continues_for_a_paused_loop_and_fails_for_a_lost_worker() {
        let paused = view("a", "paused", json!({"ralph": true, "status": "paused"}));
        assert_eq!(outcome_of_view(&paused, WaitFor::Exit), None);
        assert_eq!(
            outcome_of_notice(
                &notice_of(json!({"kind": "paused", "by": "user"}), "paused"),
                WaitFor::Exit,
                false
            ),
            None
        );
        assert_eq!(outcome_of_view(&view("a", "lost", json!({})), WaitFor::Exit), Some(WaitOutcome::Lost));
        let lost = notice_of(json!({"kind": "lost", "reason": "x"}), "lost");
        assert_eq!(outcome_of_notice(&lost, WaitFor::Exit, false), Some(WaitOutcome::Lost));
        assert_eq!(outcome_of_notice(&lost, WaitFor::Exit, true), None, "it was resumed since");
    }

    #[test]
    fn wait_reports_a_deleted_or_replaced_worker_as_gone() {
        let snapshot =
            |workers| Snapshot { seq: 9, gap: false, workers, foreign: false, replayed: 0, missing: vec![] };
        let first = snapshot(vec![view("a", "running", json!({}))]);
        let waiter = waiters(&BTreeSet::from(["a"]), &first).unwrap().remove(0);
        assert_eq!(waiter.at(&first, WaitFor::Exit), None);
        let mut other = view("a", "running", json!({}));
        other.started = "2027-01-01T10:00:00+01:00".into();
        assert_eq!(waiter.at(&snapshot(vec![other]), WaitFor::Exit), Some(WaitOutcome::Gone));
        assert_eq!(waiter.at(&snapshot(vec![]), WaitFor::Exit), Some(WaitOutcome::Gone));
        assert_eq!(waiters(&BTreeSet::from(["b"]), &first).err().unwrap().code, ErrorCode::NotFound);
    }
}
