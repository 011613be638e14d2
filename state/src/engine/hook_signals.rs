//! Transitions for the reports of an agent's own hooks, which are exact where the screen is a guess.
//!
//! The end of a turn is reported while the agent's own Stop hooks still run, and another hook may make the agent
//! continue. So the run is ended one second later, after one more look at its screen. If the agent works again by
//! then, the run continues, and the screen shows when it is idle.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Effect, Now, Phase, TroubleKind, Watch, Why, Worker};
use crate::notice::Entry;

/// How long after the end of a turn another hook may keep the agent going.
pub(super) const TURN_QUIET: Duration = Duration::from_secs(1);

/// How long swarm waits for that look.
const TURN_LOOK_TIMEOUT: Duration = Duration::from_secs(4);

/// A report of an agent's hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookSignal {
    /// The agent accepted a prompt.
    Prompt,
    /// The agent is working.
    Working,
    /// The agent used a tool, and its context is full to this percentage, if that is known.
    ToolUsed(Option<u8>),
    /// The turn has ended: no session loop continues it, and no background task runs.
    TurnOver,
    /// The agent has waited for a person for some time; also while its background tasks run.
    Idle,
    /// The turn ended with this error of the API.
    ApiError(String),
    /// The context is full and about to be compacted.
    ContextSpent,
    /// The agent waits for a person, for this reason.
    Asks(String),
}

/// The reported end of a turn, until something follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TurnEnd {
    /// Just reported; the screen is looked at at this time.
    Said(Duration),
    /// The screen is being looked at, until this time at the latest.
    Looking(Duration),
    /// The agent works after all: the screen shows when it is idle.
    Doubted,
}

impl TurnEnd {
    pub(super) fn deadline(self) -> Option<Duration> {
        match self {
            Self::Said(at) | Self::Looking(at) => Some(at),
            Self::Doubted => None,
        }
    }
}

impl Worker {
    pub(super) fn hook_signal(&mut self, signal: HookSignal, now: Now) -> Vec<Effect> {
        let mut effects = self.prompt_confirmed_by_hook(&signal, now);
        if let HookSignal::ToolUsed(Some(percent)) = signal
            && let Some(ending) = self.context_reported(percent, now)
        {
            effects.extend(ending);
            return effects;
        }
        let looping = self.ralph.is_some();
        let is_held = self.is_held();
        if is_held && looping {
            self.note_held_end(&signal);
        }
        let (Phase::Starting { watch, .. } | Phase::Running { watch }) = &mut self.phase else {
            return effects;
        };
        let more = match signal {
            HookSignal::Prompt | HookSignal::Working | HookSignal::ToolUsed(_) => {
                (watch.over, watch.rests) = (None, false);
                watch.restart();
                let held = signal == HookSignal::Working || (watch.held && signal != HookSignal::Prompt);
                let is_news = (watch.held, watch.in_turn) != (held, true);
                (watch.held, watch.in_turn) = (held, true);
                let mut effects = self.answered();
                if is_news && effects.is_empty() {
                    effects.push(Effect::Persist);
                }
                effects
            }
            // The agent waits for its own background task, which will wake it.
            HookSignal::Idle if watch.held => vec![],
            HookSignal::TurnOver | HookSignal::Idle => {
                (watch.held, watch.in_turn) = (false, false);
                watch.over = Some(TurnEnd::Said(now.after(TURN_QUIET)));
                self.answered();
                // Saved for the next daemon: the agent reports it only once.
                vec![Effect::Persist]
            }
            HookSignal::Asks(what) => {
                let news = self.trouble.as_ref().is_none_or(|known| known.what != what);
                if news { self.need_person(TroubleKind::Asked, &what, now) } else { vec![] }
            }
            // The run ends when the person who holds the worker releases it.
            HookSignal::ApiError(_) | HookSignal::ContextSpent if looping && is_held => vec![Effect::Persist],
            HookSignal::ApiError(_) if looping => self.end(Why::ApiError, now),
            HookSignal::ContextSpent if looping => self.end(Why::ContextSpent, now),
            // A plain worker's agent handles both itself.
            HookSignal::ApiError(_) | HookSignal::ContextSpent => vec![],
        };
        effects.extend(more);
        effects
    }

    /// An accepted prompt or an ended turn during the delivery shows that the agent has its prompt. An agent that
    /// needs no delivery has started, even if its screen was not read.
    fn prompt_confirmed_by_hook(&mut self, signal: &HookSignal, now: Now) -> Vec<Effect> {
        match (&self.phase, signal) {
            (
                Phase::Prompting { .. },
                HookSignal::Prompt | HookSignal::TurnOver | HookSignal::ApiError(_),
            ) => self.prompt_over(None, now),
            (
                Phase::Starting { .. },
                HookSignal::Prompt | HookSignal::Working | HookSignal::ToolUsed(_) | HookSignal::TurnOver,
            ) if !self.policy.paste => self.ready(now),
            _ => vec![],
        }
    }

    /// The agent works again: a question of its hook, or a failed prompt, no longer needs a person.
    fn answered(&mut self) -> Vec<Effect> {
        let over =
            self.trouble.as_ref().is_some_and(|t| matches!(t.kind, TroubleKind::Asked | TroubleKind::Prompt));
        if !over {
            return vec![];
        }
        self.trouble = None;
        vec![Effect::Persist]
    }

    pub(super) fn turn_end_due(&mut self, now: Now) -> Option<Vec<Effect>> {
        if self.keeps_turn() {
            return None;
        }
        let Phase::Running { watch } = &mut self.phase else { return None };
        match watch.over.filter(|_| watch.typing == 0)? {
            TurnEnd::Said(at) if now.mono >= at => {
                watch.over = Some(TurnEnd::Looking(now.after(TURN_LOOK_TIMEOUT)));
                Some(vec![Effect::Look(self.run)])
            }
            TurnEnd::Looking(at) if now.mono >= at => Some(self.turn_is_over(now)),
            TurnEnd::Said(_) | TurnEnd::Looking(_) | TurnEnd::Doubted => None,
        }
    }

    /// Evaluates a look at the screen for a turn whose end was reported.
    pub(super) fn turn_end_seen(&mut self, now: Now) -> Option<Vec<Effect>> {
        if self.keeps_turn() {
            return None;
        }
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

    /// The turn has ended: ends the iteration of a loop; the agent of a plain worker is idle.
    fn turn_is_over(&mut self, now: Now) -> Vec<Effect> {
        let Phase::Running { watch } = &mut self.phase else { return vec![] };
        watch.over = None;
        if self.ralph.is_some() {
            let why = if self.evidence.done { Why::Done } else { Why::TurnOver };
            return self.end(why, now);
        }
        // The screen may already have shown the idle agent.
        if watch.rests | std::mem::replace(&mut watch.idle_reported, true) {
            watch.rests = true;
            return vec![];
        }
        watch.rests = true;
        vec![Effect::Notify(Entry::Idle { run: self.run.0 })]
    }
}

impl Watch {
    pub(super) fn turn_end_deadline(&self) -> Option<Duration> {
        self.over.filter(|_| self.typing == 0).and_then(TurnEnd::deadline)
    }
}
