//! Transitions for a look at the screen: ready, blocked, done, silent.

use std::time::Duration;

use super::{
    DONE_QUIET_TIME, Effect, MAX_TIMEOUTS, Now, PROMPT_TIMEOUT, Phase, TroubleKind, Watch, Why, Worker,
};
use crate::notice::Entry;
use crate::screen::Reading;

impl Worker {
    pub(super) fn look(&mut self, reading: Option<Reading>, now: Now) -> Vec<Effect> {
        let limit = self.silence_limit();
        // `None` once the agent runs; before that, whether swarm still waits for a ready screen without reporting it.
        let waiting =
            if let Phase::Starting { ready_by, .. } = &self.phase { Some(ready_by.is_some()) } else { None };
        let Some(watch) = self.phase.watch_mut() else { return vec![] };
        let changed = watch.look(reading.as_ref(), now.mono);
        let (stable, is_ready) = (watch.stable(), watch.ready);
        let is_still = !watch.working && stable >= DONE_QUIET_TIME;
        // The screen has been still for so long that the CPU time of the processes must be checked.
        let mut probe = limit.is_some_and(|limit| stable >= limit) && !watch.probing && waiting != Some(true);
        // Before its prompt is pasted, an agent has done no work.
        let counts = waiting.is_none() || !self.policy.paste;
        let before = self.evidence;
        self.evidence.done |= counts && reading.as_ref().is_some_and(|reading| reading.done);
        // The next daemon needs it, because the screen may be gone by then.
        let mut effects = if self.evidence == before { vec![] } else { vec![Effect::Persist] };
        let may_type = !(self.policy.paste && self.is_held());
        // A screen that was ready while the worker was held prints nothing new after the release.
        if waiting.is_some() && is_ready && may_type {
            effects.extend(self.ready(now));
            return effects;
        }
        if let Some(blocked) = reading.and_then(|reading| self.blocked(&reading, changed, now)) {
            effects.extend(blocked);
            return effects;
        }
        if waiting.is_none() && self.evidence.done && is_still && !self.is_typing() && !self.is_held() {
            let Phase::Running { watch } = &self.phase else { return effects };
            if !watch.ticked {
                effects.extend(self.end(Why::Done, now));
                return effects;
            }
            // A spinner turns: the processes show whether the agent still works.
            probe = !watch.probing;
        }
        if let Some(ending) = self.turn_end_seen(now) {
            effects.extend(ending);
        } else if probe && let Phase::Starting { watch, .. } | Phase::Running { watch } = &mut self.phase {
            watch.probing = true;
            effects.push(Effect::Probe(self.run));
        } else {
            effects.extend(self.turn());
        }
        effects
    }

    /// The typing of a person's text begins or has ended. The agent then has new input: the end of the last turn and
    /// the earlier screen no longer count.
    pub(super) fn typing(&mut self, begins: bool) -> Vec<Effect> {
        if let Some(watch) = self.phase.watch_mut() {
            watch.typing = if begins { watch.typing + 1 } else { watch.typing.saturating_sub(1) };
            watch.rests = false;
            watch.restart();
            watch.over = watch.over.map(|_| super::hook_signals::TurnEnd::Doubted);
        }
        vec![]
    }

    /// Reports that the agent is ready, once a run, and that its turn has ended, once a turn.
    fn turn(&mut self) -> Vec<Effect> {
        let Phase::Running { watch } = &mut self.phase else { return vec![] };
        if self.trouble.is_some() || !watch.ready || watch.typing > 0 {
            return vec![];
        }
        let mut effects = vec![];
        if watch.looks_idle() && !watch.rests && !watch.idle_reported {
            watch.idle_reported = true;
            effects.push(Effect::Notify(Entry::Idle { run: self.run.0 }));
        }
        if std::mem::replace(&mut self.greeted, self.run) != self.run {
            effects.splice(0..0, [Effect::Persist, Effect::Notify(Entry::Ready { run: self.run.0 })]);
        }
        effects
    }

    /// True if the next look must capture the screen, even if tmux reports no new output.
    pub fn needs_capture(&self) -> bool {
        self.may_be_silent() || self.phase.watch().is_some_and(Watch::is_unread)
    }

    /// True if the next look may end the run for its silence.
    pub(super) fn may_be_silent(&self) -> bool {
        let watch = self.phase.watch().zip(self.silence_limit());
        watch.is_some_and(|(watch, limit)| watch.is_nearly_still_for(limit))
    }

