//! `swarm wait`: until something holds for workers.
//!
//! It hears the notices and looks at the snapshot with which each subscription begins; it never asks again
//! and again. What a view or a notice decides is pure and tested here.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use swarm_state::advice::start_again;
use swarm_state::cause::Cause;
use swarm_state::model::{Outcome, Status};
use swarm_state::notice::{Entry, StopReason};
use swarm_state::screen::printable;
use tokio::time::{Instant, timeout_at};

use crate::cli::{PageFormat, Wait, WaitFor};
use crate::client::context::Context;
use crate::client::subscription::{Subscription, Update, daemon_stopped};
use crate::client::worker::is_loop;
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Failure};
use crate::protocol::{Notice, Snapshot, WorkerView};

/// What was decided of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// It came true, and what is over ended well.
    True(Option<String>),
    /// It is over, and not as it should be.
    Over(Outcome, String),
    /// Its tmux server went away.
    Lost,
    /// Nobody knows it any more, or another worker has its name.
    Gone,
}

/// One worker that is waited for.
struct Waiter {
    name: String,
    /// When it was spawned: another one of the same name has another time.
    started: String,
    is_loop: bool,
    decided: bool,
}

pub(super) async fn run(ctx: &Context, args: &Wait) -> CommandResult {
    let names: BTreeSet<&str> = args.names.iter().map(|name| name.as_str()).collect();
    let alone = names.first().filter(|_| names.len() == 1).map(|name| (*name).to_owned());
    // A time-out beyond the end of time is none.
    let deadline = args.timeout.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    let mut subscription = Subscription::new(ctx.paths()?, alone, None);
    let Update::Snapshot(mut snapshot) = subscription.next().await? else {
        return Err(Error::new(ErrorCode::Internal, "a subscription without a snapshot").into());
    };
    let mut waiters = waiters(&names, &snapshot)?;
    if waiters.is_empty() {
        ctx.out.note("no worker is live: there is nothing to wait for");
    }
    let mut status = 0;
    loop {
        for waiter in waiters.iter_mut().filter(|w| !w.decided) {
            if let Some(verdict) = waiter.at(&snapshot, args.what) {
                status = status.max(waiter.tell(ctx, args, &verdict)?);
            }
        }
        // Until the next snapshot.
        snapshot = loop {
            if waiters.iter().all(|w| w.decided) {
                return Ok(status);
            }
            match next(&mut subscription, deadline).await {
                None => return late(ctx, args, &waiters),
                Some(Ok(Update::Snapshot(next))) => break next,
                Some(Ok(Update::Notice(notice))) => {
                    let known = notice.seq <= snapshot.seq;
                    let wanted = |w: &&mut Waiter| !w.decided && w.name == notice.worker;
                    if let Some(waiter) = waiters.iter_mut().find(wanted)
                        && let Some(verdict) = heard(&notice, args.what, known)
                    {
                        status = status.max(waiter.tell(ctx, args, &verdict)?);
                    }
                }
                Some(Ok(Update::DaemonStopped)) => return Err(daemon_stopped().into()),
                // The daemon is another one, and knows nothing of the only worker.
                Some(Err(error)) if error.code == ErrorCode::NotFound => {
                    break Snapshot { workers: vec![], ..snapshot };
                }
                Some(Err(error)) => return Err(error.into()),
            }
        };
    }
}

/// The next news; `None` when the time has run out.
async fn next(subscription: &mut Subscription, deadline: Option<Instant>) -> Option<Result<Update>> {
    match deadline {
        None => Some(subscription.next().await),
        Some(deadline) => timeout_at(deadline, subscription.next()).await.ok(),
    }
}

