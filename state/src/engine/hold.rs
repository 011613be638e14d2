//! A person's hold on a worker: while it lasts, swarm types nothing, starts no run and ends none.
//!
//! A person who types into the agent's pane holds the worker until they have left and [`RELEASE_DELAY`] has passed.
//! `swarm hold` holds it until `swarm release`. A run that ends by itself is judged as usual; the next one does not
//! start. No limit of a loop counts the time: iteration timeout, time of the loop, silence and open questions. A kill
//! ends the hold, and so does a resume of a loop that has no agent.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

use super::{Effect, HookSignal, Now, Phase, Why, Worker};
use crate::notice::{Entry, HoldBy};

/// How long a hold by typing lasts after the person has left.
pub const RELEASE_DELAY: Duration = Duration::from_secs(30);

/// The person at the agent's pane, as the clients of tmux show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The person has typed since the last observation.
    Typing,
    /// A client in which the person has typed is attached.
    Attached,
    /// No such client is attached. The hold ends after this time.
    Away(Duration),
}

/// How a person holds a worker, and since when. Without one of the two it is not held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Hold {
    /// Since when `swarm hold` holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<DateTime<FixedOffset>>,
    /// A person has typed since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    typed: Option<DateTime<FixedOffset>>,
    /// When the hold by typing ends, on the monotonic clock; `None` while the person is attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<Duration>,
    /// Since when the worker is held, on the monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) began: Option<Duration>,
    /// Why the run would have ended meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Why>,
}

impl Hold {
    pub(super) fn is_none(&self) -> bool {
        self.command.is_none() && self.typed.is_none()
    }

    /// Adapts the times of an earlier daemon or boot. Whether the person is still there is observed again.
    pub(super) fn rebase(&mut self, now: Now) {
        self.began = self.began.map(|began| began.min(now.mono));
        if self.typed.is_some() {
            self.ends = Some(now.after(RELEASE_DELAY));
        }
    }
}

impl Worker {
    /// Whether a person holds the worker.
    pub fn is_held(&self) -> bool {
        !self.hold.is_none()
    }

    /// Whether the worker is held because a person typed.
    pub fn is_held_by_typing(&self) -> bool {
        self.hold.typed.is_some()
    }

    /// How a person holds the worker, and since when. A hold by command comes first, because it lasts longer.
    pub fn held_by(&self) -> Option<(HoldBy, DateTime<FixedOffset>)> {
        let command = self.hold.command.map(|since| (HoldBy::Command, since));
        command.or(self.hold.typed.map(|since| (HoldBy::Typing, since)))
    }

    /// Whether swarm may not end the agent's run at the end of a turn. The end of a turn ends no run of a plain worker.
    pub(super) fn keeps_turn(&self) -> bool {
        self.is_held() && self.ralph.is_some()
    }

    pub(super) fn hold_deadline(&self) -> Option<Duration> {
        self.hold.typed.and(self.hold.ends)
    }

    /// When the phase ends by itself. A step that a hold prevents has no deadline.
    pub(super) fn phase_deadline(&self) -> Option<Duration> {
        let waits = match self.phase {
            Phase::Starting { .. } | Phase::BackingOff { .. } => self.is_held(),
            Phase::Running { .. } => self.keeps_turn(),
            Phase::Idle | Phase::Spawning { .. } | Phase::Prompting { .. } | Phase::Ending { .. } => false,
            Phase::Evaluating { .. } | Phase::Parked | Phase::Lost | Phase::Stopped { .. } => false,
        };
        self.phase.deadline().filter(|_| !waits)
    }

    pub(super) fn hold(&mut self, now: Now) -> Vec<Effect> {
        let is_live = !self.is_stopped() && self.phase != Phase::Lost;
        if self.hold.command.is_some() || !is_live {
            return vec![];
        }
        self.hold.command = Some(now.wall);
        self.begin_hold(HoldBy::Command, now)
    }

    pub(super) fn release(&mut self, now: Now) -> Vec<Effect> {
        if self.is_held() { self.end_hold(now) } else { vec![] }
    }

