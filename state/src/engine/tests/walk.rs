//! The safety rules over random events, true or not, in any order and about any run.
//!
//! The walks lie on purpose: what an edge could ever report comes at any moment. So the [`Monitor`] only
//! knows rules that hold whatever is reported; what needs a truthful world is in [`super::world`].

use proptest::prelude::*;

use super::super::{Edits, Loop, TroubleKind};
use super::seeded::Machine;
use super::*;
use crate::budget::BudgetEdits;
use crate::budget::Budgets;
use crate::engine::{Presence, RELEASE_DELAY, Why};
use crate::gates::CheckResult;
use crate::model::{RestartSpec, RestartWhen, Status};
use crate::notice::{PauseBy, StopReason};
use crate::outage::{self, MAX_OUTAGE_TRIES, Outage};
use crate::promise::Claim;
use crate::quota::Park;

/// Anything that a hook may tell.
fn hook_signal(arg: u8) -> HookSignal {
    match arg % 8 {
        0 => HookSignal::Prompt,
        1 => HookSignal::Working,
        2 => HookSignal::ApiError("529".into()),
        3 => HookSignal::ContextSpent,
        4 => HookSignal::Asks("may I".into()),
        5 => HookSignal::Idle,
        6 => HookSignal::ToolUsed(Some(arg)),
        _ => HookSignal::TurnOver,
    }
}

/// The outstanding actions and promises of a worker, seen from outside.
#[derive(Default)]
struct Monitor {
    spawning: Option<Run>,
    judging: Option<Run>,
    delivering: Option<Run>,
    probing: Option<Run>,
    killed: bool,
    paused: bool,
    held: bool,
    /// An iteration succeeded.
    succeeded: bool,
}

type Memory = (
    std::mem::Discriminant<Phase>,
    Option<Why>,
    (bool, bool, bool),
    Run,
    Option<(u32, u32, u32, bool)>,
    Option<u32>,
);

/// The state that must be on disk: a step that changes it and does not persist loses it in a crash.
fn memory(worker: &Worker) -> Memory {
    let (why, doomed) = match worker.phase() {
        Phase::Ending { why, .. } => (Some(*why), false),
        Phase::Evaluating { why, .. } => (*why, false),
        Phase::Spawning { doomed } => (None, *doomed),
        _ => (None, false),
    };
    let numbers = |l: &Loop| (l.iteration, l.total_failures, l.max_iterations, l.paused.is_some());
    let failures = worker.restarts().map(|restarts| restarts.failures);
    let doomed = (doomed, worker.is_held(), worker.is_held_by_typing());
    (std::mem::discriminant(worker.phase()), why, doomed, worker.run(), worker.ralph().map(numbers), failures)
}

macro_rules! hold {
    ($cond:expr, $($text:tt)+) => {
        if !$cond { return Err(format!($($text)+)); }
    };
}

impl Monitor {
    /// Checks one step against every rule.
    fn check(
        &mut self,
        before: &Worker,
        event: &Event,
        effects: &[Effect],
        (after, due): (&Worker, Option<Duration>),
    ) -> Result<(), String> {
        self.hear(before, event);
        // Another phase is another watch: an answer to the old one is of no use to it.
        if memory(before) != memory(after) {
            self.probing = None;
        }
        if about(event).is_some_and(|run| run != before.run()) {
            hold!(effects.is_empty() && before == after, "rule 2: news of another run did something");
        }
        self.spares_held(before, event, effects, after)?;
        self.effects(before, event, effects, after)?;
        self.exits(before, event, after)?;
        Self::spared(before, after)?;
        self.all_failed(before, after)?;
        self.waits(after, due)?;
        Self::views(after)
    }