/// Those that were named, or all that are live.
fn waiters(names: &BTreeSet<&str>, snapshot: &Snapshot) -> Result<Vec<Waiter>> {
    let waiter = |worker: &WorkerView| Waiter {
        name: worker.name.clone(),
        started: worker.started.clone(),
        is_loop: is_loop(worker),
        decided: false,
    };
    if names.is_empty() {
        return Ok(snapshot.workers.iter().filter(|w| w.status.is_live()).map(waiter).collect());
    }
    let find = |name: &&str| {
        let unknown =
            || Error::new(ErrorCode::NotFound, format!("no worker named '{name}'")).hint("swarm ls");
        snapshot.workers.iter().find(|w| w.name == **name).map(waiter).ok_or_else(unknown)
    };
    names.iter().map(find).collect()
}

/// The time ran out: who is still out is named.
fn late(ctx: &Context, args: &Wait, waiters: &[Waiter]) -> CommandResult {
    let out: Vec<&str> = waiters.iter().filter(|w| !w.decided).map(|w| w.name.as_str()).collect();
    if args.format == PageFormat::Json {
        for name in &out {
            print_json(ctx, name, args.what, "timeout", None, None)?;
        }
    }
    let (word, seconds) = (args.what.word(), args.timeout.unwrap_or(0));
    let message = format!("after {seconds} s still waiting (for {word}) for {}", out.join(", "));
    Err(Error::new(ErrorCode::Timeout, message).hint("swarm ls").into())
}

fn print_json(
    ctx: &Context,
    name: &str,
    what: WaitFor,
    result: &str,
    outcome: Option<&str>,
    reason: Option<&str>,
) -> Result<(), Failure> {
    let line = json!({
        "name": name, "for": what.word(), "result": result, "outcome": outcome, "reason": reason
    });
    ctx.out.line(&line.to_string())
}

impl Waiter {
    /// What a snapshot decides.
    fn at(&self, snapshot: &Snapshot, what: WaitFor) -> Option<Verdict> {
        match snapshot.workers.iter().find(|w| w.name == self.name) {
            Some(worker) if worker.started == self.started => seen(worker, what),
            Some(_) | None => Some(Verdict::Gone),
        }
    }

    /// Says what was decided; gives the exit status that it asks for.
    fn tell(&mut self, ctx: &Context, args: &Wait, verdict: &Verdict) -> Result<u8, Failure> {
        self.decided = true;
        if args.format == PageFormat::Json {
            let (result, outcome, reason) = verdict.fields(args.what);
            print_json(ctx, &self.name, args.what, result, outcome, reason)?;
        } else if let Verdict::True(reason) = verdict {
            ctx.out.line(&self.good_news(args.what, reason.as_deref()))?;
        }
        let Some(error) = self.bad_news(args.what, verdict) else { return Ok(0) };
        ctx.out.error(&error);
        Ok(1)
    }

    /// `agent: done (done pattern matched)`, `agent: idle`.
    fn good_news(&self, what: WaitFor, reason: Option<&str>) -> String {
        let word = if reason.is_some() { "done" } else { what.word() };
        let reason = reason.map(|reason| format!(" ({})", printable(reason))).unwrap_or_default();
        format!("{}: {word}{reason}", self.name)
    }