    /// How much silence ends the run; `None` while silence does not end it.
    pub(super) fn silence_limit(&self) -> Option<Duration> {
        let ralph = self.ralph.as_ref()?;
        // An agent that waits for a person is not silent: a question has its own limit, other reasons have none.
        let exempt = ralph.paused.is_some() || self.trouble.is_some() || self.is_held();
        (!exempt).then(|| Duration::from_secs(ralph.inactivity_timeout))
    }

    pub(super) fn ready(&mut self, now: Now) -> Vec<Effect> {
        (self.trouble, self.greeted) = (None, self.run);
        let tell = Effect::Notify(Entry::Ready { run: self.run.0 });
        if self.policy.paste {
            self.phase = Phase::Prompting { by: now.after(PROMPT_TIMEOUT) };
            vec![Effect::Persist, tell, Effect::Deliver(self.run)]
        } else {
            self.phase = Phase::Running { watch: Watch::default() };
            vec![Effect::Persist, tell]
        }
    }

    /// Records whether a person is needed; returns effects if that has changed.
    pub(super) fn blocked(&mut self, reading: &Reading, changed: bool, now: Now) -> Option<Vec<Effect>> {
        let known = self.trouble.as_ref();
        if let Some(blocked) = &reading.blocked {
            let kind = if blocked.startup { TroubleKind::Startup } else { TroubleKind::Dialog };
            // A record of an older daemon has no time for its question.
            let untimed = kind == TroubleKind::Dialog && known.is_some_and(|t| t.since.is_none());
            let news = untimed || known.is_none_or(|t| t.kind != kind || t.what != blocked.what);
            return news.then(|| self.need_person(kind, &blocked.what, now));
        }
        let over = match known?.kind {
            TroubleKind::Startup | TroubleKind::Dialog => true,
            TroubleKind::NotReady => matches!(self.phase, Phase::Running { .. }),
            // Both are reported until the agent moves: no person has helped it.
            TroubleKind::Prompt | TroubleKind::Asked => changed || reading.working,
        };
        if over {
            self.trouble = None;
            if let Phase::Starting { ready_by, .. } = &mut self.phase {
                // The dialog was answered: the agent has the full time again.
                *ready_by = Some(now.after(Duration::from_secs(self.policy.ready_timeout)));
            }
        }
        None
    }

    /// The agent's transcript grew: the agent works, even if its screen does not change.
    pub(super) fn transcript_grew(&mut self, ago: Duration) -> Vec<Effect> {
        if let Some(watch) = self.phase.watch_mut() {
            watch.was_active(ago);
        }
        vec![]
    }

    pub(super) fn probed(&mut self, busy: bool, now: Now) -> Vec<Effect> {
        let is_held = self.is_held();
        if let Phase::Running { watch } = &mut self.phase
            && watch.probing
            && !is_held
            && self.evidence.done
            && watch.ticked
            && !busy
            && watch.stable() >= DONE_QUIET_TIME
        {
            return self.end(Why::Done, now);
        }
        let limit = self.silence_limit();
        let Some(ralph) = &self.ralph else {
            if let Phase::Running { watch } = &mut self.phase {
                watch.probing = false;
            }
            return vec![];
        };
        let (iteration, timeout) = (ralph.iteration, ralph.inactivity_timeout);
        let restarting = ralph.iteration < ralph.max_iterations;
        let Some(watch) = self.phase.watch_mut().filter(|watch| watch.probing) else { return vec![] };
        watch.probing = false;
        if limit.is_none_or(|limit| watch.stable() < limit) {
            return vec![];
        }
        if busy && watch.ticked {
            watch.restart();
            return vec![];
        }
        if busy && watch.extensions.saturating_add(1) < MAX_TIMEOUTS {
            watch.extend();
            return vec![Effect::Notify(Entry::InactivityExtended { iteration, timeout })];
        }
        let answered = watch.is_answered() && !self.policy.one_shot;
        let why = if answered { Why::Inactivity } else { Why::Silent };
        let what = if watch.has_printed() { "nothing new on screen" } else { "nothing on screen" };
        let mut effects = self.end_because(why, format!("{what} for {timeout} s"), now);
        effects.insert(0, Effect::Notify(Entry::Inactivity { iteration, timeout, restarting }));
        effects
    }
}