    /// Takes over what an event answers or forbids.
    fn hear(&mut self, before: &Worker, event: &Event) {
        match event {
            Event::Kill => self.killed |= !before.is_stopped(),
            Event::Pause(_) if before.ralph().is_some() && !before.is_stopped() => self.paused = true,
            Event::Resume => {
                self.paused = false;
                // Without an agent, a resume ends the hold.
                self.held &= before.has_pane();
            }
            Event::Hold => self.held |= !before.is_stopped() && *before.phase() != Phase::Lost,
            Event::Release => self.held = false,
            _ => {}
        }
        let run = about(event);
        match event {
            Event::Up(_) | Event::SpawnFailed(..) | Event::NeverStarted(_) => {
                self.spawning = self.spawning.filter(|s| Some(*s) != run);
            }
            Event::Exited(..) | Event::PaneLost(_) | Event::ServerLost(_) => {
                self.spawning = self.spawning.filter(|s| Some(*s) != run);
            }
            Event::Evaluated(..) => self.judging = self.judging.filter(|s| Some(*s) != run),
            Event::PromptSent(_) | Event::PromptFailed(..) | Event::PromptBlocked(..) => {
                self.delivering = self.delivering.filter(|s| Some(*s) != run);
            }
            Event::Probed(..) => self.probing = self.probing.filter(|s| Some(*s) != run),
            // A fresh daemon: nothing that was asked before will be answered.
            Event::Adopted(_) => {
                self.spawning = self.spawning.filter(|s| Some(*s) != run);
                self.judging = self.judging.filter(|s| Some(*s) != run);
                self.delivering = self.delivering.filter(|s| Some(*s) != run);
            }
            Event::Start
            | Event::Pause(_)
            | Event::Resume
            | Event::Kill
            | Event::Edited(_)
            | Event::Hold
            | Event::Release
            | Event::Present(_)
            | Event::Tick
            | Event::Quota(_)
            | Event::Reachable(_)
            | Event::Screen(..)
            | Event::Quiet(_)
            | Event::Typing(_)
            | Event::Typed(_)
            | Event::Grew(..)
            | Event::Hook(..) => {}
        }
    }

    /// swarm types nothing into a held worker, starts no run of it and ends none, except by a kill.
    fn spares_held(
        &mut self,
        before: &Worker,
        event: &Event,
        effects: &[Effect],
        after: &Worker,
    ) -> Result<(), String> {
        hold!(!self.held || after.is_held() || self.killed || after.is_stopped(), "the hold was forgotten");
        let is_ending = |w: &Worker| matches!(w.phase(), Phase::Ending { .. } | Phase::Spawning { .. });
        if !before.is_held() || !after.is_held() || is_ending(before) && is_ending(after) {
            return Ok(());
        }
        for effect in effects {
            let acts = matches!(effect, Effect::Spawn(_) | Effect::Deliver(_) | Effect::Terminate(_));
            hold!(!acts, "{effect:?} by {event:?} while it was held");
        }
        Ok(())
    }

    /// Rules 3 and 5.
    fn effects(
        &mut self,
        before: &Worker,
        event: &Event,
        effects: &[Effect],
        after: &Worker,
    ) -> Result<(), String> {
        let persist = effects.iter().position(|e| *e == Effect::Persist);
        hold!(memory(before) == memory(after) || persist.is_some(), "rule 3: a change was not persisted");
        for (i, effect) in effects.iter().enumerate() {
            let changed = memory(before) != memory(after);
            let first = persist.is_some_and(|p| p < i);
            let run = match effect {
                Effect::Persist | Effect::Notify(_) => continue,
                Effect::Spawn(run) => {
                    hold!(first, "rule 3: a spawn without its intent on disk");
                    self.spawn(before, event, *run, after)?;
                    run
                }
                Effect::Deliver(run) => {
                    hold!(self.delivering.is_none_or(|d| d < *run), "a second delivery");
                    self.delivering = Some(*run);
                    run
                }
                Effect::Probe(run) => {
                    hold!(self.probing.is_none_or(|p| p < *run), "a second probe");
                    self.probing = Some(*run);
                    run
                }
                Effect::Evaluate(run) => {
                    hold!(self.judging.is_none_or(|j| j < *run), "judged twice");
                    self.judging = Some(*run);
                    run
                }
                Effect::Terminate(run) | Effect::ForceKill(run) | Effect::Look(run) => run,
            };
            hold!(!changed || first, "rule 3: acted before writing");
            hold!(*run == after.run(), "an effect about another run");
        }
        if let Phase::Stopped { reason } = before.phase() {
            let resumed = *event == Event::Resume && reason.is_limit() && before.ralph().is_some();
            hold!(before.phase() == after.phase() || resumed, "stopped is not the end");
        } else if after.is_stopped() {
            hold!(Self::may_stop(before, event), "rule 5: stopped while a pane may be left");
        }
        Ok(())
    }

