//! The proof of the engine.
//!
//! [`tables`], [`phases`], [`questions`], [`limits`], [`parking`] and [`restarts`] say what must happen in words a
//! person can check, [`walk`] holds the rules over random events, [`world`] over a simulated machine with crashes and
//! faults, and [`seeded`] shows that these checkers see the bugs they are there for. Here is what they share.

mod evidence;
mod hold;
mod hook_signals;
mod limits;
mod parking;
mod phases;
mod questions;
mod restarts;
#[expect(clippy::wildcard_enum_match_arm, reason = "these tests name only the arms they are about")]
mod seeded;
mod tables;
#[expect(clippy::wildcard_enum_match_arm, reason = "these tests name only the arms they are about")]
mod walk;
#[expect(clippy::wildcard_enum_match_arm, reason = "these tests name only the arms they are about")]
mod world;

use std::time::Duration;

use chrono::{DateTime, TimeDelta};

use super::{Effect, Event, HookSignal, Now, Phase, Policy, SpawnError, Worker};
use crate::budget::Budgets;
use crate::gates::Verdict;
use crate::model::{Exit, Run};
use crate::screen::{Blocked, Reading};

impl Worker {
    /// A worker that loops, limited by its iterations and failures only, without gates except a done pattern.
    pub(crate) fn looping(policy: Policy, max_iterations: u32, inactivity_timeout: u64) -> Self {
        Self::verified(policy, max_iterations, inactivity_timeout, Budgets::default(), false)
    }
}

/// A moment: milliseconds on the engine's clock.
fn at(ms: u64) -> Now {
    let wall = DateTime::UNIX_EPOCH.fixed_offset();
    Now { mono: Duration::from_millis(ms), wall: wall + TimeDelta::milliseconds(ms.min(1 << 50) as i64) }
}

/// The prompt goes in without a paste, as on standard input.
const STDIN: Policy = Policy { paste: false, ready_wait: false, ready_timeout: 30, one_shot: false };

/// The prompt is pasted into a ready agent.
const PASTE: Policy = Policy { paste: true, ready_wait: true, ready_timeout: 30, one_shot: false };

/// A screen that shows `n`, printed by the agent, and nothing else of note.
fn screen(n: u8) -> Reading {
    Reading {
        fingerprint: [n; 16],
        calm_fingerprint: [n; 16],
        size: (200, 50),
        printed: true,
        ..Reading::default()
    }
}

fn dialog(n: u8, startup: bool, what: &str) -> Reading {
    Reading { blocked: Some(Blocked { startup, what: what.to_owned() }), ..screen(n) }
}

fn gates(done: bool) -> Verdict {
    Verdict { done_pattern: Some(done), ..Verdict::default() }
}

/// The phase in one word, with what matters in it.
fn phase_word(worker: &Worker) -> String {
    let seconds = |d: Duration| d.as_secs();
    match worker.phase() {
        Phase::Idle => "idle".into(),
        Phase::Spawning { doomed: false } => "spawning".into(),
        Phase::Spawning { doomed: true } => "doomed".into(),
        Phase::Starting { .. } => "starting".into(),
        Phase::Prompting { .. } => "prompting".into(),
        Phase::Running { .. } => "running".into(),
        Phase::Ending { why, .. } => format!("ending({why:?})").to_lowercase(),
        Phase::Evaluating { exit, why: None } => format!("judging({exit})"),
        Phase::Evaluating { exit, why: Some(why) } => format!("judging({exit},{why:?})").to_lowercase(),
        Phase::BackingOff { delay, .. } => format!("backoff({}s)", seconds(*delay)),
        Phase::Parked => "parked".into(),
        Phase::Lost => "lost".into(),
        Phase::Stopped { reason } => format!("stopped({})", reason.slug()),
    }
}

fn effect_word(effect: &Effect) -> String {
    match effect {
        Effect::Persist => "persist".into(),
        Effect::Spawn(run) => format!("spawn {run}"),
        Effect::Deliver(run) => format!("deliver {run}"),
        Effect::Terminate(run) => format!("term {run}"),
        Effect::ForceKill(run) => format!("force {run}"),
        Effect::Probe(run) => format!("probe {run}"),
        Effect::Look(run) => format!("look {run}"),
        Effect::Evaluate(run) => format!("judge {run}"),
        Effect::Notify(entry) => match entry.follow_line("w") {
            Some(line) => format!("\"{}\"", line.trim_start_matches("[ralph] w: ")),
            None => format!("{entry:?}").split([' ', '{']).next().unwrap_or_default().to_lowercase(),
        },
    }
}

/// Renders a step: effects, then the phase after it.
fn line(effects: &[Effect], worker: &Worker) -> String {
    let words: Vec<String> = effects.iter().map(effect_word).collect();
    format!("{} => {}", words.join("; "), phase_word(worker)).trim_start().to_owned()
}

/// A small generator of its own, so that a seed names a walk for ever (splitmix64).
#[derive(Clone, Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n` (0 for `n` = 0).
    fn below(&mut self, n: u64) -> u64 {
        self.roll() % n.max(1)
    }

    /// True once in `n` times.
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The run that a report is about; `None` for what people and time say.
fn about(event: &Event) -> Option<Run> {
    match event {
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
        | Event::Reachable(_) => None,
        Event::Up(run)
        | Event::SpawnFailed(run, _)
        | Event::Adopted(run)
        | Event::NeverStarted(run)
        | Event::Screen(run, _)
        | Event::Quiet(run)
        | Event::PromptSent(run)
        | Event::PromptFailed(run, _)
        | Event::PromptBlocked(run, _)
        | Event::Typing(run)
        | Event::Typed(run)
        | Event::Hook(run, _)
        | Event::Grew(run, _)
        | Event::Probed(run, _)
        | Event::Exited(run, _)
        | Event::PaneLost(run)
        | Event::ServerLost(run)
        | Event::Evaluated(run, _) => Some(*run),
    }
}