    fn bad_news(&self, what: WaitFor, verdict: &Verdict) -> Option<Error> {
        let name = &self.name;
        let (message, hint) = match verdict {
            Verdict::True(_) => return None,
            Verdict::Over(outcome, reason) => {
                let reason = printable(reason);
                let how = match outcome {
                    Outcome::Killed => "was killed".to_owned(),
                    Outcome::Failed => format!("failed ({reason})"),
                    Outcome::Done => format!("is over ({reason})"),
                };
                let never = match what {
                    WaitFor::Exit | WaitFor::Done => String::new(),
                    WaitFor::Ready | WaitFor::Idle | WaitFor::Waiting => {
                        format!(", and will not be {} any more", what.word())
                    }
                };
                (format!("worker '{name}' {how}{never}"), Some(format!("swarm logs {name}")))
            }
            Verdict::Lost => {
                let hint = start_again(name, self.is_loop);
                (format!("worker '{name}' is lost: {}", Cause::Lost.text()), Some(hint))
            }
            Verdict::Gone => (format!("worker '{name}' is gone, or another one has its name"), None),
        };
        let error = Error::new(ErrorCode::Conflict, message);
        Some(match hint {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }
}

impl Verdict {
    /// `result`, `outcome` and `reason` of the JSON.
    fn fields(&self, what: WaitFor) -> (&'static str, Option<&'static str>, Option<&str>) {
        match self {
            Self::True(None) => ("ok", None, None),
            Self::True(Some(reason)) => ("ok", Some("done"), Some(reason)),
            Self::Over(outcome, reason) => {
                let word = match outcome {
                    Outcome::Done => "done",
                    Outcome::Failed => "failed",
                    Outcome::Killed => "killed",
                };
                debug_assert!(*outcome != Outcome::Done || !is_end(what), "that is what was waited for");
                ("failed", Some(word), Some(reason))
            }
            Self::Lost => ("failed", Some("lost"), None),
            Self::Gone => ("failed", Some("gone"), None),
        }
    }
}

/// Whether the end of a worker is what is waited for.
fn is_end(what: WaitFor) -> bool {
    matches!(what, WaitFor::Exit | WaitFor::Done)
}

fn over(outcome: Outcome, reason: String, what: WaitFor) -> Verdict {
    if outcome == Outcome::Done && is_end(what) {
        Verdict::True(Some(reason))
    } else {
        Verdict::Over(outcome, reason)
    }
}

/// What the state of a worker decides.
fn seen(worker: &WorkerView, what: WaitFor) -> Option<Verdict> {
    if let Some(outcome) = worker.outcome {
        return Some(over(outcome, worker.reason.clone().unwrap_or_default(), what));
    }
    if worker.status == Status::Lost {
        return Some(Verdict::Lost);
    }
    let holds = match what {
        WaitFor::Exit | WaitFor::Done => false,
        WaitFor::Ready => worker.ready,
        WaitFor::Idle => worker.idle,
        WaitFor::Waiting => worker.status == Status::Waiting,
    };
    holds.then_some(Verdict::True(None))
}

/// What a notice decides; `known` says that the last snapshot already knew of it.
fn heard(notice: &Notice, what: WaitFor, known: bool) -> Option<Verdict> {
    match &notice.entry {
        Entry::LoopComplete { reason, .. } | Entry::LoopFailed { reason, .. } | Entry::Stopped { reason } => {
            let outcome = match reason {
                reason if reason.is_success() => Outcome::Done,
                StopReason::Killed => Outcome::Killed,
                _ => Outcome::Failed,
            };
            return Some(over(outcome, reason.text(), what));
        }
        // It may have been resumed since.
        Entry::Lost { .. } if !known => return Some(Verdict::Lost),
        Entry::Cleaned if !known => return Some(Verdict::Gone),
        _ => {}
    }
    let holds = match (what, &notice.entry) {
        (WaitFor::Ready, Entry::Ready { .. } | Entry::Idle { .. }) => true,
        (WaitFor::Idle, Entry::Idle { .. }) => true,
        (WaitFor::Waiting, _) => notice.status == Status::Waiting,
        (WaitFor::Exit | WaitFor::Done | WaitFor::Ready | WaitFor::Idle, _) => false,
    };
    holds.then_some(Verdict::True(None))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::client::testing::view;

    fn told(entry: Value, status: &str) -> Notice {
        let mut notice = json!({"seq": 7, "worker": "a", "at": "t", "status": status});
        notice.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        serde_json::from_value(notice).unwrap()
    }

    #[test]
    fn an_end_is_what_was_waited_for_or_makes_it_impossible() {
        let end = |reason: Value| told(json!({"kind": "stopped", "reason": reason}), "stopped");
        let good = end(json!({"exited": {"code": 0}}));
        let bad = end(json!({"exited": {"code": 3}}));
        for what in [WaitFor::Exit, WaitFor::Done] {
            assert_eq!(heard(&good, what, false), Some(Verdict::True(Some("exited".into()))));
        }
        for what in [WaitFor::Ready, WaitFor::Idle, WaitFor::Waiting] {
            assert_eq!(heard(&good, what, false), Some(Verdict::Over(Outcome::Done, "exited".into())));
        }
        let failed = Verdict::Over(Outcome::Failed, "exit status 3".into());
        assert_eq!(heard(&bad, WaitFor::Exit, true), Some(failed));
        let killed = Verdict::Over(Outcome::Killed, "killed".into());
        assert_eq!(heard(&end(json!("killed")), WaitFor::Exit, false), Some(killed));
        let loop_over =
            told(json!({"kind": "loop_complete", "iterations": 2, "reason": "complete"}), "stopped");
        assert!(matches!(heard(&loop_over, WaitFor::Done, false), Some(Verdict::True(Some(_)))));
    }

    #[test]
    fn a_screen_decides_only_what_is_asked_of_it() {
        let idle = told(json!({"kind": "idle", "run": 1}), "running");
        let ready = told(json!({"kind": "ready", "run": 1}), "running");
        let waits = told(json!({"kind": "waiting", "run": 1, "reason": "trust"}), "waiting");
        let holds = |notice, what| heard(notice, what, false) == Some(Verdict::True(None));
        assert!(holds(&ready, WaitFor::Ready) && holds(&idle, WaitFor::Ready) && holds(&idle, WaitFor::Idle));
        assert!(holds(&waits, WaitFor::Waiting));
        assert!(!holds(&ready, WaitFor::Idle) && !holds(&idle, WaitFor::Waiting));
        for notice in [&idle, &ready, &waits] {
            assert_eq!(heard(notice, WaitFor::Exit, false), None);
        }
        let mut worker = view("a", "running", json!({}));
        assert_eq!(seen(&worker, WaitFor::Ready), None);
        worker.ready = true;
        assert_eq!(seen(&worker, WaitFor::Ready), Some(Verdict::True(None)));
        assert_eq!(seen(&worker, WaitFor::Idle), None);
        assert_eq!(seen(&view("a", "waiting", json!({})), WaitFor::Waiting), Some(Verdict::True(None)));
    }

    #[test]
    fn a_paused_loop_is_waited_for_and_a_lost_worker_is_not() {
        let paused = view("a", "stopped", json!({"ralph": true, "status": "paused"}));
        assert_eq!(seen(&paused, WaitFor::Exit), None);
        assert_eq!(
            heard(&told(json!({"kind": "paused", "by": "user"}), "stopped"), WaitFor::Exit, false),
            None
        );
        assert_eq!(seen(&view("a", "lost", json!({})), WaitFor::Exit), Some(Verdict::Lost));
        let lost = told(json!({"kind": "lost", "reason": "x"}), "lost");
        assert_eq!(heard(&lost, WaitFor::Exit, false), Some(Verdict::Lost));
        assert_eq!(heard(&lost, WaitFor::Exit, true), None, "it was resumed since");
    }

    #[test]
    fn the_next_worker_of_the_name_is_not_the_one_that_is_waited_for() {
        let snapshot = |workers| Snapshot { seq: 9, gap: false, workers, foreign: false, replayed: 0 };
        let first = snapshot(vec![view("a", "running", json!({}))]);
        let waiter = waiters(&BTreeSet::from(["a"]), &first).unwrap().remove(0);
        assert_eq!(waiter.at(&first, WaitFor::Exit), None);
        let mut other = view("a", "running", json!({}));
        other.started = "2027-01-01T10:00:00+01:00".into();
        assert_eq!(waiter.at(&snapshot(vec![other]), WaitFor::Exit), Some(Verdict::Gone));
        assert_eq!(waiter.at(&snapshot(vec![]), WaitFor::Exit), Some(Verdict::Gone));
        assert_eq!(waiters(&BTreeSet::from(["b"]), &first).err().unwrap().code, ErrorCode::NotFound);
    }
}