    fn spawn(&mut self, before: &Worker, event: &Event, run: Run, after: &Worker) -> Result<(), String> {
        hold!(!self.killed, "rule 5: a spawn after a kill");
        let again = matches!(event, Event::NeverStarted(_));
        hold!(run == before.run().next(), "rule 5: run {run} after {}", before.run());
        hold!(self.spawning.is_none(), "rule 5: a second spawn");
        hold!(paneless(before) || Self::ends(event), "rule 5: a spawn beside a pane");
        if let (Some(ralph), Some(was)) = (after.ralph(), before.ralph()) {
            hold!(ralph.paused.is_none() && !self.paused, "rule 5: a spawn by a paused loop");
            hold!(ralph.iteration <= ralph.max_iterations, "rule 5: iteration over the maximum");
            let step = i64::from(ralph.iteration) - i64::from(was.iteration);
            let repeat = again || *before.phase() == Phase::Lost;
            hold!(step == i64::from(!repeat), "rule 5: the count went by {step}");
            let limits = &was.budgets;
            hold!(
                limits.max_cost.is_none_or(|limit| ralph.spent.cost < limit),
                "a spawn over the cost limit"
            );
            hold!(
                limits.max_tokens.is_none_or(|limit| ralph.spent.tokens < limit),
                "a spawn over the token limit"
            );
        }
        if after.ralph().is_none() && after.restart_count() > 0 && !again {
            let Some(restarts) = after.restarts() else {
                return Err("rule 5: run again without a policy".into());
            };
            hold!(restarts.failures <= restarts.spec.max_restarts, "rule 5: too many restarts in a row");
            let waited = matches!((before.phase(), event), (Phase::BackingOff { .. }, Event::Tick));
            hold!(waited, "rule 5: a restart without a wait");
        }
        self.spawning = Some(run);
        Ok(())
    }

    /// True when the report says that nothing of the run is left.
    fn ends(event: &Event) -> bool {
        matches!(
            event,
            Event::Evaluated(..) | Event::SpawnFailed(..) | Event::NeverStarted(_) | Event::ServerLost(_)
        )
    }

    fn may_stop(before: &Worker, event: &Event) -> bool {
        let judged =
            matches!(event, Event::Evaluated(..)) && matches!(before.phase(), Phase::Evaluating { .. });
        let gone = Self::ends(event) && !matches!(event, Event::Evaluated(..));
        paneless(before) || judged || gone
    }

    /// Rule 4 for a worker that is started again: exit status 0 is the end or another run, and what is not
    /// exit status 0 counts as a failure and never as the end of a worker that did well.
    fn restarts(before: &Worker, event: &Event, after: &Worker) -> Result<(), String> {
        let (Some(was), Some(is)) = (before.restarts(), after.restarts()) else { return Ok(()) };
        let (Phase::Evaluating { exit, why }, Event::Evaluated(run, verdict)) = (before.phase(), event)
        else {
            return Ok(());
        };
        let done = verdict.is_complete() && exit.is_success();
        if *run != before.run() || why.is_some() || done {
            hold!(*run != before.run() || after.is_stopped(), "rule 4: started again after {why:?}");
            return Ok(());
        }
        let over = exit.is_success() && is.spec.when == RestartWhen::OnFailure;
        hold!(
            is.failures == if exit.is_success() { 0 } else { was.failures + 1 },
            "rule 4: {exit} was miscounted"
        );
        hold!(!over || after.is_stopped(), "rule 4: started again after {exit}");
        let may_end = over || is.failures > is.spec.max_restarts;
        hold!(after.is_stopped() == may_end, "rule 4: {exit} after {} is no end", was.failures);
        hold!(after.status() != Status::Done || exit.is_success(), "rule 4: {exit} as a success");
        Ok(())
    }

