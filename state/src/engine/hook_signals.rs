//! The transitions: what an agent's own hooks tell. They are exact where a screen is a guess.
//!
//! That a turn is over is told while the agent's own Stop hooks still run, and another of them may keep the
//! agent going. So the run is ended only a moment later and after one more look at its screen; an agent that
//! is then at work again goes on, and the screen says when it stands still.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Effect, Now, Phase, TroubleKind, Watch, Why, Worker};
use crate::notice::Entry;

/// How long after the end of a turn another hook may keep the agent going.
pub(super) const TURN_QUIET: Duration = Duration::from_secs(1);

/// How long the look that follows may take before it is done without.
const LOOK_LIMIT: Duration = Duration::from_secs(4);

/// What an agent's hook tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookSignal {
    /// A prompt was taken.
    Prompt,
    /// The agent is at work.
    Working,
    /// Its turn is over: no loop of ours keeps it, and none of its background tasks runs.
    TurnOver,
    /// It has waited for a person for a while; also while its background tasks run.
    Idle,
    /// Its turn ended with an error of its API, in these words.
    ApiError(String),
    /// Its context is full and about to be compacted.
    ContextSpent,
    /// It waits for a person, for this.
    Asks(String),
}

/// That a turn is over, as the agent said, until something follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TurnEnd {
    /// It was just said: at this moment the screen is looked at.
    Said(Duration),
    /// The screen is looked at, until this moment at the latest.
    Looking(Duration),
    /// The agent was seen at work after all: the screen says when it stands still.
    Doubted,
}

impl TurnEnd {
    /// When something must follow.
    pub(super) fn deadline(self) -> Option<Duration> {
        match self {
            Self::Said(at) | Self::Looking(at) => Some(at),
            Self::Doubted => None,
        }
    }
}

impl Worker {
    pub(super) fn hook_signal(&mut self, heard: HookSignal, now: Now) -> Vec<Effect> {
        let mut effects = self.prompt_confirmed_by_hook(&heard, now);
        let looping = self.ralph.is_some();
        let (Phase::Starting { watch, .. } | Phase::Running { watch }) = &mut self.phase else {
            return effects;
        };
        let more = match heard {
            HookSignal::Prompt | HookSignal::Working => {
                (watch.over, watch.rests) = (None, false);
                watch.restart();
                let held = heard == HookSignal::Working;
                let is_news = (watch.held, watch.in_turn) != (held, true);
                (watch.held, watch.in_turn) = (held, true);
                let mut effects = self.answered();
                if is_news && effects.is_empty() {
                    effects.push(Effect::Persist);
                }
                effects
            }
            // What it waits for is its own task, which will wake it.
            HookSignal::Idle if watch.held => vec![],
            HookSignal::TurnOver | HookSignal::Idle => {
                (watch.held, watch.in_turn) = (false, false);
                watch.over = Some(TurnEnd::Said(now.after(TURN_QUIET)));
                self.answered();
                // A daemon that takes over must know it: the agent says it once.
                vec![Effect::Persist]
            }
            HookSignal::Asks(what) => {
                let news = self.trouble.as_ref().is_none_or(|known| known.what != what);
                if news { self.need_person(TroubleKind::Asked, &what, now) } else { vec![] }
            }
            HookSignal::ApiError(_) if looping => self.end(Why::ApiError, now),
            HookSignal::ContextSpent if looping => self.end(Why::ContextSpent, now),
            // A plain worker's agent deals with both itself.
            HookSignal::ApiError(_) | HookSignal::ContextSpent => vec![],
        };
        effects.extend(more);
        effects
    }

    /// Whatever the agent does while its prompt is being delivered, it has it; and one that needs no delivery has
    /// come up, whether its screen was seen or not.
    fn prompt_confirmed_by_hook(&mut self, heard: &HookSignal, now: Now) -> Vec<Effect> {
        match (&self.phase, heard) {
            (
                Phase::Prompting { .. },
                HookSignal::Prompt | HookSignal::TurnOver | HookSignal::ApiError(_),
            ) => self.prompt_over(None, now),
            (Phase::Starting { .. }, HookSignal::Prompt | HookSignal::Working | HookSignal::TurnOver)
                if !self.policy.paste =>
            {
                self.ready(now)
            }
            _ => vec![],
        }
    }

    /// The agent moved: what only it or its screen can have waited for is over.
    fn answered(&mut self) -> Vec<Effect> {
        let over =
            self.trouble.as_ref().is_some_and(|t| matches!(t.kind, TroubleKind::Asked | TroubleKind::Prompt));
        if !over {
            return vec![];
        }
        self.trouble = None;
        vec![Effect::Persist]
    }

    /// What follows from the end of a turn when its time has come.
    pub(super) fn turn_end_due(&mut self, now: Now) -> Option<Vec<Effect>> {
        let Phase::Running { watch } = &mut self.phase else { return None };
        match watch.over.filter(|_| watch.typing == 0)? {
            TurnEnd::Said(at) if now.mono >= at => {
                watch.over = Some(TurnEnd::Looking(now.after(LOOK_LIMIT)));
                Some(vec![Effect::Look(self.run)])
            }
            TurnEnd::Looking(at) if now.mono >= at => Some(self.turn_is_over(now)),
            TurnEnd::Said(_) | TurnEnd::Looking(_) | TurnEnd::Doubted => None,
        }
    }

    /// What a look says of a turn that the agent called over.
    pub(super) fn turn_end_seen(&mut self, now: Now) -> Option<Vec<Effect>> {
        let Phase::Running { watch } = &mut self.phase else { return None };
        match watch.over.filter(|_| watch.typing == 0)? {
            TurnEnd::Said(_) => None,
            TurnEnd::Looking(_) if watch.working => {
                watch.over = Some(TurnEnd::Doubted);
                None
            }
            TurnEnd::Doubted if !watch.looks_idle() => None,
            TurnEnd::Looking(_) | TurnEnd::Doubted => Some(self.turn_is_over(now)),
        }
    }

    /// A loop's iteration is over; a plain worker's agent is idle.
    fn turn_is_over(&mut self, now: Now) -> Vec<Effect> {
        let Phase::Running { watch } = &mut self.phase else { return vec![] };
        watch.over = None;
        if self.ralph.is_some() {
            let why = if self.evidence.done { Why::Done } else { Why::TurnOver };
            return self.end(why, now);
        }
        // The screen may have told it before.
        if watch.rests | std::mem::replace(&mut watch.idle_told, true) {
            watch.rests = true;
            return vec![];
        }
        watch.rests = true;
        vec![Effect::Notify(Entry::Idle { run: self.run.0 })]
    }
}

impl Watch {
    /// When the next step after the end of a turn is due.
    pub(super) fn turn_end_deadline(&self) -> Option<Duration> {
        self.over.filter(|_| self.typing == 0).and_then(TurnEnd::deadline)
    }
}