    pub(super) fn present(&mut self, presence: Presence, now: Now) -> Vec<Effect> {
        match presence {
            Presence::Typing => {
                // Without an agent, typing does not count.
                let news = self.hold.typed.is_none() && self.phase.has_agent();
                self.hold.ends = None;
                if !news {
                    return vec![];
                }
                self.hold.typed = Some(now.wall);
                self.begin_hold(HoldBy::Typing, now)
            }
            Presence::Attached => {
                self.hold.ends = None;
                vec![]
            }
            Presence::Away(delay) => {
                if self.hold.typed.is_some() {
                    self.hold.ends.get_or_insert(now.after(delay));
                }
                vec![]
            }
        }
    }

    fn begin_hold(&mut self, by: HoldBy, now: Now) -> Vec<Effect> {
        self.hold.began.get_or_insert(now.mono);
        vec![Effect::Persist, Effect::Notify(Entry::Held { by })]
    }

    /// Ends a typed hold once the person has left.
    pub(super) fn hold_over(&mut self, now: Now) -> Option<Vec<Effect>> {
        if now.mono < self.hold_deadline()? {
            return None;
        }
        (self.hold.typed, self.hold.ends) = (None, None);
        if self.is_held() {
            return Some(vec![Effect::Persist]);
        }
        Some(self.end_hold(now))
    }

    /// Ends the hold. The worker continues: steps that the hold delayed are due now.
    fn end_hold(&mut self, now: Now) -> Vec<Effect> {
        self.count_held(now);
        let due = std::mem::take(&mut self.hold).due;
        self.restart_question_timer(now);
        if let Phase::Starting { ready_by: Some(by), .. } = &mut self.phase {
            *by = now.after(Duration::from_secs(self.policy.ready_timeout));
        }
        if let Some(watch) = self.phase.watch_mut() {
            // Silence while the worker was held does not count.
            watch.restart();
        }
        let mut effects = vec![Effect::Persist, Effect::Notify(Entry::Released)];
        match due.filter(|_| self.phase.has_agent() && self.ralph.is_some()) {
            Some(why) => effects.extend(self.end(why, now)),
            None if self.wants_screen() => effects.push(Effect::Look(self.run)),
            None => {}
        }
        effects
    }

    /// Forgets the hold of a worker that was killed or has finished.
    pub(super) fn drop_hold(&mut self, now: Now) {
        self.count_held(now);
        self.hold = Hold::default();
    }

    /// Forgets that a person typed: their tmux server is gone.
    pub(super) fn drop_typed_hold(&mut self, now: Now) {
        (self.hold.typed, self.hold.ends) = (None, None);
        if self.hold.is_none() {
            self.drop_hold(now);
        }
    }

    /// Adds the time of the hold to the time of the iteration that does not count.
    fn count_held(&mut self, now: Now) {
        let held = self.held_time(now);
        if let Some(ralph) = &mut self.ralph {
            ralph.held = held;
        }
    }

    pub(super) fn held_time(&self, now: Now) -> Duration {
        let Some(ralph) = &self.ralph else { return Duration::ZERO };
        let since = self.hold.began.map(|began| began.max(ralph.started_mono));
        ralph.held.saturating_add(since.map_or(Duration::ZERO, |since| now.mono.saturating_sub(since)))
    }

    /// Notes an end of the run that the hook requires and the hold prevents; and that the agent works again.
    pub(super) fn note_held_end(&mut self, signal: &HookSignal) {
        self.hold.due = match signal {
            HookSignal::ApiError(_) => Some(Why::ApiError),
            HookSignal::ContextSpent => Some(Why::ContextSpent),
            HookSignal::Prompt | HookSignal::Working | HookSignal::ToolUsed(_) | HookSignal::TurnOver => {
                self.hold.due.filter(|due| *due != Why::ApiError)
            }
            HookSignal::Idle | HookSignal::Asks(_) => self.hold.due,
        };
    }
}