    /// Rule 4: only what ended well counts as well.
    fn exits(&mut self, before: &Worker, event: &Event, after: &Worker) -> Result<(), String> {
        Self::restarts(before, event, after)?;
        let (Some(was), Some(is)) = (before.ralph(), after.ralph()) else { return Ok(()) };
        let (Phase::Evaluating { exit, why }, Event::Evaluated(run, verdict)) = (before.phase(), event)
        else {
            hold!(is.failures >= was.failures, "rule 4: failures were forgotten");
            return Ok(());
        };
        Self::verified(before, verdict, after)?;
        if *run == before.run() && *why == Some(Why::Undelivered) {
            let done = matches!(after.phase(), Phase::Stopped { reason } if reason.is_success());
            hold!(!done || self.succeeded, "complete without a prompt");
        }
        if *run != before.run() || *why == Some(Why::Kill) || verdict.is_complete() {
            return Ok(());
        }
        let outage = verdict.outage.is_some() && *why != Some(Why::OutOfTime);
        let failed = match why {
            None => !exit.is_success() || verdict.api_error.is_some(),
            Some(Why::Inactivity) => verdict.api_error.is_some(),
            Some(Why::ApiError | Why::Silent | Why::Undelivered | Why::Unanswered) => true,
            Some(Why::Done | Why::TurnOver | Why::ContextSpent) => false,
            Some(Why::Timeout | Why::OutOfTime | Why::Kill) => false,
        };
        if outage && is.outages <= MAX_OUTAGE_TRIES {
            hold!(is.failures == was.failures, "an outage was counted as a failure");
            let used = i64::from(is.iteration) - i64::from(was.iteration);
            hold!(used == -1 || after.is_stopped(), "an outage used up an iteration");
            return Ok(());
        }
        hold!(failed == (is.failures == was.failures + 1), "rule 4: {exit} was miscounted");
        hold!(failed == (is.total_failures == was.total_failures + 1), "rule 4: {exit} was miscounted");
        let out_of_time = matches!(why, Some(Why::Timeout | Why::OutOfTime));
        let succeeded = !failed && !out_of_time;
        hold!(
            !succeeded || is.failures == 0 || after.is_stopped(),
            "rule 4: a success left a row of failures"
        );
        hold!(succeeded || is.failures >= was.failures, "rule 4: {exit} reset the count");
        self.succeeded |= succeeded;
        Ok(())
    }

    /// Done means verified: a loop with gates ends well only when all of them hold.
    fn verified(before: &Worker, verdict: &Verdict, after: &Worker) -> Result<(), String> {
        let (Some(ralph), Phase::Stopped { reason }) = (after.ralph(), after.phase()) else { return Ok(()) };
        let news = !before.is_stopped() && ralph.gated && reason.is_success();
        hold!(!news || verdict.is_complete(), "complete, and the gates do not hold: {reason:?}");
        hold!(
            !news || matches!(reason, StopReason::Verified | StopReason::Promised),
            "complete by {reason:?}"
        );
        Ok(())
    }

    /// No silence ends the agent of a paused loop, or one that waits for a person; and a question ends only a run
    /// that waits with one.
    fn spared(before: &Worker, after: &Worker) -> Result<(), String> {
        let ends = |w: &Worker| match w.phase() {
            Phase::Ending { why, .. } => Some(*why),
            _ => None,
        };
        let Some(why) = ends(after).filter(|_| ends(before).is_none()) else { return Ok(()) };
        let paused = after.ralph().is_none_or(|l| l.paused.is_some());
        let waits = before.trouble.is_some();
        let silence = matches!(why, Why::Inactivity | Why::Silent);
        hold!(!silence || !(paused || waits), "ended by inactivity, but it was to be spared");
        let kind = before.trouble.as_ref().map(|trouble| trouble.kind);
        let asks = matches!(kind, Some(TroubleKind::Dialog | TroubleKind::Asked));
        hold!(why != Why::Unanswered || (asks && !paused), "no question to answer");
        Ok(())
    }

    /// A loop that needs nothing but its iterations does well only if one of them did.
    fn all_failed(&self, before: &Worker, after: &Worker) -> Result<(), String> {
        let Phase::Stopped { reason } = after.phase() else { return Ok(()) };
        let news = !before.is_stopped() && after.ralph().is_some();
        let well = *reason == StopReason::MaxIterations;
        hold!(!news || !well || self.succeeded, "well, and every iteration failed");
        hold!(!news || *reason != StopReason::AllFailed || !self.succeeded, "failed, and one succeeded");
        Ok(())
    }

    /// Rules 1 and 6: what waits has a deadline or a report outstanding.
    fn waits(&self, after: &Worker, due: Option<Duration>) -> Result<(), String> {
        let due = due.is_some();
        let (ok, what) = match after.phase() {
            Phase::Spawning { .. } => (self.spawning == Some(after.run()), "spawning with no report to come"),
            Phase::Evaluating { .. } => (self.judging == Some(after.run()), "judging with no report to come"),
            Phase::Prompting { .. } => (due, "prompting without a deadline"),
            Phase::Ending { .. } => (due, "ending without a deadline"),
            Phase::BackingOff { .. } => {
                ((due || after.is_held()) && !self.killed, "backing off without a deadline")
            }
            Phase::Starting { .. } | Phase::Running { .. } => (after.wants_screen(), "nobody looks"),
            Phase::Idle | Phase::Parked | Phase::Lost | Phase::Stopped { .. } => {
                (!due || after.is_held_by_typing(), "a deadline where nothing waits")
            }
        };
        hold!(ok, "rule 6: {what}");
        Ok(())
    }

    /// The views agree with each other.
    fn views(after: &Worker) -> Result<(), String> {
        let status = after.status();
        hold!(after.loop_status().is_some() == after.ralph().is_some(), "loop status of a plain worker");
        hold!(after.is_stopped() == status.is_finished(), "stopped but {status}");
        hold!(!after.has_pane() || status.is_live(), "a pane, but {status}");
        let why_not = status.is_live() || after.reason().is_some();
        hold!(why_not, "{status} without a reason");
        Ok(())
    }
}

/// True when no pane of the current run is thought to exist.
fn paneless(worker: &Worker) -> bool {
    !worker.has_pane()
}

/// One thing that happens in a walk; small numbers, so that a failing walk can be shrunk and read.
#[derive(Clone, Copy, Debug)]
struct Op {
    kind: u8,
    arg: u8,
    /// Seconds since the one before, in quarters.
    gap: u8,
    /// How far the report's run is from the current one.
    run: i8,
}

impl Op {
    fn random(dice: &mut Dice) -> Self {
        let run = match dice.below(12) {
            0 => -1,
            1 => 1,
            2 => -2,
            _ => 0,
        };
        Self { kind: dice.below(40) as u8, arg: dice.below(256) as u8, gap: dice.below(64) as u8, run }
    }

    fn event(self, worker: &Worker) -> Event {
        let run = Run(worker.run().0.saturating_add_signed(i64::from(self.run)));
        let arg = self.arg;
        match self.kind {
            0 => Event::Start,
            1 if arg < 128 => Event::Pause(PauseBy::User),
            1 => Event::Pause(PauseBy::Shutdown),
            2 => Event::Resume,
            3 if arg < 60 => Event::Kill,
            4 => Event::Edited(Edits {
                max_iterations: arg.is_multiple_of(2).then_some(u32::from(arg / 16)),
                inactivity_timeout: arg.is_multiple_of(3).then_some(u64::from(arg / 4)),
                done_pattern: arg.is_multiple_of(5).then_some(None),
                prompt_file: None,
                question_timeout: arg.is_multiple_of(5).then_some(u64::from(arg / 16)),
                budgets: BudgetEdits {
                    max_time: arg.is_multiple_of(7).then_some((arg > 100).then_some(u64::from(arg))),
                    max_cost: arg.is_multiple_of(11).then_some((arg > 100).then_some(u64::from(arg))),
                    max_failures: arg.is_multiple_of(13).then_some(u32::from(arg / 32)),
                    no_progress: arg.is_multiple_of(17).then_some((arg > 100).then_some(2)),
                    ..BudgetEdits::default()
                },
            }),
            5 => Event::Reachable(arg.is_multiple_of(2)),
            6..=9 => Event::Up(run),
            10 if arg < 80 => Event::SpawnFailed(run, SpawnError::Other("no".into())),
            10 if arg < 90 => Event::SpawnFailed(run, SpawnError::Prompt("gone".into())),
            10 if arg < 100 => Event::SpawnFailed(run, SpawnError::OutOfTime),
            10 if arg < 104 => Event::SpawnFailed(run, SpawnError::NoGate),
            11 if arg < 128 => Event::Adopted(run),
            11 => Event::NeverStarted(run),
            12..=15 => Event::Screen(run, self.reading()),
            16..=19 => Event::Quiet(run),
            20 | 21 => Event::PromptSent(run),
            22 if arg < 100 => Event::PromptFailed(run, "no".into()),
            22 => Event::PromptBlocked(run, self.reading().blocked),
            23 if arg < 128 => Event::Hook(run, hook_signal(arg)),
            23 if arg < 160 => Event::Typing(run),
            23 if arg < 192 => Event::Typed(run),
            23 => Event::Grew(run, Duration::from_secs(u64::from(arg % 32))),
            24 | 25 => Event::Probed(run, arg.is_multiple_of(3)),
            26..=28 => Event::Exited(run, self.exit()),
            29 if arg < 80 => Event::PaneLost(run),
            29 if arg < 120 => Event::ServerLost(run),
            29 if arg < 128 => Event::Hold,
            29 if arg < 180 => Event::Release,
            29 if arg < 188 => Event::Present(Presence::Typing),
            29 if arg < 192 => Event::Present(Presence::Attached),
            29 => Event::Present(Presence::Away(RELEASE_DELAY)),
            30..=34 => Event::Evaluated(run, self.verdict()),
            35 if arg < 8 => Event::Quota(None),
            35 if arg < 24 => Event::Quota(Some(self.park())),
            _ => Event::Tick,
        }
    }

    fn verdict(self) -> Verdict {
        let arg = self.arg;
        let kind = [
            outage::OutageKind::Limit,
            outage::OutageKind::Overload,
            outage::OutageKind::Login,
            outage::OutageKind::Forbidden,
        ][usize::from(arg % 4)];
        let outage = Outage { kind, message: "limit".into(), until: None };
        let check = CheckResult {
            name: "c".into(),
            passed: arg.is_multiple_of(2),
            output: String::new(),
            seconds: 1.0,
            cut: false,
            tests: None,
        };
        Verdict {
            done_pattern: [None, Some(false), Some(arg < 20)][usize::from(arg % 3)],
            promise: [None, Some(Claim::Valid), Some(Claim::Rejected)][usize::from(arg / 3 % 3)],
            checks: if arg.is_multiple_of(5) { vec![check] } else { vec![] },
            outage: (self.gap.is_multiple_of(4)).then_some(outage),
            api_error: self.gap.is_multiple_of(8).then(|| "[API Error: no]".into()),
            cost: (!arg.is_multiple_of(3)).then_some(u64::from(arg / 8)),
            tokens: arg.is_multiple_of(4).then_some(u64::from(arg)),
            moved: [None, Some(true), Some(false)][usize::from(arg / 7 % 3)],
            ..Verdict::default()
        }
    }

    fn park(self) -> Park {
        let until = at(0).wall + TimeDelta::seconds(i64::from(self.arg) * 8);
        Park { account: "a".into(), limit: "l".into(), used: 92, until }
    }

    fn exit(self) -> Exit {
        [Exit::Code(0), Exit::Code(1), Exit::Signal(9), Exit::Lost, Exit::Unknown][usize::from(self.arg % 5)]
    }

    fn reading(self) -> Reading {
        let arg = self.arg;
        let blocked =
            arg.is_multiple_of(8).then(|| Blocked { startup: arg > 128, what: format!("d{}", arg % 3) });
        Reading {
            fingerprint: [arg % 4; 16],
            size: (200, 50 - u16::from(arg.is_multiple_of(7))),
            ready: arg % 5 < 2,
            working: arg.is_multiple_of(11),
            blocked,
            calm_fingerprint: [arg % 2; 16],
            rows: (usize::from(arg % 3), 0),
            printed: !arg.is_multiple_of(3),
            done: arg % 16 == 1,
        }
    }
}

/// Kinds of workers; each with the three ways to get ready.
const KINDS: u8 = 7;

fn worker(which: u8) -> Worker {
    let policy = [STDIN, PASTE, Policy { paste: false, ..PASTE }][usize::from(which % 3)].clone();
    let again = |when, max_restarts| RestartSpec { when, max_restarts };
    match which / 3 % KINDS {
        0 => Worker::plain(policy),
        3 => Worker::restarting(policy, again(RestartWhen::OnFailure, 2)),
        4 => Worker::restarting(policy, again(RestartWhen::Always, 3)),
        5 => {
            let budgets = Budgets {
                max_time: Some(150),
                max_cost: Some(40),
                iteration_timeout: Some(25),
                no_progress: Some(2),
                ..Budgets::default()
            };
            Worker::verified(policy, 20, 40, budgets, true)
        }
        6 => {
            let budgets = Budgets { max_tokens: Some(300), max_failures: 2, ..Budgets::default() };
            Worker::verified(policy, 6, 20, budgets, true)
        }
        1 => Worker::looping(policy, 3, 10).asking(20),
        _ => Worker::looping(Policy { one_shot: which % 2 == 1, ..policy }, 12, 40).asking(5),
    }
}

/// Walks, and tells which rule broke at which step.
fn walk(machine: &mut Machine, ops: &[Op]) -> Result<(), String> {
    let mut monitor = Monitor::default();
    let mut ms = 0;
    for (i, op) in ops.iter().enumerate() {
        ms += u64::from(op.gap) * 250;
        let event = op.event(&machine.worker);
        let before = machine.worker.clone();
        let effects = machine.step(event.clone(), at(ms));
        let told = |rule: String| {
            let did = line(&effects, &machine.worker);
            format!("{rule}\n  step {i}, {}ms: {} + {event:?}\n  {did}", ms, phase_word(&before))
        };
        let due = machine.deadline();
        monitor.check(&before, &event, &effects, (&machine.worker, due)).map_err(told)?;
        if event == Event::Tick && due.is_some_and(|due| due <= at(ms).mono) {
            return Err(told("rule 1: a deadline that has passed stays".into()));
        }
    }
    Ok(())
}

/// One walk of 80 events from a seed.
pub(super) fn seeded_walk(machine: impl FnOnce(Worker) -> Machine, seed: u64) -> Result<(), String> {
    let mut dice = Dice(seed);
    let mut machine = machine(worker(dice.below(3 * u64::from(KINDS)) as u8));
    let mut ops = vec![Op { kind: 0, arg: 0, gap: 0, run: 0 }];
    ops.extend((0..80).map(|_| Op::random(&mut dice)));
    walk(&mut machine, &ops).map_err(|text| format!("seed {seed}: {text}"))
}

#[test]
fn rules_hold_in_20000_seeded_walks() {
    for seed in 0..20_000 {
        seeded_walk(Machine::true_one, seed).unwrap();
    }
}

#[test]
fn seeded_walks_reach_every_phase_and_log_entry() {
    let mut phases = std::collections::BTreeSet::new();
    let mut entries = std::collections::BTreeSet::new();
    for seed in 0..2000 {
        let mut dice = Dice(seed);
        let mut machine = Machine::true_one(worker(dice.below(3 * u64::from(KINDS)) as u8));
        machine.step(Event::Start, at(0));
        for i in 0..80 {
            let event = Op::random(&mut dice).event(&machine.worker);
            for effect in machine.step(event, at(i * 4000)) {
                let Effect::Notify(entry) = effect else { continue };
                entries.insert(format!("{entry:?}").split([' ', '{']).next().unwrap().to_owned());
            }
            let word = phase_word(&machine.worker);
            phases.insert(
                word.split(|c: char| c == '(' && !word.starts_with("ending")).next().unwrap().to_owned(),
            );
        }
    }
    // Idle is left at once; a warning is the edge's.
    assert_eq!(phases.len(), 10 + 11, "{phases:?}");
    assert_eq!(entries.len(), 25, "{entries:?}");
    assert!(!entries.contains("Warning"));
}

#[test]
fn serialized_worker_is_equal_after_each_step() {
    for seed in 0..500 {
        let mut dice = Dice(seed);
        let mut worker = worker(dice.below(3 * u64::from(KINDS)) as u8);
        worker.step(Event::Start, at(0));
        for i in 0..60 {
            let event = Op::random(&mut dice).event(&worker);
            worker.step(event, at(i * 4000));
            let text = serde_json::to_string(&worker).unwrap();
            let mut back: Worker = serde_json::from_str(&text).unwrap();
            back.reachable = worker.reachable;
            back.account_park.clone_from(&worker.account_park);
            if let (Some(back), Some(restarts)) = (&mut back.restarts, &worker.restarts) {
                back.watched = restarts.watched;
            }
            assert_eq!(back, worker, "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same walks once more, with a generator that shrinks what it finds.
    #[test]
    fn rules_hold_in_any_walk(
        which in 0u8..3 * KINDS,
        ops in prop::collection::vec((0u8..40, any::<u8>(), 0u8..64, -2i8..2), 0..60),
    ) {
        let mut machine = Machine::true_one(worker(which));
        let ops: Vec<Op> = ops.iter().map(|&(kind, arg, gap, run)| Op { kind, arg, gap, run }).collect();
        prop_assert_eq!(walk(&mut machine, &ops), Ok(()));
    }

    /// Numbers of any size, as a broken or hostile record may hold them, never panic.
    #[test]
    fn extreme_numbers_do_not_panic(
        ready_timeout in any::<u64>(), max in any::<u32>(), timeout in any::<u64>(), big in any::<u64>(),
        ops in prop::collection::vec((0u8..40, any::<u8>(), 0u8..64, Just(0i8)), 0..60),
    ) {
        let policy = Policy { ready_timeout, ..PASTE };
        let mut worker = Worker::looping(policy, max, timeout);
        worker.run = Run(u64::MAX - 1);
        if big % 4 == 0 {
            worker = Worker::looping(worker.policy, max, timeout);
        }
        if let Some(ralph) = &mut worker.ralph {
            (ralph.failures, ralph.total_failures, ralph.iteration) = (u32::MAX, u32::MAX, u32::MAX - 1);
            ralph.started_mono = Duration::MAX;
        }
        let begin = [(0, 0, 0, 0), (6, 0, 0, 0), (12, 5, 0, 0)];
        for (i, &(kind, arg, _, run)) in begin.iter().chain(&ops).enumerate() {
            let event = Op { kind, arg, gap: 0, run }.event(&worker);
            let now = if i % 2 == 0 { at(big) } else { Now { mono: Duration::MAX, ..at(1) } };
            worker.step(event, now);
            worker.rebase(now);
            let _ = (worker.status(), worker.reason(), worker.loop_status(), worker.deadline());
        }
    }
}
